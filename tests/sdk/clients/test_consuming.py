"""Consumers, on three clients, against a scripted server on a real socket."""

from typing import Any

import pytest

from lance_sdk import Record, RecordBatch
from lance_sdk._protocol.consume import consume_errors
from lance_sdk.errors import (
    ClosedError,
    ConfigError,
    CorruptRecord,
    LogTruncated,
    MisalignedOffset,
    NotOpenError,
    OpaqueRecords,
    StorageError,
    TopicChanged,
    TopicNotFound,
)
from lance_sdk.testing import FakePeer, FakeServer
from lance_spec.enums import Command, ErrorCode
from lance_spec.frames import Frame, encode_control
from lance_spec.limits import END_OFFSET
from lance_spec.messages.lwp import Fetch, FetchResponse
from lance_spec.records import encode_record, encode_records

pytestmark = pytest.mark.anyio

VALUES = [b"record %d" % number * (1 + number % 7) for number in range(100)]
LARGE = [bytes([number]) * 40_000 for number in range(20)]
"""More than one read of a client's takes."""


def fill(server: FakeServer, values: list[bytes] = VALUES) -> bytes:
    """Store records in the server's topic 1 and return its log."""
    server.topics.append(1, encode_records(values))
    return server.topics.log(1)


async def collect(consumer: Any) -> list[Record]:
    """Return everything up to the end."""
    return [record async for record in consumer]


async def test_records_come_back_with_offset_type_and_topic(api: Any, server: FakeServer) -> None:
    """A record knows where it stands and where the next one does."""
    server.topics.append(1, encode_record(b"a") + encode_record(b"{}", 2))
    async with api.consumer(server.url(), stop_at_end=True) as consumer:
        records = await collect(consumer)
    assert records == [Record(0, 1, b"a", "orders"), Record(6, 2, b"{}", "orders")]
    assert [record.next_offset for record in records] == [6, 13]


async def test_batches_hold_the_same_records(api: Any, server: FakeServer) -> None:
    """The faster way to read."""
    fill(server)
    options = {"stop_at_end": True, "max_fetch_bytes": 300}
    async with api.consumer(server.url(), **options) as consumer:
        batches = [batch async for batch in consumer.batches()]
    assert len(batches) > 5
    assert all(isinstance(batch, RecordBatch) for batch in batches)
    assert [record.value for batch in batches for record in batch] == VALUES
    assert sum(map(len, batches)) == len(VALUES)
    assert [b.next_offset for b in batches[:-1]] == [b.offset for b in batches[1:]]


@pytest.mark.parametrize("size", [20, 300, 100_000])
async def test_a_stop_ends_the_reading(api: Any, server: FakeServer, size: int) -> None:
    """At a record's end; nothing after it is asked for."""
    log = fill(server)
    stop = sum(len(encode_record(value)) for value in VALUES[:7])
    reach: list[int] = []

    def note(_peer: FakePeer, frame: Frame) -> bool:
        if frame.batch_id == Command.FETCH and _start(frame) != END_OFFSET:
            fetch = Fetch.decode(frame.payload)
            reach.append(fetch.start_offset + fetch.max_bytes)
        return False

    server.on_control = note
    options = {"stop_at": stop, "max_fetch_bytes": size}
    async with api.consumer(server.url(), **options) as consumer:
        assert [record.value for record in await collect(consumer)] == VALUES[:7]
        assert consumer.end == len(log)
    assert max(reach) <= max(stop, size)


async def test_a_stop_after_the_end_is_the_end(api: Any, server: FakeServer) -> None:
    """A log that is shorter is not waited for."""
    log = fill(server)
    async with api.consumer(server.url(), stop_at=len(log) + 1000) as consumer:
        assert [record.value for record in await collect(consumer)] == VALUES


@pytest.mark.parametrize("cut", [1, 4, 5, 6, 17, 64, 1000])
async def test_any_cut_yields_every_record(api: Any, deployed: FakeServer, cut: int) -> None:
    """A deployed server cuts its answers anywhere (AMB-19)."""
    fill(deployed, VALUES[:20])
    deployed.topics.cut = cut
    async with api.consumer(deployed.url(), stop_at_end=True) as consumer:
        assert [record.value for record in await collect(consumer)] == VALUES[:20]


