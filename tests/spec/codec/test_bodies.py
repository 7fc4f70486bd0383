"""JSON bodies of control answers, and text errors (LWP sections 5 and 12, AMB-10)."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_spec.bodies import (
    ClusterStatus,
    DedupWindow,
    ErrorBody,
    TopicInfo,
    decode_error,
    decode_topic,
    decode_topics,
    encode_json,
)
from lance_spec.dialect import DEPLOYED, SPECIFIED
from lance_spec.enums import ErrorCode
from lance_spec.errors import DecodeError

ORDERS = TopicInfo(id=1, name="orders", created_at=1706918400)


def test_a_topic_survives() -> None:
    """What a server knows of a topic reaches the client."""
    topic = TopicInfo(
        id=2,
        name="日本",
        created_at=5,
        topic_epoch=3,
        start_offset=0,
        end_offset=2**63,
        record_count=9,
        max_age_secs=0,
        max_bytes=1,
    )
    assert decode_topic(encode_json(topic.to_body())) == topic


def test_a_published_servers_topic_is_enough() -> None:
    """The four fields that published servers send make a topic."""
    body = b'{"created_at":1706918400,"id":1,"name":"orders","topic_epoch":1}'
    assert decode_topic(body) == ORDERS
    assert ORDERS.to_body() == json.loads(body)


def test_a_list_of_topics() -> None:
    """ListTopics is answered with an object that holds a list (LWP section 5.4)."""
    assert decode_topics(encode_json({"topics": [ORDERS.to_body()]})) == [ORDERS]


@pytest.mark.parametrize(
    ("payload", "what"),
    [
        (b"", "JSON"),
        (b"[]", "a JSON object"),
        (b"\xff", "UTF-8"),
        (b"[" * 100_000, "reasonable depth"),
        (b'{"id":true,"name":"a","created_at":0}', r"TopicResponse\.id"),
        (b'{"id":4294967296,"name":"a","created_at":0}', r"TopicResponse\.id"),
        (b'{"id":1,"name":7,"created_at":0}', r"TopicResponse\.name"),
        (b'{"id":1,"name":"a"}', r"TopicResponse\.created_at"),
        (b'{"id":1,"name":"a","created_at":-1}', r"TopicResponse\.created_at"),
    ],
)
def test_a_broken_topic_is_named(payload: bytes, what: str) -> None:
    """Each way of being wrong is told apart."""
    with pytest.raises(DecodeError, match=what):
        decode_topic(payload)


def test_topics_must_be_a_list() -> None:
    """An answer without a list of objects is no list of topics."""
    with pytest.raises(DecodeError, match=r"TopicResponse\.topics"):
        decode_topics(b'{"topics":[1]}')


def test_a_json_error_carries_code_and_details() -> None:
    """`specified` errors are JSON (LWP section 12.1)."""
    error = ErrorBody(ErrorCode.INVALID_OFFSET, "offset 3 is gone", {"earliest": 64})
    assert decode_error(error.encode(SPECIFIED)) == error


def test_a_deployed_error_is_its_message() -> None:
    """`deployed` errors are bare text (AMB-10)."""
    error = ErrorBody(ErrorCode.TOPIC_NOT_FOUND, "Unknown topic", {"batch_id": 3})
    assert error.encode(DEPLOYED) == b"Unknown topic"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("Unknown topic", ErrorCode.TOPIC_NOT_FOUND),
        ("Topic not found", ErrorCode.TOPIC_NOT_FOUND),
        ("Topic 42 not found", ErrorCode.TOPIC_NOT_FOUND),
        ("Configuration error: Topic 9 not found", ErrorCode.TOPIC_NOT_FOUND),
        ("Topic 'x' already exists", ErrorCode.TOPIC_ALREADY_EXISTS),
        ("Topic name required", ErrorCode.INVALID_TOPIC_NAME),
        (
            "Invalid data: Topic name 'a_b' contains invalid characters. Only …",
            ErrorCode.INVALID_TOPIC_NAME,
        ),
        ("NOT_LEADER: leader unknown", ErrorCode.LEADER_UNKNOWN),
        ("FORWARD_FAILED: Quorum not reached - required 2", ErrorCode.QUORUM_NOT_REACHED),
        ("FORWARD_FAILED: Unknown topic (metadata convergence)", ErrorCode.CLUSTER_NOT_READY),
        ("Rate limit exceeded", ErrorCode.RATE_LIMITED),
        ("Authentication required", ErrorCode.AUTHENTICATION_REQUIRED),
        ("Invalid token", ErrorCode.AUTHENTICATION_FAILED),
        ("Invalid client command", ErrorCode.INVALID_PAYLOAD),
        ("Fetch request payload required", ErrorCode.INVALID_PAYLOAD),
        ("Protocol error: Fetch request payload too small", ErrorCode.INVALID_PAYLOAD),
        ("something new", ErrorCode.UNKNOWN_ERROR),
        ("{not json", ErrorCode.UNKNOWN_ERROR),
        ('{"code": "16"}', ErrorCode.UNKNOWN_ERROR),
    ],
)
def test_known_texts_have_codes(text: str, code: ErrorCode) -> None:
    """The published server's wordings are mapped to the codes of LWP section 12.2."""
    error = decode_error(text.encode())
    assert (error.code, error.message) == (code, text)


def test_a_redirect_names_the_leader() -> None:
    """The text form of NotLeader carries the address like the JSON form does."""
    error = decode_error(b"NOT_LEADER: redirect to 10.0.0.1:1992")
    assert error.code is ErrorCode.NOT_LEADER
    assert error.details == {"leader_addr": "10.0.0.1:1992"}


def test_an_unlisted_code_is_kept() -> None:
    """A code that LWP section 12.2 does not list stays a number."""
    assert decode_error(b'{"code":153,"message":"new"}').code == 153


@given(st.binary(max_size=200))
def test_no_error_payload_makes_it_raise(payload: bytes) -> None:
    """Any bytes are an error of some kind."""
    assert decode_error(payload).message is not None


def test_an_enormous_error_is_cut() -> None:
    """A message is shown up to 4096 characters."""
    assert len(decode_error(b"x" * 10_000_000).message) == 4096


def test_cluster_status_states_the_duplicate_window() -> None:
    """A server tells how far back it recognises a repeated batch (AMB-25)."""
    status = ClusterStatus.decode(
        encode_json(
            {
                "is_leader": True,
                "node_count": 1,
                "healthy_nodes": 1,
                "dedup_window": {"entries": 1000, "max_age_secs": 60},
            }
        )
    )
    assert status.dedup_window == DedupWindow(1000, 60)
    assert status.is_leader


def test_a_published_server_states_no_window() -> None:
    """Where no window is stated, none is assumed."""
    body = encode_json({"is_leader": True, "node_count": 1, "healthy_nodes": 1})
    assert ClusterStatus.decode(body).dedup_window is None
