"""StreamFetch and UpdateOffsets: what is sent, and when."""

import asyncio
import selectors
from pathlib import Path

import pytest

from lance_server.listeners.fluvio.options import FluvioOptions
from lance_server.listeners.fluvio.testing import FluvioPeer, FluvioServers, fluvio_servers
from lance_server.log.log_manager import Topic
from lance_server.log.metadata.topic_file import Retention
from lance_server.log.reading.reader import Fetched, Range
from lance_server.lwp.refusals import Refusal
from lance_server.runtime.completion import Completion, pass_on
from lance_server.testing import RawClient, eventually
from lance_spec.enums import Command
from lance_spec.fluvio.batches import open_batch
from lance_spec.messages.fluvio import (
    ErrorCode,
    ErrorText,
    OffsetEvicted,
    StorageConfig,
    StreamFetchResponse,
    UpdateConsumerOffsetRequest,
    UpdateConsumerOffsetResponse,
)

from .messages import VERSION, acknowledge, batch, create, ends, fetch, produce, spec, streamed


@pytest.fixture(autouse=True)
def orders(sc: FluvioPeer) -> None:
    """Have a topic to read from."""
    create(sc, "orders")


def values(response: StreamFetchResponse) -> list[bytes]:
    """Return the values of a response."""
    return [
        record.value
        for each in response.records.batches
        for record in open_batch(each, limit=1 << 25)
    ]


def is_silent(peer: FluvioPeer, seconds: float = 0.1) -> bool:
    """Whether nothing comes for a while."""
    with selectors.DefaultSelector() as waiting:
        waiting.register(peer.socket, selectors.EVENT_READ)
        return not waiting.select(seconds)


def test_a_stream_waits_for_its_acknowledgement(spu: FluvioPeer) -> None:
    """After a response nothing is sent until the client says how far it is."""
    produce(spu, "orders", batch(b"a"))
    number = spu.send(1003, VERSION, fetch("orders", 0))
    response = spu.receive()
    assert response.correlation_id == number
    first = StreamFetchResponse.decode(response.body, VERSION)
    assert (values(first), first.high_watermark, first.log_start_offset) == ([b"a"], 1, 0)
    produce(spu, "orders", batch(b"b"))
    assert is_silent(spu)
    acknowledge(spu, first.stream_id, 1)
    assert values(streamed(spu)) == [b"b"]


def test_a_stream_at_the_end_is_silent_until_something_comes(spu: FluvioPeer) -> None:
    """Nothing is sent where there is nothing, then what is produced."""
    spu.send(1003, VERSION, fetch("orders", 0))
    assert is_silent(spu)
    produce(spu, "orders", batch(b"a"))
    assert values(streamed(spu)) == [b"a"]


def test_an_acknowledgement_may_lie_back(spu: FluvioPeer) -> None:
    """A stream goes on from wherever the client says."""
    produce(spu, "orders", batch(b"a", b"b", b"c"))
    spu.send(1003, VERSION, fetch("orders", 0))
    first = streamed(spu)
    acknowledge(spu, first.stream_id, 1)
    again = streamed(spu)
    assert values(again) == [b"b", b"c"]
    assert again.records.batches[0].base_offset == 1


def test_a_stream_begins_inside_a_batch(spu: FluvioPeer) -> None:
    """Only the wanted records are sent, under their own offsets."""
    for start in range(0, 100, 10):
        produce(spu, "orders", batch(*(b"%d" % number for number in range(start, start + 10))))
    spu.send(1003, VERSION, fetch("orders", 57))
    found = streamed(spu)
    assert found.records.batches[0].base_offset == 57
    assert values(found) == [b"%d" % number for number in range(57, 100)]


def test_small_answers_carry_everything_in_the_end(spu: FluvioPeer) -> None:
    """A stream that is read in small parts, or in parts smaller than a record, loses nothing."""
    sent = [b"%03d" % number * 20 for number in range(50)]
    produce(spu, "orders", batch(*sent))
    spu.send(1003, VERSION, fetch("orders", 0, max_bytes=200))
    found: list[bytes] = []
    while len(found) < len(sent):
        response = streamed(spu)
        found += values(response)
        acknowledge(spu, response.stream_id, len(found))
    assert found == sent
    spu.send(1003, VERSION, fetch("orders", 49, max_bytes=1))
    assert values(streamed(spu)) == sent[49:]


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"offset": 2}, ErrorCode.OTHER),
        ({"offset": -1}, ErrorCode.OFFSET_OUT_OF_RANGE),
        ({"offset": 1 << 62}, ErrorCode.OTHER),
        ({"topic": "missing"}, ErrorCode.NOT_LEADER_FOR_PARTITION),
        ({"partition": 1}, ErrorCode.NOT_LEADER_FOR_PARTITION),
    ],
)
def test_a_place_that_is_not_there_is_refused(
    spu: FluvioPeer, changes: dict[str, object], code: ErrorCode
) -> None:
    """The stream's only response says why."""
    produce(spu, "orders", batch(b"a"))
    wanted: dict[str, object] = {"topic": "orders", "offset": 0} | changes
    spu.send(1003, VERSION, fetch(**wanted))  # type: ignore[arg-type]
    assert streamed(spu).outcome.code is code


