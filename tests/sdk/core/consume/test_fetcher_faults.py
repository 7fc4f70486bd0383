"""Fetching where the log, the place or the server is not as it should be."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_sdk._protocol.hosts import Endpoint
from lance_sdk._protocol.session_handler import SessionState
from lance_sdk.errors import (
    CorruptRecord,
    InvalidOffset,
    LogTruncated,
    MisalignedOffset,
    OffsetOutOfRange,
    RemoteProtocolError,
    TopicChanged,
)
from lance_spec.bodies import TopicInfo
from lance_spec.dialect import DEPLOYED
from lance_spec.enums import Command, ErrorCode
from lance_spec.frames import FrameKind
from lance_spec.limits import END_OFFSET, MAX_PAYLOAD, MAX_RECORD_VALUE
from lance_spec.messages.lwp import Fetch, FetchResponse
from lance_spec.records import encode_record, encode_records, scan_records


def test_no_fetch_asks_for_more_than_the_dialect_allows(consumer: Any) -> None:
    """A header that promises more cannot make it (AMB-32)."""
    rig = consumer.build(max_fetch_bytes=100)
    rig.wire.connect()
    huge = b"\x01" + MAX_RECORD_VALUE.to_bytes(4, "little") + bytes(95)
    for frame in rig.wire.take(FrameKind.CONTROL):
        if Fetch.decode(frame.payload).start_offset == END_OFFSET:
            rig.wire.data(1 << 40, b"", 0)
        else:
            rig.wire.data(100, huge, 0)
    assert rig.data_fetch().max_bytes == MAX_PAYLOAD


def test_a_seek_into_a_record_raises_instead_of_decoding_garbage(consumer: Any) -> None:
    """A count of 0 with data says that the start is not a boundary (AMB-19)."""
    rig = consumer.build(3, stop_at_end=True)
    rig.wire.connect()
    log = rig.log(encode_records([b"\x01\x01\x00\x00\x00\x00" * 3, b"b"]))
    assert log.consume() == []
    assert isinstance(rig.fetcher.error, MisalignedOffset)
    assert rig.fetcher.error.offset == 3


@given(st.integers(1, 200), st.lists(st.binary(min_size=1, max_size=30), min_size=1))
def test_no_misaligned_start_ever_yields_a_record(
    new_consumer: Any, offset: int, values: list[bytes]
) -> None:
    """From a specified server: wherever inside a record one starts, it raises."""
    data = encode_records(values)
    inside = scan_records(data[:offset]).fault is not None and offset < len(data)
    rig = new_consumer().build(offset, stop_at_end=True, max_fetch_bytes=50)
    rig.wire.connect()
    found = rig.log(data).consume()
    if inside:
        assert found == []
        assert isinstance(rig.fetcher.error, MisalignedOffset | CorruptRecord)


def test_bytes_that_are_no_record_are_named(consumer: Any) -> None:
    """What came before is handed out, then the error with the offset."""
    consumer.dialects, consumer.speaks = (DEPLOYED,), DEPLOYED
    rig = consumer.build()
    rig.wire.connect()
    rig.log(encode_record(b"good") + b"\x01" + b"\xff" * 20, strict=False).serve()
    assert rig.drain() == [b"good"]
    assert isinstance(rig.fetcher.error, CorruptRecord)
    assert rig.fetcher.error.offset == 9


def test_a_log_that_ends_inside_a_record_is_an_error_at_its_end(consumer: Any) -> None:
    """With stop_at_end there is no point in waiting for the rest."""
    consumer.dialects, consumer.speaks = (DEPLOYED,), DEPLOYED
    rig = consumer.build(stop_at_end=True)
    rig.wire.connect()
    log = rig.log(encode_records([b"good", b"cut short"])[:-3], strict=False)
    assert log.consume() == [b"good"]
    assert isinstance(rig.fetcher.error, CorruptRecord)


def test_beyond_the_end_is_waited_for_and_then_raises(consumer: Any) -> None:
    """CATCHING_UP for 15 seconds with the same end: the log was truncated (AMB-31)."""
    rig = consumer.build(5000)
    rig.wire.connect()
    log, begun = rig.log(encode_record(b"x")), rig.clock.now
    while rig.fetcher.error is None:
        log.serve()
        rig.wire.advance(0.1)
    assert isinstance(rig.fetcher.error, LogTruncated)
    assert 15 <= rig.clock.now - begun <= 21
    assert "ends at 6, before the position 5000" in str(rig.fetcher.error)


def two_hosts(consumer: Any) -> Any:
    """Return a consumer at offset 600 of a log that two hosts serve."""
    consumer.endpoints = (Endpoint("one"), Endpoint("two"))
    return consumer.build(600, hosts=2)


def leave(rig: Any, log: Any) -> None:
    """Answer until the consumer leaves the host or ends."""
    while not rig.wire.actions and rig.fetcher.error is None:
        log.serve()
        if not rig.wire.actions:
            rig.wire.advance(0.1)


def test_a_host_that_lags_is_left_for_another(consumer: Any) -> None:
    """What one host does not have is not taken for truncated: another one has it (AMB-31)."""
    rig = two_hosts(consumer)
    rig.wire.connect()
    record = encode_record(bytes(55))
    log = rig.log(record)
    leave(rig, log)
    rig.wire.hang_up()
    assert rig.wire.actions[0].host == "two"
    rig.wire.connect()
    log.data = record * 11
    log.serve()
    assert rig.fetcher.error is None
    assert rig.drain() == [bytes(55)]


def test_a_log_is_truncated_when_no_host_knows_more(consumer: Any) -> None:
    """All were asked, for 15 seconds."""
    rig = two_hosts(consumer)
    log, begun = rig.log(encode_record(b"x")), rig.clock.now
    rig.wire.connect()
    while rig.fetcher.error is None:
        leave(rig, log)
        if rig.fetcher.error is None:
            rig.wire.hang_up()
            rig.wire.advance(3.0)
            rig.wire.connect()
    assert isinstance(rig.fetcher.error, LogTruncated)
    assert 15 <= rig.clock.now - begun < 60


def test_a_follower_that_catches_up_is_waited_for(consumer: Any) -> None:
    """While the end moves nobody gives up (AMB-18)."""
    rig = consumer.build(600)
    rig.wire.connect()
    record = encode_record(bytes(55))
    log = rig.log(b"")
    for size in range(12):
        log.data = record * size
        log.serve()
        rig.wire.advance(5.0)
        if rig.session.state is SessionState.WAITING:
            rig.wire.connect()
    log.serve()
    assert rig.fetcher.error is None
    assert rig.drain() == [bytes(55)]


def test_on_truncation_reset_goes_on_at_the_end_loudly(consumer: Any) -> None:
    """The position moves to the end, and the log says so (AMB-31)."""
    rig = consumer.build(5000, reset=True)
    rig.wire.connect()
    log = rig.log(encode_record(b"x"))
    for _ in range(220):
        log.serve()
        rig.wire.advance(0.1)
    log.data += encode_record(b"new")
    for _ in range(5):
        log.serve()
        rig.wire.advance(0.1)
    assert rig.drain() == [b"new"]
    assert any("going on at its end" in repr(event) for event in rig.wire.events)


def test_the_beginning_moves_with_retention(consumer: Any) -> None:
    """start="beginning" means the earliest there is (AMB-29)."""
    rig = consumer.build("beginning")
    rig.wire.connect()
    for frame in rig.wire.take(FrameKind.CONTROL):
        if Fetch.decode(frame.payload).start_offset == END_OFFSET:
            rig.wire.data(900, b"", 0)
        else:
            rig.wire.error(ErrorCode.INVALID_OFFSET, "gone", earliest=700)
    assert any(fetch.start_offset == 700 for fetch in rig.fetches())


@pytest.mark.parametrize("earliest", [0, END_OFFSET, 2**70])
def test_a_beginning_that_does_not_move_forward_is_an_error(consumer: Any, earliest: int) -> None:
    """Else the same question would be put to such a server for ever, as fast as it answers."""
    rig = consumer.build("beginning", stop_at_end=True)
    rig.wire.connect()
    rig.wire.take(FrameKind.CONTROL)
    rig.wire.data(900, b"", 0)
    rig.wire.take(FrameKind.CONTROL)
    rig.wire.error(ErrorCode.INVALID_OFFSET, "gone", earliest=earliest)
    assert isinstance(rig.fetcher.error, InvalidOffset)


def test_a_start_beyond_the_end_is_not_an_empty_log(consumer: Any) -> None:
    """With stop_at_end too it raises, once the log has had time to grow (AMB-31)."""
    rig = consumer.build(20_000, stop_at_end=True)
    rig.wire.connect()
    assert rig.log(encode_record(b"x")).consume() == []
    assert isinstance(rig.fetcher.error, LogTruncated)
    assert "the log ends at 6, before the position 20000" in str(rig.fetcher.error)


def test_a_start_beyond_the_end_may_be_reset(consumer: Any) -> None:
    """on_truncation="reset" goes on at the end, which is where it stops."""
    rig = consumer.build(20_000, stop_at_end=True, reset=True)
    rig.wire.connect()
    assert rig.log(encode_record(b"x")).consume() == []
    assert rig.fetcher.error is None
    assert rig.fetcher.offset == 6


def test_an_offset_that_is_gone_raises_with_the_earliest(consumer: Any) -> None:
    """An explicit offset is not moved behind the program's back."""
    rig = consumer.build(6)
    rig.wire.connect()
    rig.wire.take(FrameKind.CONTROL)
    rig.wire.data(900, b"", 0)
    rig.wire.error(ErrorCode.INVALID_OFFSET, "gone", earliest=700)
    assert isinstance(rig.fetcher.error, InvalidOffset)
    assert rig.fetcher.error.earliest == 700


