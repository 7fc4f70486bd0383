"""What does not fit in memory goes through the journal (SF-32, SF-33)."""

import threading
from typing import Any

import pytest

from lance_sdk._api import producer_core
from lance_sdk._api.spill_loader import SpilledBatch, SpillOutcome
from lance_sdk.errors import ConfigError, LanceError, RecordTooLarge, StillInJournal
from lance_sdk.testing import FakeServer
from lance_spec.records import decode_records

pytestmark = pytest.mark.anyio


class FullError(LanceError):
    """The journal has no room at the moment."""

    retryable = True


class FakeSpill:
    """A journal in memory that delivers to a fake server when it is told to.

    Args:
        server: where it delivers.
    """

    def __init__(self, server: FakeServer) -> None:
        self._server = server
        self._lock = threading.Lock()
        self._settled: list[SpillOutcome] = []
        self._next = 0
        self.waiting: dict[int, SpilledBatch] = {}
        self.stored: list[SpilledBatch] = []
        self.full = False
        self.refusal: LanceError | None = None
        self.closed = False
        self.delivering = False

    @property
    def drained(self) -> bool:
        """Whether everything was delivered."""
        return not self.waiting

    def open(self) -> None:
        """Take the slot."""

    def append(self, batch: SpilledBatch) -> int:
        """Store a batch."""
        if self.full:
            raise FullError("the journal is full")
        if self.refusal is not None:
            raise self.refusal
        with self._lock:
            ticket, self._next = self._next, self._next + 1
            self.stored.append(batch)
            self.waiting[ticket] = batch
        if self.delivering:
            self.deliver()
        return ticket

    def deliver(self) -> None:
        """Deliver everything."""
        with self._lock:
            for ticket, batch in self.waiting.items():
                self._server.topics.append(1, batch.payload)
                self._settled.append(SpillOutcome(ticket, batch.batch_id or 0x701 + ticket, 1))
            self.waiting.clear()

    def take_settled(self) -> list[SpillOutcome]:
        """Take what was delivered."""
        with self._lock:
            settled, self._settled = self._settled, []
        return settled

    def close(self, timeout: float) -> int:
        """Let the slot go."""
        del timeout
        self.closed = True
        return sum(batch.record_count for batch in self.waiting.values())


@pytest.fixture
def spill(server: FakeServer, monkeypatch: pytest.MonkeyPatch) -> FakeSpill:
    """Return the journal of every producer of the test."""
    journal = FakeSpill(server)
    monkeypatch.setattr(producer_core, "open_spill", lambda _url, _config: journal)
    return journal


SMALL = {"batch_bytes": 100, "buffer_bytes": 400, "linger": 0.0}
SPILLING = {**SMALL, "on_full": "journal", "journal": "unused"}
VALUES = [b"record %03d" % number for number in range(60)]


def serve_again(server: FakeServer, journal: FakeSpill) -> None:
    """Let a server that answered nothing answer, and the journal deliver.

    Batches that went to the server and are in the journal may still be on their way to it: they
    carry the ids under which the journal delivers them, and a server stores an id once.
    """
    ids = {batch.batch_id for batch in journal.stored if batch.batch_id}
    server.on_ingest = lambda _peer, frame: frame.batch_id in ids
    journal.delivering = True
    journal.deliver()


def spilled(journal: FakeSpill) -> list[bytes]:
    """Return the values that were stored in the journal."""
    return [value for batch in journal.stored for _, value in decode_records(batch.payload)]


async def test_a_good_day_needs_no_journal(api: Any, server: FakeServer, spill: FakeSpill) -> None:
    """What fits in memory goes to the server directly."""
    async with api.producer(server.url(), **{**SPILLING, "buffer_bytes": 100_000}) as producer:
        await producer.send_many(VALUES)
    assert server.records() == VALUES
    assert spill.stored == []
    assert spill.closed


async def test_everything_goes_through_the_journal_once_it_spills(
    api: Any, server: FakeServer, spill: FakeSpill, until: Any
) -> None:
    """Also what was sent and not acknowledged: under the id it was sent with (SF-32)."""
    server.on_ingest = lambda _peer, _frame: True
    async with api.producer(server.url(), **SPILLING) as producer:
        await producer.send_many(VALUES[:12])
        await until(server, lambda: len(server.ingested) == 2)
        handles = await producer.send_many(VALUES[12:])
        assert producer.stats().journaled_batches > 0
        serve_again(server, spill)
        assert await handles.result(timeout=30) == len(VALUES) - 12
    assert server.records() == VALUES
    kept = {(batch.batch_id, batch.timestamp_ns) for batch in spill.stored if batch.batch_id}
    assert kept
    await until(
        server, lambda: kept <= {(sent.batch_id, sent.timestamp_ns) for sent in server.ingested}
    )
    assert any(not batch.batch_id for batch in spill.stored)


async def test_a_drained_journal_is_left_again(
    api: Any, server: FakeServer, spill: FakeSpill
) -> None:
    """In order: nothing overtakes what the journal holds (SF-33)."""
    server.on_ingest = lambda _peer, _frame: True
    async with api.producer(server.url(), **SPILLING) as producer:
        await producer.send_many(VALUES)
        serve_again(server, spill)
        await producer.flush(timeout=30)
        before = len(spill.stored)
        for value in VALUES:
            await (await producer.send(value)).result(timeout=30)
        assert len(spill.stored) == before
    assert server.records() == VALUES * 2