def test_a_deleted_topic_ends_its_streams(servers: FluvioServers, spu: FluvioPeer) -> None:
    """Who waits at the end of a topic learns that it is gone."""
    spu.send(1003, VERSION, fetch("orders", 0))
    assert is_silent(spu)
    topic = servers.cluster.engine.topic_named("orders")
    assert topic is not None
    with RawClient(servers.server.address) as client:
        client.ask(Command.DELETE_TOPIC, topic.id.to_bytes(4, "little"))
    assert streamed(spu).outcome.code is ErrorCode.TOPIC_DELETED


def test_two_streams_share_a_connection(spu: FluvioPeer) -> None:
    """Each has its own id and its own place."""
    produce(spu, "orders", batch(b"a", b"b"))
    one = spu.send(1003, VERSION, fetch("orders", 0))
    two = spu.send(1003, VERSION, fetch("orders", 1))
    found = {}
    for _ in range(2):
        response = spu.receive()
        found[response.correlation_id] = StreamFetchResponse.decode(response.body, VERSION)
    assert (values(found[one]), values(found[two])) == ([b"a", b"b"], [b"b"])
    assert found[one].stream_id != found[two].stream_id


def test_an_unknown_stream_is_named(spu: FluvioPeer) -> None:
    """An acknowledgement or a commit for a stream that is not there is refused."""
    answer = acknowledge(spu, 4711, 0)
    assert answer.status[0].outcome.code is ErrorCode.FETCH_SESSION_NOT_FOUND
    body = UpdateConsumerOffsetRequest(offset=0, stream_id=4711).encode()
    answered = UpdateConsumerOffsetResponse.decode(spu.ask(1006, VERSION, body))
    assert answered.outcome.code is ErrorCode.FETCH_SESSION_NOT_FOUND


def test_a_stream_without_a_name_keeps_no_offset(spu: FluvioPeer) -> None:
    """Commits need a consumer id, and an offset that there is."""
    produce(spu, "orders", batch(b"a"))
    for consumer, offset, code in (
        (None, 0, ErrorCode.OFFSET_MANAGEMENT_DISABLED),
        ("me", 5, ErrorCode.OFFSET_OUT_OF_RANGE),
        ("x" * 2000, 0, ErrorCode.OFFSET_MANAGEMENT_DISABLED),
        ("me", 0, ErrorCode.NONE),
    ):
        spu.send(1003, VERSION, fetch("orders", 0, consumer_id=consumer))
        body = UpdateConsumerOffsetRequest(offset=offset, stream_id=streamed(spu).stream_id)
        answered = UpdateConsumerOffsetResponse.decode(spu.ask(1006, VERSION, body.encode()))
        assert answered.outcome.code is code, consumer


def test_numbers_survive_a_restart(tmp_path: Path) -> None:
    """Offsets are found again in segments that an earlier run wrote."""
    sent = [[b"%d-%d" % (part, number) for number in range(7)] for part in range(60)]
    folder = tmp_path / "again"
    with fluvio_servers(folder) as servers, FluvioPeer(servers.sc) as sc:
        create(sc, "orders")
        with FluvioPeer(servers.spu) as spu:
            for part in sent:
                produce(spu, "orders", batch(*part))
    with fluvio_servers(folder) as servers, FluvioPeer(servers.spu) as spu:
        everything = [value for part in sent for value in part]
        assert ends(spu, "orders")[1:] == (0, len(everything))
        assert produce(spu, "orders", batch(b"more")).base_offset == len(everything)
        for start in (0, 6, 7, 200, 419, 420):
            spu.send(1003, VERSION, fetch("orders", start))
            first = streamed(spu)
            assert first.records.batches[0].base_offset == start
            assert values(first) == [*everything, b"more"][start : start + len(values(first))]