def test_a_refusal_for_the_moment_is_tried_again(consumer: Any) -> None:
    """RateLimited: after the pause the server asked for."""
    rig = consumer.build()
    rig.wire.connect()
    asked = rig.wire.take(FrameKind.CONTROL)
    for _ in asked:
        rig.wire.error(ErrorCode.RATE_LIMITED, "slow", retry_after_ms=400)
    rig.wire.advance(0.39)
    assert rig.wire.take(FrameKind.CONTROL) == []
    rig.wire.advance(0.5)
    rig.log(encode_record(b"x")).serve()
    assert rig.drain() == [b"x"]


def test_a_refusal_for_good_is_raised(consumer: Any) -> None:
    """OffsetOutOfRange is the program's to decide."""
    rig = consumer.build()
    rig.wire.connect()
    for _ in rig.wire.take(FrameKind.CONTROL):
        rig.wire.error(ErrorCode.OFFSET_OUT_OF_RANGE, "no")
    assert isinstance(rig.fetcher.error, OffsetOutOfRange)


def test_a_header_of_the_other_form_names_the_option(consumer: Any) -> None:
    """Bytes that do not add up point at fetch_header (AMB-05)."""
    rig = consumer.build()
    rig.wire.connect()
    rig.wire.take(FrameKind.CONTROL)
    extended = (0).to_bytes(8, "little") + (6).to_bytes(8, "little") * 2 + encode_record(b"x")
    rig.wire.control(Command.FETCH_RESPONSE, extended)
    assert isinstance(rig.fetcher.error, RemoteProtocolError)
    assert "fetch_header=24" in str(rig.fetcher.error)


