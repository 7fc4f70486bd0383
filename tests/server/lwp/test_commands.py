"""What each command answers, in both dialects (LWP section 5, AMB-10, AMB-26)."""

import unicodedata

import jsonschema
import pytest

from lance_server.testing import SessionPeer
from lance_spec import schemas
from lance_spec.bodies import decode_error, decode_json, decode_topics
from lance_spec.dialect import DEPLOYED, SPECIFIED, Dialect
from lance_spec.enums import Command, ErrorCode
from lance_spec.messages import lwp

BOTH = pytest.mark.parametrize("dialect", [SPECIFIED, DEPLOYED], ids=str)


def text_of(peer: SessionPeer, command: int, payload: bytes = b"") -> str:
    """Send a command and return the bare text of its ErrorResponse."""
    answer = peer.ask(command, payload)
    assert answer.command == Command.ERROR_RESPONSE
    return bytes(answer.payload).decode()


def le(value: int, size: int) -> bytes:
    """Return an integer as it stands on the wire."""
    return value.to_bytes(size, "little")


# Topics ----------------------------------------------------------------------------------------


@BOTH
def test_create_topic_answers_with_its_identity(dialect: Dialect) -> None:
    """Exactly the documented fields (LWP section 5.3)."""
    body = SessionPeer(dialect).json(Command.CREATE_TOPIC, b"my-events")
    assert body == {
        "id": 1,
        "name": "my-events",
        "created_at": 1_700_000_000,
        "topic_epoch": 1,
    }


@BOTH
def test_create_with_retention_answers_with_the_policy(dialect: Dialect) -> None:
    """The name's length is a u16 (LWP section 5.11, AMB-07)."""
    request = le(6, 2) + b"events" + le(86400, 8) + le(1 << 30, 8)
    body = SessionPeer(dialect).json(Command.CREATE_TOPIC_WITH_RETENTION, request)
    assert (body["name"], body["max_age_secs"], body["max_bytes"]) == ("events", 86400, 1 << 30)


@BOTH
def test_list_topics_tells_all_by_id(dialect: Dialect) -> None:
    """The default topic is not among them (AMB-34)."""
    peer = SessionPeer(dialect)
    for name in (b"b", b"a"):
        peer.ask(Command.CREATE_TOPIC, name)
    topics = decode_topics(peer.ask(Command.LIST_TOPICS).payload)
    assert [(topic.id, topic.name) for topic in topics] == [(1, "b"), (2, "a")]


@BOTH
def test_get_topic_tells_offsets_and_count(dialect: Dialect) -> None:
    """What a reader needs to know before it begins (AMB-29)."""
    peer = SessionPeer(dialect)
    peer.log.store([b"one", b"two"])
    body = peer.json(Command.GET_TOPIC, le(0, 4))
    assert body["name"] == "default"
    assert (body["start_offset"], body["end_offset"], body["record_count"]) == (0, 16, 2)


@BOTH
def test_delete_topic_answers_with_the_id(dialect: Dialect) -> None:
    """LWP section 5.6."""
    peer = SessionPeer(dialect)
    peer.ask(Command.CREATE_TOPIC, b"gone")
    assert peer.json(Command.DELETE_TOPIC, le(1, 4)) == {"deleted": 1}


@BOTH
def test_set_retention_answers_with_the_policy(dialect: Dialect) -> None:
    """A TopicResponse, not an Ack (AMB-09)."""
    peer = SessionPeer(dialect)
    peer.ask(Command.CREATE_TOPIC, b"events")
    body = peer.json(Command.SET_RETENTION, le(1, 4) + le(60, 8) + le(0, 8))
    assert body == {"topic_id": 1, "max_age_secs": 60, "max_bytes": 0}


@pytest.mark.parametrize(
    ("name", "accepted"),
    [
        (b"plain-Name-09", True),
        ("übersicht".encode(), True),
        (b"with_underscore", True),
        (b"x" * 255, True),
        (b"", False),
        (b"x" * 256, False),
        (b"a/b", False),
        (b"..", False),
        (b"line\nbreak", False),
        (b"\xff\xfe", False),
    ],
)
def test_specified_names_are_judged(name: bytes, accepted: bool) -> None:
    """UTF-8 of 1 to 255 bytes, without what a path or a terminal could trip over (AMB-24)."""
    peer = SessionPeer(SPECIFIED)
    answer = peer.ask(Command.CREATE_TOPIC, name)
    if accepted:
        assert answer.command == Command.TOPIC_RESPONSE
    else:
        assert decode_error(answer.payload).code is ErrorCode.INVALID_TOPIC_NAME


