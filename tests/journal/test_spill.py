"""The journal behind a producer (SF-32, SF-33)."""

from pathlib import Path

import pytest

from lance_sdk._api.spill_loader import SpilledBatch, SpillOutcome, open_spill
from lance_sdk.config import ProducerConfig
from lance_sdk.errors import ConfigError
from lance_sdk.journal import JournalConfig, JournalFull, SlotLocked
from lance_sdk.journal.spill import BatchRejected, JournalSpill, make_spill
from lance_sdk.testing import FakePeer, FakeServer
from lance_sdk.url import parse_url
from lance_spec.enums import ErrorCode
from lance_spec.frames import Frame
from lance_spec.records import encode_records

NOWHERE = "lance://127.0.0.1:1/readings"


def spill(url: str, slot: Path, **options: object) -> JournalSpill:
    """Return an open spill."""
    config = ProducerConfig(journal=slot, backoff_base=0.001, **options)  # type: ignore[arg-type]  # any option
    found = make_spill(parse_url(url), config)
    found.open()
    return found


def batch(*values: bytes, batch_id: int = 0, timestamp_ns: int = 0) -> SpilledBatch:
    """Return a batch."""
    return SpilledBatch(len(values), encode_records(values), batch_id, timestamp_ns)


def settled(journal: JournalSpill, count: int) -> list[SpillOutcome]:
    """Wait until so many batches are settled."""
    found: list[SpillOutcome] = []
    journal._sender.wait(timeout=10.0)
    found += journal.take_settled()
    assert len(found) == count
    return found


def test_batches_are_delivered_and_settled_in_order(server: FakeServer, tmp_path: Path) -> None:
    """Each ticket once, with the id and the topic it was stored under."""
    journal = spill(server.url("readings"), tmp_path / "slot")
    tickets = [journal.append(batch(b"a", b"b")), journal.append(batch(b"c"))]
    outcomes = settled(journal, 2)
    assert [each.ticket for each in outcomes] == tickets == sorted(tickets)
    assert [each.error for each in outcomes] == [None, None]
    assert [each.batch_id for each in outcomes] == [each.batch_id for each in server.ingested]
    assert {each.topic_id for each in outcomes} == {1}
    assert journal.drained
    assert journal.close(0.0) == 0
    assert server.records() == [b"a", b"b", b"c"]


def test_a_batch_keeps_the_id_it_was_sent_under(server: FakeServer, tmp_path: Path) -> None:
    """The server may have it already (SF-32)."""
    journal = spill(server.url("readings"), tmp_path / "slot")
    journal.append(batch(b"x", batch_id=7 << 40 | 9, timestamp_ns=5))
    (outcome,) = settled(journal, 1)
    journal.close(0.0)
    assert outcome.batch_id == 7 << 40 | 9
    assert [(each.batch_id, each.timestamp_ns) for each in server.ingested] == [(7 << 40 | 9, 5)]


def test_what_an_earlier_process_stored_counts_until_it_is_drained(
    server: FakeServer, tmp_path: Path
) -> None:
    """Nothing may overtake it (SF-33)."""
    journal = spill(NOWHERE, tmp_path / "slot")
    journal.append(batch(b"old", b"older"))
    assert not journal.drained
    assert journal.close(0.0) == 2
    assert journal.close(0.0) == 2
    journal = spill(server.url("readings"), tmp_path / "slot")
    journal.append(batch(b"new"))
    assert len(settled(journal, 1)) == 1
    assert journal.drained
    journal.close(0.0)
    assert server.records() == [b"old", b"older", b"new"]


def test_a_rejected_batch_is_told_with_its_error(server: FakeServer, tmp_path: Path) -> None:
    """As a dead letter it is kept."""

    def too_large(peer: FakePeer, frame: Frame) -> bool:
        peer.error(ErrorCode.PAYLOAD_TOO_LARGE, "too large", batch_id=frame.batch_id)
        return True

    server.on_ingest = too_large
    journal = spill(server.url("readings"), tmp_path / "slot")
    journal.append(batch(b"x"))
    (outcome,) = settled(journal, 1)
    assert isinstance(outcome.error, BatchRejected)
    assert outcome.error.rejection.table == "readings"
    journal.close(0.0)


def test_a_full_journal_can_be_tried_again(tmp_path: Path) -> None:
    """The producer keeps the batch."""
    small = JournalConfig(segment_bytes=70_000, max_total_bytes=140_000, append_timeout=0.01)
    journal = spill(NOWHERE, tmp_path / "slot", journal_settings=small, batch_bytes=60_000)
    with pytest.raises(JournalFull) as caught:
        fill(journal)
    assert caught.value.retryable
    journal.close(0.0)


def fill(journal: JournalSpill) -> None:
    """Append until there is no room."""
    for _ in range(5):
        journal.append(batch(bytes(50_000)))


def test_a_slot_has_one_owner(tmp_path: Path) -> None:
    """The second producer is told who has it."""
    journal = spill(NOWHERE, tmp_path / "slot")
    with pytest.raises(SlotLocked):
        spill(NOWHERE, tmp_path / "slot")
    journal.close(0.0)


def test_frames_must_hold_a_full_batch(tmp_path: Path) -> None:
    """Told when the producer is made, not when it is full (SF-33)."""
    config = ProducerConfig(
        journal=tmp_path / "slot", journal_settings=JournalConfig(segment_bytes=4096)
    )
    with pytest.raises(ConfigError, match=r"batch_bytes=65536.*segment_bytes"):
        open_spill(parse_url(NOWHERE), config)


def test_a_halt_settles_everything_that_waits(server: FakeServer, tmp_path: Path) -> None:
    """With the reason; the batches stay in the slot."""

    def deny(peer: FakePeer, frame: Frame) -> bool:
        peer.error(ErrorCode.ACCESS_DENIED, "not you", batch_id=frame.batch_id)
        return True

    server.on_ingest = deny
    journal = spill(server.url("readings"), tmp_path / "slot")
    journal.append(batch(b"x", b"y"))
    core = journal._sender.core
    assert journal._sender._driver is not None
    journal._sender._driver.wait(core.outbox.milestone(0), 10.0)
    (outcome,) = journal.take_settled()
    assert outcome.error is core.outbox.failure
    assert journal.close(1.0) == 2
