"""Fetching: prefetch, cuts, the end, truncation, and what cannot be consumed."""

import dataclasses
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from lance_spec.dialect import DEPLOYED, SPECIFIED
from lance_spec.enums import Command
from lance_spec.frames import FrameKind
from lance_spec.limits import END_OFFSET, MAX_RECORD_VALUE
from lance_spec.messages.lwp import Fetch, FetchResponseExtended
from lance_spec.records import encode_record, encode_records


def test_it_begins_at_the_beginning(consumer: Any) -> None:
    """Offset 0, max_fetch_bytes, the topic's number (LWP section 5.8)."""
    rig = consumer.build()
    rig.wire.connect()
    assert rig.data_fetch() == Fetch(topic_id=1, start_offset=0, max_bytes=1000)


def test_records_come_with_their_offsets(consumer: Any) -> None:
    """Offsets are bytes in the topic."""
    rig = consumer.build()
    rig.wire.connect()
    rig.log(encode_records([b"a", b"bcd"])).serve()
    batch = rig.fetcher.take()
    assert batch is not None
    assert [(r.offset, r.next_offset, r.type, r.value) for r in batch] == [
        (0, 6, 1, b"a"),
        (6, 14, 1, b"bcd"),
    ]


def test_one_fetch_is_outstanding_at_a_time(consumer: Any) -> None:
    """The next is sent when the answer is there, without waiting for the application."""
    rig = consumer.build(prefetch_bytes=10_000)
    rig.wire.connect()
    log = rig.log(encode_records([bytes(95)] * 50))
    end, first = rig.wire.take(FrameKind.CONTROL)
    assert rig.wire.take(FrameKind.CONTROL) == []
    log.answer(end)
    log.answer(first)
    assert rig.data_fetch().start_offset == 1000


def test_prefetch_is_bounded(consumer: Any) -> None:
    """While prefetch_bytes wait for the application nothing more is asked."""
    rig = consumer.build(prefetch_bytes=2000, max_fetch_bytes=1000)
    rig.wire.connect()
    log = rig.log(encode_records([bytes(95)] * 100))
    for _ in range(20):
        log.serve()
    assert rig.fetcher.fetch_buffer.buffered == 2000
    assert rig.fetcher.fetches == 2
    rig.fetcher.take()
    log.serve()
    assert rig.fetcher.fetches == 3


def test_the_end_pauses_for_poll_interval(consumer: Any) -> None:
    """An empty answer at the position: ask again after a while."""
    rig = consumer.build()
    rig.wire.connect()
    log = rig.log(b"")
    log.serve()
    rig.wire.advance(0.04)
    assert rig.wire.take(FrameKind.CONTROL) == []
    log.data = encode_record(b"new")
    rig.wire.advance(0.01)
    log.serve()
    assert rig.drain() == [b"new"]


def test_stop_at_end_stops_at_the_end_there_was(consumer: Any) -> None:
    """Records that come while reading are not waited for, and not handed out (AMB-06)."""
    rig = consumer.build(stop_at_end=True)
    rig.wire.connect()
    log = rig.log(encode_records([b"a", b"b"]))
    for frame in rig.wire.take(FrameKind.CONTROL):
        log.answer(frame)
    log.data += encode_record(b"later")
    assert log.consume() == [b"a", b"b"]
    assert rig.fetcher.ended


def test_stop_at_end_of_an_empty_log_ends_at_once(consumer: Any) -> None:
    """Nothing is asked for but the end."""
    rig = consumer.build(stop_at_end=True)
    rig.wire.connect()
    assert rig.log(b"").consume() == []


def test_start_at_the_end_skips_what_is_there(consumer: Any) -> None:
    """The end is asked for with the sentinel offset 2**64-1 (AMB-06)."""
    rig = consumer.build("end")
    rig.wire.connect()
    log = rig.log(encode_record(b"old"))
    (asked,) = rig.wire.take(FrameKind.CONTROL)
    assert Fetch.decode(asked.payload).start_offset == END_OFFSET
    log.answer(asked)
    log.data += encode_record(b"new")
    log.serve()
    assert rig.drain() == [b"new"]