def test_names_are_compared_in_one_normal_form() -> None:
    """The same letters written in two ways are the same name (AMB-24)."""
    peer = SessionPeer(SPECIFIED)
    composed, decomposed = (unicodedata.normalize(form, "Zürich") for form in ("NFC", "NFD"))
    peer.ask(Command.CREATE_TOPIC, composed.encode())
    error = peer.error(Command.CREATE_TOPIC, decomposed.encode())
    assert error.code is ErrorCode.TOPIC_ALREADY_EXISTS


def test_the_strict_name_rule_can_be_switched() -> None:
    """Tests of published clients use underscores that the published server refuses."""
    lenient = SessionPeer(DEPLOYED, strict_topic_names=False)
    assert lenient.json(Command.CREATE_TOPIC, b"with_underscore")["id"] == 1
    strict = SessionPeer(SPECIFIED, strict_topic_names=True)
    assert strict.error(Command.CREATE_TOPIC, b"a_b").code is ErrorCode.INVALID_TOPIC_NAME


# Errors as specified ---------------------------------------------------------------------------

SHORT = [
    (Command.DELETE_TOPIC, 4),
    (Command.GET_TOPIC, 4),
    (Command.SET_RETENTION, 20),
    (Command.FETCH, 16),
    (Command.SUBSCRIBE, 24),
    (Command.UNSUBSCRIBE, 12),
    (Command.COMMIT_OFFSET, 20),
    (Command.OFFSET_FOR_TIME, 12),
    (Command.BATCH_TIMES, 20),
]


@pytest.mark.parametrize(("command", "size"), SHORT)
@pytest.mark.parametrize("change", [-1, 1])
def test_a_payload_of_the_wrong_length_is_invalid(command: Command, size: int, change: int) -> None:
    """One byte too few or too many is InvalidPayload, and the place is named (AMB-26)."""
    error = SessionPeer(SPECIFIED).error(command, bytes(size + change))
    assert error.code is ErrorCode.INVALID_PAYLOAD
    assert set(error.details) == {"field", "offset"}


@pytest.mark.parametrize("code", [0x00, 0x13, 0x25, 0x40, 0x80, 0xFF, 0x101, 0x110, 2**63])
def test_an_unknown_command_is_invalid(code: int) -> None:
    """Also one whose low byte would be a command (AMB-26)."""
    error = SessionPeer(SPECIFIED).error(code)
    assert (error.code, hex(code) in error.message) == (ErrorCode.INVALID_PAYLOAD, True)


@pytest.mark.parametrize(
    ("command", "payload"),
    [
        (Command.GET_TOPIC, le(9, 4)),
        (Command.DELETE_TOPIC, le(9, 4)),
        (Command.SET_RETENTION, le(9, 4) + bytes(16)),
        (Command.FETCH, lwp.Fetch(9, 0, 10).encode()),
        (Command.SUBSCRIBE, lwp.Subscribe(9, 0, 10, 1).encode()),
        (Command.COMMIT_OFFSET, lwp.CommitOffset(9, 1, 0).encode()),
    ],
)
def test_a_topic_that_never_was_is_not_found(command: Command, payload: bytes) -> None:
    """0x10, with the id in the sentence."""
    error = SessionPeer(SPECIFIED).error(command, payload)
    assert error.code is ErrorCode.TOPIC_NOT_FOUND
    assert "9" in error.message


# Errors as deployed ----------------------------------------------------------------------------

BAD_NAME = (
    "Invalid data: Topic name 'a_b' contains invalid characters. Only alphanumeric "
    "characters (a-z, A-Z, 0-9) and dashes (-) are allowed"
)


