"""The test vectors for RustLog, put to the broker over a socket."""

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_server.listeners.rustlog.testing import Broker, RustlogPeer
from lance_spec.errors import DecodeError
from lance_spec.messages import rustlog as messages
from lance_spec.messages.rustlog import CreateTopicRequest, ErrorResponse
from lance_spec.rustlog.json_messages import (
    JsonRequest,
    decode_answer,
    decode_request,
    encode_answer,
    encode_request,
)

VECTORS = Path(__file__).parents[2] / "vectors"
REQUESTS = {
    name: kind
    for name, kind in vars(messages).items()
    if name.endswith("Request") and hasattr(kind, "TYPE")
}


def groups(family: str) -> list[dict[str, Any]]:
    """Return the groups of a family."""
    document = json.loads((VECTORS / f"{family}.json").read_text())
    found: list[dict[str, Any]] = document["testGroups"]
    return found


def requests(*results: str) -> list[Any]:
    """Return the binary requests with these results that have the byte of their type."""
    return [
        pytest.param(bytes.fromhex(test["bytes"]), id=test["id"])
        for group in groups("rustlog_message")
        if group["message"] in REQUESTS
        for test in group["tests"]
        if test["result"] in results
        and bytes.fromhex(test["bytes"])[:1] == bytes([REQUESTS[group["message"]].TYPE])
    ]


@pytest.mark.parametrize("payload", requests("valid", "either"))
def test_a_valid_request_is_read(guest: RustlogPeer, payload: bytes) -> None:
    """Whatever it is answered with, it is not that it cannot be read."""
    guest.send(payload)
    answer = guest.receive()
    unread = answer[0] == ErrorResponse.TYPE and ErrorResponse.decode(answer).code == 2
    assert answer[0] == payload[0] or not unread


@pytest.mark.parametrize("payload", requests("invalid"))
def test_an_invalid_request_is_refused(guest: RustlogPeer, payload: bytes) -> None:
    """Code 2, and the next request is answered."""
    code, text = guest.refused(payload)
    assert (code, text.startswith("Decode error: decode error: ")) == (2, True)
    guest.send(b"\xff")
    assert guest.receive() == b"\xff"


def captured() -> dict[str, bytes]:
    """Return the frames that published client and broker exchanged, by the end of their id."""
    prefix = "captured-rustlog-Frame-"
    return {
        test["id"].removeprefix(prefix): bytes.fromhex(test["bytes"])
        for group in groups("rustlog_message")
        for test in group["tests"]
        if test["id"].startswith(prefix)
    }


CONVERSATION = [
    ("Ping-ping", "Ping-ping"),
    ("CreateTopicRequest-create", "CreateTopicResponse-created"),
    ("CreateTopicRequest-create", "ErrorResponse-exists"),
    ("ListTopicsRequest-list", "ListTopicsResponse-listed"),
    ("DescribeTopicRequest-demo", "DescribeTopicResponse-demo"),
    ("DescribePartitionRequest-first", "DescribePartitionResponse-first"),
    ("ProduceRequest-three", "ProduceResponse-three"),
    ("FetchRequest-no-group", "FetchResponse-three"),
    ("FetchRequest-group", "FetchResponse-nothing-committed"),
    ("OffsetFetchRequest-group", "OffsetFetchResponse-none"),
    ("OffsetCommitRequest-three", "OffsetCommitResponse-done"),
]


def test_a_captured_conversation_is_answered_byte_for_byte(rustlog: Broker) -> None:
    """What the published broker answered its client; ends are told before there are records."""
    frames = captured()
    with RustlogPeer(rustlog.address) as client:
        client.ask(CreateTopicRequest(topic="events", partitions=1))
        for asked, answered in CONVERSATION:
            client.socket.sendall(frames[asked])
            assert client.receive() == frames[answered][4:], asked


def json_requests(*results: str) -> list[Any]:
    """Return the JSON requests with these results, without the empty one, which is not a frame."""
    return [
        pytest.param(bytes.fromhex(test["bytes"]), id=test["id"])
        for group in groups("rustlog_json")
        if group["side"] == "request"
        for test in group["tests"]
        if test["result"] in results and test["bytes"]
    ]


@pytest.mark.parametrize("payload", json_requests("valid"))
def test_valid_json_is_read(guest: RustlogPeer, payload: bytes) -> None:
    """Its answer is of the same kind, or says what is missing."""
    asked = type(decode_request(payload)).__name__.removesuffix("Request")
    guest.send(payload)
    answer = decode_answer(guest.receive())
    if isinstance(answer, ErrorResponse):
        assert answer.message.startswith("partition not found: ")
    else:
        assert type(answer).__name__.removesuffix("Response") == asked


@pytest.mark.parametrize("payload", json_requests("invalid"))
def test_invalid_json_is_refused(guest: RustlogPeer, payload: bytes) -> None:
    """In the dialect that its first byte tells, and the next request is answered."""
    guest.send(payload)
    answer = guest.receive()
    if payload[:1] in b"{ \t\r\n":
        found = decode_answer(answer)
        assert isinstance(found, ErrorResponse)
        assert found.message.startswith("failed to parse request: ")
    else:
        assert ErrorResponse.decode(answer).message.startswith("Decode error: ")
    guest.send(b"\xff")
    assert guest.receive() == b"\xff"


def answers(*results: str) -> list[Any]:
    """Return the JSON answers with these results."""
    return [
        pytest.param(test, id=test["id"])
        for group in groups("rustlog_json")
        if group["side"] == "answer"
        for test in group["tests"]
        if test["result"] in results
    ]


@pytest.mark.parametrize("test", answers("valid", "invalid"))
def test_json_answers_are_read_as_the_vectors_say(test: dict[str, Any]) -> None:
    """The codec that both sides share takes the valid ones only."""
    taken = True
    try:
        decode_answer(bytes.fromhex(test["bytes"]))
    except DecodeError:
        taken = False
    assert taken is (test["result"] == "valid")


TEXTS = st.text(max_size=20)
PLACES = {"topic": TEXTS, "partition": st.integers(0, 2**32 - 1)}
OFFSETS = st.integers(0, 2**64 - 1)
ANY_REQUEST = st.one_of(
    st.builds(messages.ProduceRequest, records=st.lists(st.binary(max_size=20)), **PLACES),
    st.builds(messages.FetchRequest, group=TEXTS, offset=OFFSETS, max_bytes=OFFSETS, **PLACES),
    st.builds(messages.OffsetCommitRequest, group=TEXTS, offset=OFFSETS, **PLACES),
    st.builds(messages.OffsetFetchRequest, group=TEXTS, **PLACES),
)


@given(ANY_REQUEST)
def test_json_carries_every_request(request: JsonRequest) -> None:
    """What is written is read again."""
    assert decode_request(encode_request(request)) == request


@given(st.lists(st.binary(max_size=20)), st.integers(0, 2**63))
def test_json_carries_every_batch(records: list[bytes], first: int) -> None:
    """With the offsets of its records."""
    answer = messages.FetchResponse(records=records, next_offset=first + len(records))
    assert decode_answer(encode_answer(answer)) == answer


@given(st.binary(max_size=60))
def test_json_of_any_bytes_is_read_or_refused(data: bytes) -> None:
    """Nothing else can happen."""
    for decode in (decode_request, decode_answer):
        with contextlib.suppress(DecodeError):
            decode(data)
