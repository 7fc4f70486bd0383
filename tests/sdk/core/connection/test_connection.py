"""One connection: matching answers, tombstones, deadlines, and the answers to keepalives."""

from lance_sdk._protocol.connection import Connection, ConnectionLimits, Request
from lance_sdk.errors import ChecksumMismatch, RemoteProtocolError, ServerError
from lance_spec.bodies import ErrorBody
from lance_spec.dialect import SPECIFIED
from lance_spec.enums import Command, ErrorCode, Flag
from lance_spec.frames import FrameSplitter, encode_control, encode_header, encode_keepalive

LIMITS = ConnectionLimits(request_timeout=30.0, keepalive_interval=10.0, idle_timeout=60.0)


class Handler:
    """Notes what is not an answer."""

    def __init__(self) -> None:
        self.notes: list[object] = []

    def acked(self, batch_id: int, now: float) -> None:
        """Note an Ack."""
        self.notes.append((batch_id, now))

    def slow_down(self, now: float) -> None:
        """Note a Backpressure."""
        self.notes.append(("slow down", now))

    def refused(self, error: ServerError, now: float) -> None:
        """Note an error."""
        self.notes.append((error.message, now))


def connect() -> tuple[Connection, Handler]:
    """Return a fresh connection at time 0."""
    handler = Handler()
    return Connection((SPECIFIED,), SPECIFIED, handler, LIMITS, 0.0), handler


def ask(connection: Connection, got: list[bytes], now: float = 0.0) -> Request:
    """Send a question whose answers and errors are collected."""
    request = Request(
        Command.LIST_TOPICS,
        b"",
        frozenset({Command.TOPIC_RESPONSE}),
        lambda _code, payload, _now: got.append(bytes(payload)),
        lambda error, _now: got.append(error.message.encode()),
    )
    connection.ask(request, now)
    return request


def answer(payload: bytes) -> bytes:
    """Return a TopicResponse frame."""
    return encode_control(SPECIFIED, Command.TOPIC_RESPONSE, payload)


def test_answers_match_questions_in_order() -> None:
    """There is nothing else to match them by (LWP section 5.1)."""
    connection, _ = connect()
    first: list[bytes] = []
    second: list[bytes] = []
    ask(connection, first)
    ask(connection, second)
    connection.receive_data(answer(b"1") + answer(b"2"), 0.1)
    assert (first, second) == ([b"1"], [b"2"])


def test_an_abandoned_question_swallows_its_answer() -> None:
    """A tombstone keeps the next answer from falling into the wrong hands."""
    connection, _ = connect()
    first: list[bytes] = []
    second: list[bytes] = []
    ask(connection, first).abandoned = True
    ask(connection, second)
    connection.receive_data(answer(b"1") + answer(b"2"), 0.1)
    assert (first, second) == ([], [b"2"])


def test_an_error_answers_the_oldest_question() -> None:
    """An ErrorResponse without a batch id belongs to the head of the queue."""
    connection, handler = connect()
    got: list[bytes] = []
    ask(connection, got)
    body = ErrorBody(ErrorCode.INTERNAL_ERROR, "oops").encode(SPECIFIED)
    connection.receive_data(encode_control(SPECIFIED, Command.ERROR_RESPONSE, body), 0.1)
    assert got == [b"oops"]
    assert handler.notes == []


def test_an_error_with_a_batch_id_answers_no_question() -> None:
    """It is about an Ingest frame (AMB-10)."""
    connection, handler = connect()
    got: list[bytes] = []
    ask(connection, got)
    body = ErrorBody(ErrorCode.INTERNAL_ERROR, "oops", {"batch_id": 7}).encode(SPECIFIED)
    connection.receive_data(encode_control(SPECIFIED, Command.ERROR_RESPONSE, body), 0.1)
    assert got == []
    assert handler.notes == [("oops", 0.1)]


def test_the_wrong_answer_is_the_peers_fault() -> None:
    """A CommitAck to ListTopics means the stream is out of step."""
    connection, _ = connect()
    ask(connection, [])
    connection.receive_data(encode_control(SPECIFIED, Command.COMMIT_ACK, b""), 0.1)
    assert isinstance(connection.fault, RemoteProtocolError)
    assert "LIST_TOPICS" in str(connection.fault)


def test_no_answer_in_time_ends_the_connection() -> None:
    """A late answer could not be told from the next one."""
    connection, _ = connect()
    ask(connection, [], now=1.0)
    connection.receive_data(encode_keepalive(SPECIFIED), 20.0)
    connection.handle_timeout(30.9)
    assert connection.fault is None
    connection.handle_timeout(31.0)
    assert "no answer to LIST_TOPICS in 30.0 s" in str(connection.fault)


def test_a_wrong_payload_crc_names_both_values() -> None:
    """LWP section 11.3, as an error that says where."""
    connection, _ = connect()
    header = bytearray(encode_header(SPECIFIED, Flag.CONTROL, batch_id=0x80, payload=b"{}"))
    connection.receive_data(header + b"[]", 0.1)
    fault = connection.fault
    assert isinstance(fault, ChecksumMismatch)
    assert (fault.field, fault.offset) == ("payload_crc", 36)


def test_an_ingest_frame_from_the_server_is_refused() -> None:
    """No client takes records that way."""
    connection, _ = connect()
    connection.receive_data(encode_header(SPECIFIED, Flag.BATCH_MODE, batch_id=1), 0.1)
    assert "flags 0x04" in str(connection.fault)


def test_nothing_is_believed_after_a_fault() -> None:
    """Frames behind a protocol error are not looked at."""
    connection, handler = connect()
    ack = encode_header(SPECIFIED, Flag.ACK, batch_id=5)
    connection.receive_data(answer(b"to nothing") + ack, 0.1)
    assert handler.notes == []


def test_the_peers_keepalive_is_answered_on_the_wire() -> None:
    """One frame in, one frame out (AMB-23)."""
    connection, _ = connect()
    connection.receive_data(encode_keepalive(SPECIFIED) * 3, 0.1)
    sent = b"".join(connection.data_to_send(0.1))
    assert len(FrameSplitter((SPECIFIED,)).receive_data(sent)) == 1


def test_a_ping_calls_back_with_its_answer() -> None:
    """Keepalives are answered in order, so they serve as barriers (AMB-10)."""
    connection, _ = connect()
    calls: list[float] = []
    connection.ping(0.0, calls.append)
    connection.receive_data(encode_keepalive(SPECIFIED), 0.5)
    assert calls == [0.5]


def test_repr_shows_the_state() -> None:
    """What one wants to see in a debugger."""
    connection, _ = connect()
    ask(connection, [])
    assert "specified requests=1" in repr(connection)