@pytest.mark.parametrize(
    ("command", "payload", "text"),
    [
        (Command.CREATE_TOPIC, b"", "Topic name required"),
        (
            Command.CREATE_TOPIC,
            b"a_b",
            BAD_NAME,
        ),
        (Command.DELETE_TOPIC, le(9, 4), "Configuration error: Topic 9 not found"),
        (Command.DELETE_TOPIC, b"\x01", "Configuration error: Topic 0 not found"),
        (Command.DELETE_TOPIC, le(0, 4), "Configuration error: Topic 0 not found"),
        (Command.GET_TOPIC, le(9, 4), "Topic not found"),
        (Command.GET_TOPIC, b"", "Topic not found"),
        (Command.SET_RETENTION, bytes(19), "Invalid set retention payload"),
        (Command.SET_RETENTION, le(9, 4) + bytes(16), "Configuration error: Topic 9 not found"),
        (Command.CREATE_TOPIC_WITH_RETENTION, bytes(17), "Invalid create topic payload"),
        (Command.CREATE_TOPIC_WITH_RETENTION, b"\xff" + bytes(17), "Invalid payload length"),
        (Command.FETCH, b"", "Fetch request payload required"),
        (Command.FETCH, bytes(15), "Protocol error: Fetch request payload too small"),
        (Command.FETCH, lwp.Fetch(9, 0, 10).encode(), "Topic 9 not found"),
        (Command.SUBSCRIBE, bytes(23), "Invalid subscribe payload"),
        (Command.SUBSCRIBE, lwp.Subscribe(9, 0, 10, 1).encode(), "Topic not found"),
        (0x7F, b"", "Invalid client command"),
        (Command.FETCH_RESPONSE, b"", "Invalid client command"),
    ],
)
def test_deployed_errors_have_the_published_words(command: int, payload: bytes, text: str) -> None:
    """Clients recognise errors by these words; there is nothing else to go by (AMB-10)."""
    assert text_of(SessionPeer(DEPLOYED), command, payload) == text


def test_a_taken_name_has_the_published_words() -> None:
    """Toward deployed clients, too."""
    peer = SessionPeer(DEPLOYED)
    peer.ask(Command.CREATE_TOPIC, b"x")
    assert text_of(peer, Command.CREATE_TOPIC, b"x") == "Topic 'x' already exists"


def test_deployed_payloads_may_go_on() -> None:
    """What follows a payload is ignored, as observed (AMB-26)."""
    peer = SessionPeer(DEPLOYED)
    peer.ask(Command.CREATE_TOPIC, b"x")
    assert peer.json(Command.GET_TOPIC, le(1, 4) + b"more")["id"] == 1
    request = le(1, 2) + b"y" + bytes(16) + b"more"
    assert peer.json(Command.CREATE_TOPIC_WITH_RETENTION, request)["name"] == "y"


def test_deployed_commands_are_the_low_byte() -> None:
    """The published server looks no further (AMB-26)."""
    assert SessionPeer(DEPLOYED).json(0x103) == {"topics": []}


# The node --------------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("code", [0x07, 0x30])
def test_cluster_status_tells_of_one_node_and_its_window(dialect: Dialect, code: int) -> None:
    """Under either code; clients learn how long a retry is recognised (AMB-11, AMB-25)."""
    peer = SessionPeer(dialect)
    answer = peer.ask(code)
    assert answer.command == Command.CLUSTER_STATUS_RESPONSE
    body = decode_json(answer.payload, "status")
    assert (body["is_leader"], body["node_count"], body["mode"]) == (True, 1, "standalone")
    assert body["dedup_window"] == {"entries": 1_000_000, "max_age_secs": 604_800}


@BOTH
def test_cluster_status_has_the_members_of_its_schema(dialect: Dialect) -> None:
    """All of them and no others, each of its kind: the wire page is made from the schema."""
    body = decode_json(SessionPeer(dialect).ask(0x07).payload, "status")
    schema = schemas.load("cluster_status")
    assert body.keys() == schema["properties"].keys()
    jsonschema.Draft202012Validator(schema).validate(body)


@BOTH
@pytest.mark.parametrize("token", [b"", b"secret", b"\xff"])
def test_any_token_is_accepted(dialect: Dialect, token: bytes) -> None:
    """This server asks for none, so none is wrong."""
    answer = SessionPeer(dialect).ask(Command.AUTHENTICATE, token)
    assert answer.command == Command.AUTHENTICATE_RESPONSE
    assert lwp.AuthenticateResponse.decode(answer.payload).ok