def test_seek_drops_what_was_fetched_and_ignores_late_answers(consumer: Any) -> None:
    """The answer to a Fetch from before falls into its tombstone."""
    rig = consumer.build()
    rig.wire.connect()
    values = [b"a", b"b", b"c"]
    log = rig.log(encode_records(values))
    late = rig.wire.take(FrameKind.CONTROL)
    rig.fetcher.seek(12, rig.clock.now)
    for frame in late:
        log.answer(frame)
    log.serve()
    assert rig.drain() == [b"c"]


def test_a_lost_connection_goes_on_where_it_was(consumer: Any) -> None:
    """Nothing is lost and nothing comes twice."""
    rig = consumer.build(stop_at_end=True, max_fetch_bytes=60)
    rig.wire.connect()
    values = [bytes([n]) * 20 for n in range(20)]
    log = rig.log(encode_records(values))
    log.serve()
    log.serve()
    found = rig.drain()
    rig.wire.cut()
    rig.wire.advance(1.0)
    rig.wire.connect()
    assert found + log.consume() == values


def test_a_record_larger_than_the_fetch_is_asked_for_again(consumer: Any) -> None:
    """From its start and large enough (AMB-19); then the size is the usual one again."""
    rig = consumer.build(max_fetch_bytes=100)
    rig.wire.connect()
    log = rig.log(encode_records([bytes(500), b"small"]))
    log.serve()
    asked = rig.data_fetch()
    assert (asked.start_offset, asked.max_bytes) == (0, 505)
    data, count = log.read(0, 505)
    rig.wire.data(505, data, count)
    assert rig.drain() == [bytes(500)]
    assert rig.data_fetch().max_bytes == 100


def test_the_largest_record_there_can_be_is_fetched(consumer: Any) -> None:
    """16 MiB of value and its header in one Fetch (AMB-32)."""
    rig = consumer.build(stop_at_end=True, max_fetch_bytes=1000)
    rig.wire.connect()
    values = [b"before", bytes(MAX_RECORD_VALUE), b"after"]
    assert rig.log(encode_records(values)).consume() == values


def test_a_deployed_server_needs_two_fetches_for_the_largest_record(consumer: Any) -> None:
    """There an answer is smaller than such a record: its parts are put together (AMB-32)."""
    consumer.dialects, consumer.speaks = (DEPLOYED,), DEPLOYED
    rig = consumer.build(stop_at_end=True, max_fetch_bytes=1000)
    rig.wire.connect()
    values = [bytes(MAX_RECORD_VALUE - 100), b"after"]
    assert rig.log(encode_records(values), strict=False).consume() == values


def test_a_gap_is_skipped(consumer: Any) -> None:
    """An empty answer with a later next_offset (AMB-29)."""
    rig = consumer.build()
    rig.wire.connect()
    rig.data_fetch()
    rig.wire.data(0, b"", 0)  # the answer to the question for the end
    rig.wire.data(4096, b"", 0)
    asked = [fetch.start_offset for fetch in rig.fetches()]
    assert 4096 in asked


@given(
    values=st.lists(st.binary(max_size=60), max_size=40),
    max_fetch=st.integers(5, 120),
    strict=st.booleans(),
    most=st.integers(1, 150),
)
def test_any_server_and_any_size_yield_exactly_the_records(
    new_consumer: Any, values: list[bytes], max_fetch: int, strict: bool, most: int
) -> None:
    """Cut at records or anywhere, as small as it may be: every record once, in order."""
    rig = new_consumer()
    dialect = SPECIFIED if strict else DEPLOYED
    rig.dialects, rig.speaks = (dialect,), dialect
    rig.build(stop_at_end=True, max_fetch_bytes=max_fetch)
    rig.wire.connect()
    log = rig.log(encode_records(values), strict=strict)
    assert log.consume(1 << 30 if strict else most, turns=3000) == values
    assert rig.fetcher.error is None


def test_the_longer_header_is_read_on_request(consumer: Any) -> None:
    """fetch_header=24: start, end and high water mark before the data (AMB-05)."""
    dialect = dataclasses.replace(SPECIFIED, fetch_header=24)
    consumer.dialects = (dialect,)
    rig = consumer.build()
    rig.wire.connect()
    data = encode_records([b"a", b"b"])
    for fetch in rig.fetches():
        start = len(data) if fetch.start_offset == END_OFFSET else fetch.start_offset
        answer = FetchResponseExtended(start, len(data), len(data), data[start:])
        rig.wire.control(Command.FETCH_RESPONSE, answer.encode())
    assert rig.drain() == [b"a", b"b"]
    assert rig.fetcher.end == len(data)