async def test_what_stays_in_the_journal_is_not_lost(
    api: Any, server: FakeServer, spill: FakeSpill
) -> None:
    """close() counts it, and its handles say that it must not be sent again."""
    server.on_ingest = lambda _peer, _frame: True
    producer = api.producer(server.url(), **SPILLING)
    await producer.open()
    handles = await producer.send_many(VALUES)
    server.stop()
    report = await producer.close(timeout=10)
    assert (report.journaled, report.lost) == (len(VALUES), 0)
    with pytest.raises(StillInJournal, match="do not send them again"):
        await handles.result(timeout=1)
    assert spilled(spill) == VALUES


async def test_closing_keeps_what_the_server_does_not_take(
    api: Any, server: FakeServer, spill: FakeSpill
) -> None:
    """A server that is there and acknowledges nothing is no reason to lose anything."""
    server.on_ingest = lambda _peer, _frame: True
    producer = api.producer(server.url(), **{**SPILLING, "buffer_bytes": 100_000})
    await producer.open()
    await producer.send_many(VALUES)
    report = await producer.close(timeout=0.1)
    assert (report.journaled, report.lost) == (len(VALUES), 0)
    assert spilled(spill) == VALUES


async def test_waiting_for_the_journal_has_a_deadline(
    api: Any, server: FakeServer, spill: FakeSpill
) -> None:
    """After delivery_timeout a handle says where its record is; it is delivered all the same."""
    options = {"journal": "unused", "linger": 0.0, "delivery_timeout": 0.1}
    async with api.producer(server.url(), **options) as producer:
        delivery = await producer.send(b"x")
        with pytest.raises(StillInJournal) as caught:
            await delivery.result(timeout=30)
        spill.deliver()
        report = await producer.close()
    assert caught.value.maybe_applied
    assert not caught.value.retryable
    assert report.lost == 0
    assert server.records() == [b"x"]


async def test_a_producer_with_a_journal_opens_without_a_server(
    api: Any, server: FakeServer, spill: FakeSpill
) -> None:
    """An application at the edge starts whether or not there is a network."""
    server.stop()
    producer = api.producer(server.url(), **SPILLING)
    await producer.open()
    await producer.send_many(VALUES)
    report = await producer.close(timeout=10)
    assert report.journaled == len(VALUES)
    assert spilled(spill) == VALUES


async def test_a_journal_alone_takes_everything(
    api: Any, server: FakeServer, spill: FakeSpill
) -> None:
    """Without on_full='journal' nothing is sent past it."""
    spill.delivering = True
    async with api.producer(server.url(), journal="unused", linger=0.0) as producer:
        receipt = await (await producer.send(b"x")).result(timeout=30)
    assert spilled(spill) == [b"x"]
    assert receipt.batch_id == 0x701
    assert server.accepted == 0


async def test_what_an_earlier_process_left_goes_first(
    api: Any, server: FakeServer, spill: FakeSpill
) -> None:
    """A journal that is not drained is gone through from the beginning (SF-33)."""
    spill.waiting[-1] = SpilledBatch(1, b"\x01\x01\x00\x00\x00a")
    async with api.producer(server.url(), **SPILLING) as producer:
        spill.delivering = True
        await producer.send(b"b")
        await producer.flush(timeout=30)
    assert server.records() == [b"a", b"b"]
    assert server.ingested == []


async def test_a_full_journal_holds_the_sender_up(
    api: Any, server: FakeServer, spill: FakeSpill
) -> None:
    """Memory stays bounded, and nothing is dropped."""
    server.on_ingest = lambda _peer, _frame: True
    spill.full = True
    timer = threading.Timer(0.05, lambda: setattr(spill, "full", False))
    timer.start()
    async with api.producer(server.url(), **SPILLING) as producer:
        spill.delivering = True
        await producer.send_many(VALUES)
        await producer.flush(timeout=30)
    timer.join()
    assert server.records() == VALUES


async def test_what_the_journal_refuses_fails(
    api: Any, server: FakeServer, spill: FakeSpill
) -> None:
    """The record's handle says why."""
    spill.refusal = RecordTooLarge("over the segment's size")
    async with api.producer(server.url(), journal="unused", linger=0.0) as producer:
        failure = await _failure(await producer.send(b"x"))
    assert isinstance(failure.cause, RecordTooLarge)
    assert not failure.maybe_applied


async def test_a_disk_error_of_the_journal_ends_no_producer(
    api: Any, server: FakeServer, spill: FakeSpill
) -> None:
    """Whatever it raises, it is tried again, and what was sent arrives."""
    failures = [OSError(28, "No space left on device"), RuntimeError("unexpected")]
    append = spill.append

    def fail_first(batch: SpilledBatch) -> int:
        if failures:
            raise failures.pop(0)
        return append(batch)

    spill.append = fail_first  # type: ignore[method-assign]
    spill.delivering = True
    async with api.producer(server.url(), journal="unused", linger=0.0) as producer:
        await producer.send(b"x")
        await producer.flush(timeout=30)
        await producer.send(b"y")
        await producer.flush(timeout=30)
    assert server.records() == [b"x", b"y"]
    assert not failures


async def _failure(delivery: Any) -> Any:
    try:
        await delivery.result(timeout=30)
    except LanceError as error:
        return error
    return None


async def test_a_journal_needs_a_place(api: Any, server: FakeServer) -> None:
    """on_full='journal' alone is not enough."""
    with pytest.raises(ConfigError, match="needs journal="):
        api.producer(server.url(), on_full="journal")