# Partitioned topics (AMB-59) -------------------------------------------------------------------


def create_orders(partitions: int = 2, partitioner: int = 1) -> bytes:
    """Return the payload that creates a partitioned topic."""
    request = lwp.CreatePartitionedTopic(
        name=b"orders",
        partitions=partitions,
        partitioner=partitioner,
        max_age_secs=60,
        max_bytes=0,
    )
    return request.encode()


@BOTH
def test_a_partitioned_topic_is_answered_with_its_topics(dialect: Dialect) -> None:
    """Each says which partition it is."""
    peer = SessionPeer(dialect)
    body = peer.json(Command.CREATE_PARTITIONED_TOPIC, create_orders())
    told = {"topic": "orders", "count": 2, "partitioner": "murmur2"}
    assert body["name"] == "orders"
    assert [(each["name"], each["partition"]) for each in body["topics"]] == [
        ("orders-0", told | {"index": 0}),
        ("orders-1", told | {"index": 1}),
    ]


@BOTH
def test_a_list_tells_which_topics_are_partitions(dialect: Dialect) -> None:
    """Clients that do not know of partitions find topics; others find what belongs together."""
    peer = SessionPeer(dialect)
    peer.ask(Command.CREATE_TOPIC, b"other")
    peer.ask(Command.CREATE_PARTITIONED_TOPIC, create_orders(partitioner=2))
    topics = decode_topics(peer.ask(Command.LIST_TOPICS).payload)
    assert [topic.name for topic in topics] == ["other", "orders-0", "orders-1"]
    assert [topic.partition and topic.partition.partitioner for topic in topics] == [
        None,
        "siphash",
        "siphash",
    ]


@BOTH
def test_partitions_are_added_and_deleted_by_the_name_of_the_whole(dialect: Dialect) -> None:
    """AddPartitions answers as a creation does; a deletion names the topics that are gone."""
    peer = SessionPeer(dialect)
    peer.ask(Command.CREATE_PARTITIONED_TOPIC, create_orders())
    more = lwp.AddPartitions(name=b"orders", partitions=3).encode()
    assert [each["id"] for each in peer.json(Command.ADD_PARTITIONS, more)["topics"]] == [1, 2, 3]
    assert peer.json(Command.DELETE_PARTITIONED_TOPIC, b"orders") == {
        "name": "orders",
        "deleted_topics": [1, 2, 3],
    }


@pytest.mark.parametrize(
    ("command", "payload", "code"),
    [
        (Command.CREATE_PARTITIONED_TOPIC, b"", ErrorCode.INVALID_PAYLOAD),
        (Command.ADD_PARTITIONS, b"\1\0n", ErrorCode.INVALID_PAYLOAD),
        (Command.ADD_PARTITIONS, b"\1\0n\2\0\0\0", ErrorCode.TOPIC_NOT_FOUND),
        (Command.DELETE_PARTITIONED_TOPIC, b"", ErrorCode.INVALID_TOPIC_NAME),
        (Command.DELETE_PARTITIONED_TOPIC, b"n", ErrorCode.TOPIC_NOT_FOUND),
    ],
)
@BOTH
def test_commands_of_partitioned_topics_are_refused(
    command: int, payload: bytes, code: ErrorCode, dialect: Dialect
) -> None:
    """Under both dialects with a code, or words, that clients recognise."""
    assert SessionPeer(dialect).error(command, payload).code == code


@BOTH
def test_an_unknown_partitioner_is_refused(dialect: Dialect) -> None:
    """Two programs that route differently would split keys."""
    peer = SessionPeer(dialect)
    error = peer.error(Command.CREATE_PARTITIONED_TOPIC, create_orders(partitioner=3))
    assert error.code == ErrorCode.INVALID_PAYLOAD


def test_the_last_partition_needs_a_valid_name_too() -> None:
    """It is the longest."""
    request = lwp.CreatePartitionedTopic(
        name=b"n" * 254, partitions=2, partitioner=1, max_age_secs=0, max_bytes=0
    )
    error = SessionPeer().error(Command.CREATE_PARTITIONED_TOPIC, request.encode())
    assert error.code == ErrorCode.INVALID_TOPIC_NAME