async def test_records_larger_than_a_fetch_are_read_whole(api: Any, server: FakeServer) -> None:
    """However small max_fetch_bytes is."""
    values = [b"small", bytes(10_000), b"small", bytes(3_000)]
    fill(server, values)
    options = {"stop_at_end": True, "max_fetch_bytes": 10}
    async with api.consumer(server.url(), **options) as consumer:
        assert [record.value for record in await collect(consumer)] == values


async def test_a_dropped_connection_loses_and_doubles_nothing(api: Any, server: FakeServer) -> None:
    """The consumer goes on where it was."""
    fill(server)
    fetches = 0

    def drop_every_third(peer: FakePeer, frame: Frame) -> bool:
        nonlocal fetches
        if frame.batch_id != Command.FETCH or peer.number > 5:
            return False  # the third could be the first with data each time, for ever
        fetches += 1
        if fetches % 3 == 0:
            peer.close()
            return True
        return False

    server.on_control = drop_every_third
    options = {"stop_at_end": True, "max_fetch_bytes": 200}
    async with api.consumer(server.url(), **options) as consumer:
        assert [record.value for record in await collect(consumer)] == VALUES
    assert server.accepted > 3


async def test_half_an_answer_is_no_answer(api: Any, server: FakeServer) -> None:
    """A connection that ends in the middle of a frame leaves nothing behind."""
    log = fill(server)

    def cut_first(peer: FakePeer, frame: Frame) -> bool:
        data = frame.batch_id == Command.FETCH and _start(frame) != END_OFFSET
        if data and peer.number == 1:
            whole = server.topics.read(log, 0, 500)[0]
            peer.send(encode_half(server, whole))
            peer.close()
            return True
        return False

    server.on_control = cut_first
    async with api.consumer(server.url(), stop_at_end=True) as consumer:
        assert [record.value for record in await collect(consumer)] == VALUES


def large_answer(server: FakeServer, frame: Frame) -> bytes:
    """Return all records from where a Fetch asks as one frame."""
    start = _start(frame)
    data = server.topics.log(1)[start:]
    payload = FetchResponse(start + len(data), len(data), 1, data).encode()
    return encode_control(server.dialect, Command.FETCH_RESPONSE, payload)


async def test_a_large_answer_may_come_in_pieces(api: Any, server: FakeServer) -> None:
    """It is put together as it was."""
    fill(server, LARGE)

    def piecewise(peer: FakePeer, frame: Frame) -> bool:
        if frame.batch_id != Command.FETCH or _start(frame) == END_OFFSET:
            return False
        answer = large_answer(server, frame)
        for place in range(0, len(answer), 70_000):
            peer.send(answer[place : place + 70_000])
        return True

    server.on_control = piecewise
    async with api.consumer(server.url(), stop_at_end=True) as consumer:
        assert [record.value for record in await collect(consumer)] == LARGE