def test_next_offset_must_not_go_back(consumer: Any) -> None:
    """A server that sends data and points before it is not followed."""
    rig = consumer.build(6)
    rig.wire.connect()
    rig.wire.take(FrameKind.CONTROL)
    rig.wire.data(900, b"", 0)
    response = FetchResponse(6, 6, 1, encode_record(b"x"))
    rig.wire.control(Command.FETCH_RESPONSE, response.encode())
    assert isinstance(rig.fetcher.error, RemoteProtocolError)


def test_a_topic_made_anew_is_not_read_on(consumer: Any) -> None:
    """Its old offsets mean nothing (AMB-30)."""
    rig = consumer.build()
    rig.wire.connect()
    rig.wire.cut()
    rig.wire._topic = TopicInfo(id=2, name="orders", created_at=2)
    rig.wire.advance(1.0)
    rig.wire.connect()
    assert isinstance(rig.fetcher.error, TopicChanged)
    rig.wire.hang_up()
    assert rig.session.finished


def test_a_fetch_for_another_node_follows_the_leader(consumer: Any) -> None:
    """NotLeader: the next connection goes to leader_addr (LWP section 12.4)."""
    rig = consumer.build()
    rig.wire.connect()
    rig.fetches()
    rig.wire.error(ErrorCode.NOT_LEADER, "not here", leader_addr="10.0.0.7:2000")
    rig.wire.hang_up()
    rig.wire.advance(0.0)
    assert rig.wire.actions[0].host == "10.0.0.7"
    rig.wire.connect()
    rig.log(encode_record(b"x")).serve()
    assert rig.drain() == [b"x"]


def test_answers_that_advance_without_records_are_an_error(consumer: Any) -> None:
    """A log has few gaps one after the other; the error says what the server did."""
    rig = consumer.build()
    rig.wire.connect()
    for _ in range(2000):
        for fetch in rig.fetches():
            end = fetch.start_offset == END_OFFSET
            rig.wire.data(1 << 20 if end else fetch.start_offset + 1, b"", 0)
        if rig.fetcher.error is not None:
            break
    assert isinstance(rig.fetcher.error, RemoteProtocolError)
    assert "answers without a record" in str(rig.fetcher.error)


def test_an_answer_above_what_was_asked_for_is_an_error(consumer: Any) -> None:
    """Both sizes are named."""
    rig = consumer.build(max_fetch_bytes=100)
    rig.wire.connect()
    data = encode_records([b"x" * 500])
    for fetch in rig.fetches():
        end = fetch.start_offset == END_OFFSET
        rig.wire.data(len(data), b"" if end else data, int(not end))
    assert "sent 505 bytes from offset 0 where 100 were asked for" in str(rig.fetcher.error)


def test_a_server_that_breaks_the_protocol_again_and_again_is_given_up(consumer: Any) -> None:
    """Its answers would be the same for ever; the last cause is in the error."""
    rig = consumer.build()
    for _ in range(3):
        assert rig.fetcher.error is None
        rig.wire.connect()
        rig.fetches()
        rig.wire.control(Command.TOPIC_RESPONSE, b"{}")
        rig.wire.turn()
        rig.wire.cut()
        rig.wire.advance(5.0)
    assert isinstance(rig.fetcher.error, RemoteProtocolError)
    assert "3 times in a row" in str(rig.fetcher.error)