def test_offsets_that_retention_removed_are_named(tmp_path: Path) -> None:
    """Who asks for what is gone learns where to go on; numbers do not begin again."""
    with fluvio_servers(tmp_path / "short", segment_size=1000, upkeep_interval=0.05) as servers:
        with FluvioPeer(servers.sc) as sc:
            short = spec(storage=StorageConfig(segment_size=None, max_partition_size=2000))
            create(sc, "short", short)
        with FluvioPeer(servers.spu) as spu:
            for number in range(40):
                assert produce(spu, "short", batch(b"x" * 90, b"y")).base_offset == 2 * number
            eventually(lambda: ends(spu, "short")[1] > 0)
            _, start, end = ends(spu, "short")
            assert end == 80
            spu.send(1003, VERSION, fetch("short", 0))
            refused = streamed(spu).outcome
            assert refused.code is ErrorCode.OFFSET_EVICTED
            assert isinstance(refused.detail, OffsetEvicted)
            assert refused.detail.next_available >= start
            answer = streamed_from(spu, "short", refused.detail.next_available)
            assert values(answer)[:2] == [b"x" * 90, b"y"]


def test_records_that_retention_drops_while_they_are_read_are_told_as_evicted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client learns where to go on, as for those that were gone before it asked."""
    with fluvio_servers(tmp_path / "late", segment_size=1000, upkeep_interval=0.05) as servers:
        with FluvioPeer(servers.sc) as sc:
            create(sc, "late")
        engine = servers.server._running.engine
        read = engine.fetch

        def drop_and_read(topic: Topic, wanted: Range) -> Completion[Fetched]:
            monkeypatch.undo()
            engine.set_retention(topic, Retention(max_bytes=2000))
            found: Completion[Fetched] = Completion()

            def once_dropped() -> None:
                if not topic.partition.log_start.record:
                    asyncio.get_running_loop().call_later(0.01, once_dropped)
                    return
                try:
                    later = read(topic, wanted)
                except Refusal as refusal:
                    found.fail(refusal)
                else:
                    assert isinstance(later, Completion)
                    later.wake(lambda: pass_on(later, found))

            once_dropped()
            return found

        with FluvioPeer(servers.spu) as spu:
            for _ in range(40):
                produce(spu, "late", batch(b"x" * 90, b"y"))
            monkeypatch.setattr(engine, "fetch", drop_and_read)
            spu.send(1003, VERSION, fetch("late", 0))
            refused = streamed(spu).outcome
            assert refused.code is ErrorCode.OFFSET_EVICTED
            assert isinstance(refused.detail, OffsetEvicted)
            assert refused.detail.next_available > 0


def streamed_from(spu: FluvioPeer, topic: str, start: int) -> StreamFetchResponse:
    """Return what is streamed from a place, or from where a drop meanwhile says to go on."""
    while True:
        spu.send(1003, VERSION, fetch(topic, start))
        answer = streamed(spu)
        detail = answer.outcome.detail
        if not isinstance(detail, OffsetEvicted):
            return answer
        start = detail.next_available


def test_damage_in_the_log_is_named(tmp_path: Path) -> None:
    """A stream that meets a batch whose bytes changed says where to go on."""
    folder = tmp_path / "damaged"
    with fluvio_servers(folder) as servers, FluvioPeer(servers.sc) as sc:
        create(sc, "orders")
        with FluvioPeer(servers.spu) as spu:
            for value in (b"first", b"second", b"third"):
                produce(spu, "orders", batch(value, value))
    (data,) = folder.glob("segments/1/*.lnc")
    data.write_bytes(data.read_bytes().replace(b"second", b"SECOND", 1))
    with fluvio_servers(folder) as servers, FluvioPeer(servers.spu) as spu:
        spu.send(1003, VERSION, fetch("orders", 0))
        first = streamed(spu)
        assert values(first) == [b"first", b"first"]
        acknowledge(spu, first.stream_id, 2)
        refused = streamed(spu).outcome
        assert isinstance(refused.detail, ErrorText)
        assert "go on from offset 4" in refused.detail.text
        spu.send(1003, VERSION, fetch("orders", 4))
        assert values(streamed(spu)) == [b"third", b"third"]


def test_too_many_streams_end_the_connection(tmp_path: Path) -> None:
    """A client cannot have the server hold any number of streams."""
    options = FluvioOptions(max_streams=3)
    with fluvio_servers(tmp_path / "few", options) as servers:
        with FluvioPeer(servers.sc) as sc:
            create(sc, "orders")
        with FluvioPeer(servers.spu) as spu:
            for _ in range(4):
                spu.send(1003, VERSION, fetch("orders", 0))
            assert spu.closed()