async def test_the_rest_of_a_large_answer_is_not_waited_for_for_ever(
    api: Any, server: FakeServer
) -> None:
    """Its time runs out, and another connection brings it."""
    fill(server, LARGE)

    def halve_first(peer: FakePeer, frame: Frame) -> bool:
        if frame.batch_id != Command.FETCH or _start(frame) == END_OFFSET or peer.number > 1:
            return False
        answer = large_answer(server, frame)
        peer.send(answer[: len(answer) // 2])
        return True

    server.on_control = halve_first
    options = {"stop_at_end": True, "request_timeout": 1.0}
    async with api.consumer(server.url(), **options) as consumer:
        assert [record.value for record in await collect(consumer)] == LARGE
    assert server.accepted > 1


async def test_a_consumer_closes_while_half_of_a_large_answer_is_there(
    api: Any, server: FakeServer
) -> None:
    """Nobody waits for the rest."""
    fill(server, LARGE)
    halved: list[int] = []

    def halve(peer: FakePeer, frame: Frame) -> bool:
        if frame.batch_id != Command.FETCH or _start(frame) == END_OFFSET:
            return False
        answer = large_answer(server, frame)
        peer.send(answer[: len(answer) // 2])
        halved.append(peer.number)
        return True

    server.on_control = halve
    async with api.consumer(server.url(), stop_at_end=True) as consumer:
        while not halved:
            assert await consumer.poll(0.01) is None
    assert halved == [1]


def _start(frame: Frame) -> int:
    return Fetch.decode(frame.payload).start_offset


def encode_half(server: FakeServer, data: bytes) -> bytes:
    """Return a FetchResponse frame without its second half."""
    payload = FetchResponse(len(data), len(data), 1, data).encode()
    frame = encode_control(server.dialect, Command.FETCH_RESPONSE, payload)
    return frame[: len(frame) // 2]


async def test_a_seek_reads_again_from_there(api: Any, server: FakeServer) -> None:
    """To an offset, to the beginning, to the end."""
    fill(server)
    async with api.consumer(server.url(), stop_at_end=True) as consumer:
        records = await collect(consumer)
        await consumer.seek(records[50].offset)
        assert [r.value for r in await collect(consumer)] == VALUES[50:]
        await consumer.seek(records[98].next_offset)
        assert [r.value for r in await collect(consumer)] == VALUES[99:]
        await consumer.seek("beginning")
        assert [r.value for r in await collect(consumer)] == VALUES
        await consumer.seek("end")
        assert await collect(consumer) == []


async def test_a_seek_inside_a_loop_takes_effect_at_once(api: Any, server: FakeServer) -> None:
    """The rest of the batch at hand is not handed out."""
    fill(server)
    found = []
    async with api.consumer(server.url(), stop_at_end=True) as consumer:
        async for record in consumer:
            found.append(record.value)
            if len(found) == 3:
                await consumer.seek("beginning")
    assert found == VALUES[:3] + VALUES


async def test_a_seek_into_a_record_raises(api: Any, server: FakeServer) -> None:
    """Instead of decoding garbage (AMB-19); another seek puts it right."""
    fill(server)
    async with api.consumer(server.url(), start=3, stop_at_end=True) as consumer:
        with pytest.raises(MisalignedOffset, match="offset 3 lies inside a record"):
            await collect(consumer)
        await consumer.seek("beginning")
        assert len(await collect(consumer)) == len(VALUES)


async def test_a_place_that_is_none_is_refused(api: Any, server: FakeServer) -> None:
    """With what would be one."""
    async with api.consumer(server.url()) as consumer:
        with pytest.raises(ConfigError, match=r"'beginning' .*a byte offset or a datetime"):
            await consumer.seek("middle")
    with pytest.raises(ConfigError):
        api.consumer(server.url(), start=-1)


async def test_start_at_an_offset_and_in_the_url(api: Any, server: FakeServer) -> None:
    """start=offset, or ?start=end."""
    log = fill(server, [b"a", b"b"])
    async with api.consumer(server.url(), start=6, stop_at_end=True) as consumer:
        assert [r.value for r in await collect(consumer)] == [b"b"]
    async with api.consumer(server.url(start="end"), stop_at_end=True) as consumer:
        assert await collect(consumer) == []
        assert consumer.position == len(log)


async def test_following_sees_what_is_appended(api: Any, server: FakeServer) -> None:
    """Without stop_at_end the loop waits for more."""
    fill(server, [b"old"])
    async with api.consumer(server.url(), poll_interval=0.001) as consumer:
        found = []
        async for record in consumer:
            found.append(record.value)
            if record.value == b"old":
                server.topics.append(1, encode_record(b"new"))
            else:
                break
    assert found == [b"old", b"new"]


async def test_poll_waits_no_longer_than_it_is_told(api: Any, server: FakeServer) -> None:
    """None means that there was nothing; later there is."""
    async with api.consumer(server.url(), poll_interval=0.001) as consumer:
        assert await consumer.poll(timeout=0.01) is None
        assert await consumer.poll(timeout=0) is None
        fill(server, [b"a"])
        batch = await consumer.poll(timeout=10)
        assert [record.value for record in batch] == [b"a"]


async def test_a_loop_left_in_the_middle_goes_on_there(api: Any, server: FakeServer) -> None:
    """Position is behind what was handed out, never behind what was fetched."""
    fill(server)
    async with api.consumer(server.url(), stop_at_end=True) as consumer:
        async for record in consumer:
            if record.value == VALUES[9]:
                break
        assert consumer.position == record.next_offset
        async for again in consumer:
            assert again.value == VALUES[10]
            break
        rest = await consumer.poll()
        assert [record.value for record in rest] == VALUES[11:]
        assert consumer.position == len(server.topics.log(1))


async def test_position_end_and_lag(api: Any, server: FakeServer) -> None:
    """In bytes; unknown is None, never a guess."""
    log = fill(server, [b"a", b"b"])
    consumer = api.consumer(server.url(), stop_at_end=True, max_fetch_bytes=6)
    assert (consumer.position, consumer.end, consumer.lag) == (0, None, None)
    async with consumer:
        batch = await consumer.poll()
        assert (batch.offset, batch.count) == (0, 1)
        assert (consumer.position, consumer.end, consumer.lag) == (6, len(log), 6)
        await consumer.poll()
        assert consumer.lag == 0
        assert await consumer.poll() is None
        stats = consumer.stats()
    assert (stats.records, stats.fetched_bytes, stats.position) == (2, 12, 12)


async def test_prefetch_stays_within_its_bound(api: Any, server: FakeServer, until: Any) -> None:
    """A program that reads slowly does not fill its memory."""
    fill(server, [bytes(995)] * 200)
    options = {"max_fetch_bytes": 5000, "prefetch_bytes": 20_000}
    async with api.consumer(server.url(), **options) as consumer:
        await until(server, lambda: server.frames.count("FETCH") >= 4)
        await consumer.poll()
        stats = consumer.stats()
        assert stats.buffered_bytes <= 25_000
        assert stats.fetches <= 8


async def test_what_is_no_record_is_named_after_the_good_ones(
    api: Any, deployed: FakeServer
) -> None:
    """The offset of the damage is in the error, and it is raised again."""
    fill(deployed, [b"good"])
    deployed.topics.append(1, b"\x01" + b"\xff" * 9)
    async with api.consumer(deployed.url(), stop_at_end=True) as consumer:
        good = await consumer.poll()
        assert [record.value for record in good] == [b"good"]
        with pytest.raises(CorruptRecord, match="the bytes at offset 9 are not a record") as caught:
            await collect(consumer)
        assert caught.value.offset == 9
        with pytest.raises(CorruptRecord):
            await consumer.poll()


async def test_a_truncated_log_is_not_waited_for_forever(
    api: Any, server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It raises; with on_truncation="reset" it goes on at the new end (AMB-31)."""
    monkeypatch.setattr(consume_errors, "BELIEVED_AFTER", 0.0)
    log = fill(server)
    options = {"backoff_cap": 0.002, "poll_interval": 0.001}
    async with api.consumer(server.url(), start=len(log), **options) as consumer:
        assert await consumer.poll(timeout=0.01) is None
        server.topics.truncate(1, 0)
        with pytest.raises(LogTruncated):
            await consumer.poll(timeout=30)
    options["on_truncation"] = "reset"
    async with api.consumer(server.url(), start=len(log), **options) as consumer:
        while consumer.position > 0:
            await consumer.poll(timeout=0.005)
        server.topics.append(1, encode_record(b"new"))
        batch = await consumer.poll(timeout=30)
        assert [record.value for record in batch] == [b"new"]


async def test_damage_on_the_server_is_raised_with_the_way_on(api: Any, server: FakeServer) -> None:
    """StorageError carries the offset after the damage (AMB-39)."""
    fill(server, [b"a", b"b"])

    def damaged(peer: FakePeer, frame: Frame) -> bool:
        if frame.batch_id == Command.FETCH and _start(frame) == 0:
            peer.error(ErrorCode.STORAGE_ERROR, "damaged", next_offset=6)
            return True
        return False

    server.on_control = damaged
    async with api.consumer(server.url(), stop_at_end=True) as consumer:
        with pytest.raises(StorageError) as caught:
            await collect(consumer)
        await consumer.seek(caught.value.details["next_offset"])
        assert [r.value for r in await collect(consumer)] == [b"b"]


async def test_a_topic_made_anew_ends_the_consumer(api: Any, server: FakeServer) -> None:
    """Its old offsets mean nothing (AMB-30)."""
    fill(server, [b"a"])
    async with api.consumer(server.url(), poll_interval=0.001) as consumer:
        assert await consumer.poll(timeout=10) is not None
        server.topics._names = {5: "orders"}
        server.drop_all()
        with pytest.raises(TopicChanged, match="deleted and created again"):
            await consumer.poll(timeout=10)


async def test_a_missing_topic_says_how_to_create_it(api: Any, server: FakeServer) -> None:
    """A consumer never creates one by itself."""
    with pytest.raises(TopicNotFound, match="lwp topics create absent"):
        async with api.consumer(server.url("absent")):
            pytest.fail("it must not open")


async def test_a_number_addresses_a_topic_too(api: Any, server: FakeServer) -> None:
    """Records then name it as #number."""
    fill(server, [b"a"])
    base = server.url("")
    async with api.consumer(f"{base}?topic_id=1", stop_at_end=True) as consumer:
        assert [record.topic for record in await collect(consumer)] == ["#1"]
    with pytest.raises(TopicNotFound, match="no topic has the number 77"):
        async with api.consumer(f"{base}?topic_id=77"):
            pytest.fail("it must not open")


async def test_use_before_open_and_after_close_is_refused(api: Any, server: FakeServer) -> None:
    """With an error, never with a hang."""
    fill(server)
    consumer = api.consumer(server.url())
    with pytest.raises(NotOpenError):
        await consumer.poll()
    async with consumer:
        await consumer.poll()
    with pytest.raises(ClosedError):
        await consumer.poll()
    with pytest.raises(ClosedError):
        await consumer.seek(0)


async def test_repr_shows_the_state(api: Any, server: FakeServer) -> None:
    """Where it stands and how far the log goes."""
    log = fill(server, [b"a"])
    async with api.consumer(server.url(), stop_at_end=True) as consumer:
        await collect(consumer)
        assert f"orders OPEN position={len(log)} end={len(log)}" in repr(consumer)


async def test_iterating_waits_once_a_batch(api: Any, server: FakeServer) -> None:
    """Records are flattened in memory, so iterating costs no wait a record."""
    fill(server)
    async with api.consumer(server.url(), stop_at_end=True) as consumer:
        inner = getattr(consumer, "target", consumer)
        taken, usual = [], inner._fetcher.take

        def count() -> Any:
            taken.append(usual())
            return taken[-1]

        inner._fetcher.take = count
        assert [record.value async for record in consumer] == VALUES
    batches = [batch for batch in taken if batch is not None]
    assert len(batches) == 1
    assert len(taken) <= 5


async def test_opaque_batches_are_raised_or_skipped(api: Any, server: FakeServer) -> None:
    """Bytes that were stored without being records (AMB-27)."""
    fill(server, [b"before"])
    server.topics.append(1, b"opaque!" + encode_records([b"after"]))

    log = server.topics.log(1)

    def refuse(peer: FakePeer, frame: Frame) -> bool:
        start = _start(frame) if frame.batch_id == Command.FETCH else None
        if start not in {0, 11, 18}:
            return False
        if start == 11:
            details = {"opaque": True, "next_offset": 18}
            peer.error(ErrorCode.INVALID_PAYLOAD, "no records", **details)
        else:
            data = log[:11] if start == 0 else log[18:]
            response = FetchResponse(start + len(data), len(data), 1, data)
            peer.control(Command.FETCH_RESPONSE, response.encode())
        return True

    server.on_control = refuse
    async with api.consumer(server.url(), stop_at_end=True, on_opaque="skip") as consumer:
        assert [record.value for record in await collect(consumer)] == [b"before", b"after"]
    async with api.consumer(server.url(), stop_at_end=True) as consumer:
        with pytest.raises(OpaqueRecords, match="on_opaque='skip'") as caught:
            await collect(consumer)
    assert (caught.value.offset, caught.value.next_offset) == (11, 18)
