"""Records become batches by size, count and linger, and by nothing else."""

import math
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_sdk._protocol.produce.batcher import Batcher, BatchLimits
from lance_sdk._protocol.produce.delivery import Batch
from lance_sdk.errors import BufferFull, ClosedError, RecordTooLarge
from lance_spec.dialect import DEPLOYED
from lance_spec.limits import MAX_RECORD_VALUE
from lance_spec.records import decode_records

LIMITS = BatchLimits(
    max_bytes=100, max_records=10, linger=1.0, capacity=1000, delivery_timeout=60.0
)


def put(
    batcher: Batcher, value: bytes, record_type: int = 1, now: float = 0.0
) -> tuple[Batch, int]:
    """Add a record as a client does: the short way, or else the long one."""
    index = batcher.add(value, record_type)
    if index < 0:
        index = batcher.append(value, record_type, now)
    return batcher.last, index


def test_linger_starts_at_the_first_record() -> None:
    """The deadline is the first record's time plus linger, whatever comes later."""
    batcher = Batcher(LIMITS)
    put(batcher, b"a", now=10.0)
    put(batcher, b"b", now=10.9)
    assert batcher.next_deadline() == 11.0


def test_a_batch_lingers_until_its_deadline_and_no_longer() -> None:
    """Just before the deadline nothing may leave; at the deadline the batch may."""
    batcher = Batcher(LIMITS)
    batch, _ = put(batcher, b"a", now=10.0)
    batcher.handle_timeout(10.99)
    assert batcher.next_sealed() is None
    batcher.handle_timeout(11.0)
    assert batcher.next_sealed() is batch


def test_a_full_batch_goes_at_once() -> None:
    """A batch whose payload reaches max_bytes is sealed by the record that fills it."""
    batcher = Batcher(LIMITS)
    batch, _ = put(batcher, b"x" * 95)
    assert batcher.next_sealed() is batch
    assert batcher.next_deadline() == math.inf


def test_a_batch_of_max_records_goes_at_once() -> None:
    """A batch that holds max_records is sealed by the last of them."""
    batcher = Batcher(LIMITS)
    for _ in range(9):
        put(batcher, b"")
    assert batcher.next_sealed() is None
    put(batcher, b"")
    sealed = batcher.next_sealed()
    assert sealed is not None
    assert sealed.count == 10


def test_a_record_that_does_not_fit_seals_the_open_batch() -> None:
    """The batch in its way leaves at once; the record opens the next one."""
    batcher = Batcher(LIMITS)
    first, _ = put(batcher, b"x" * 60)
    second, index = put(batcher, b"y" * 60)
    assert first is not second
    assert index == 0
    assert batcher.next_sealed() is first
    assert batcher.next_sealed() is None


def test_a_record_larger_than_a_batch_travels_alone() -> None:
    """max_bytes is when a batch is full, not a limit for records."""
    batcher = Batcher(LIMITS)
    put(batcher, b"small")
    big, index = put(batcher, b"x" * 500)
    assert (big.count, index) == (1, 0)
    assert big.payload()[5:] == b"x" * 500


def test_records_of_several_types_share_a_batch() -> None:
    """Each record keeps its own TLV type (LWP section 8.4)."""
    batcher = Batcher(LIMITS)
    for value, record_type in ((b"a", 1), (b"b", 2), (b"c", 1)):
        put(batcher, value, record_type)
    batcher.seal()
    assert decode_records(batcher.last.payload()) == [(1, b"a"), (2, b"b"), (1, b"c")]


def test_a_full_buffer_refuses_and_changes_nothing() -> None:
    """BufferFull says how full; the refused record is in no batch."""
    batcher = Batcher(LIMITS)
    for _ in range(9):
        put(batcher, b"x" * 95)
    with pytest.raises(BufferFull, match="900 of buffer_bytes=1000"):
        put(batcher, b"x" * 96)
    assert batcher.buffered == 900


def test_settled_batches_make_room() -> None:
    """The buffer counts what is not settled, sent or not."""
    batcher = Batcher(LIMITS)
    batch, _ = put(batcher, b"x" * 95)
    assert batcher.buffered == 100
    batcher.release(batch)
    assert batcher.buffered == 0


def test_what_an_interrupt_counted_twice_is_given_back() -> None:
    """Bytes of a record that an interrupted call never added do not stay in the buffer."""
    batcher = Batcher(LIMITS)
    batch, _ = put(batcher, b"x" * 20)
    batcher.used += 30  # as `add` leaves it when an interrupt strikes before the record itself
    batcher.seal()
    assert batcher.buffered == 55
    batcher.release(batch)
    assert batcher.buffered == 0


def test_a_batch_is_given_back_once() -> None:
    """A second time changes nothing."""
    batcher = Batcher(LIMITS)
    first, _ = put(batcher, b"x" * 95)
    put(batcher, b"x" * 95)
    batcher.release(first)
    batcher.release(first)
    assert batcher.buffered == 100


def test_a_record_that_can_never_fit_the_buffer_is_too_large() -> None:
    """Waiting would not help, so it is not BufferFull."""
    with pytest.raises(RecordTooLarge, match="raise buffer_bytes"):
        put(Batcher(LIMITS), b"x" * 1000)


def test_a_record_over_the_protocols_limit_is_too_large() -> None:
    """LWP section 8.7: a value is at most 16 MiB."""
    batcher = Batcher(BatchLimits(100, 10, 1.0, 1 << 30, 60.0))
    with pytest.raises(RecordTooLarge, match=str(MAX_RECORD_VALUE)):
        put(batcher, bytes(MAX_RECORD_VALUE + 1))
    assert batcher.buffered == 0


def test_a_deployed_server_takes_a_little_less() -> None:
    """AMB-32: there the payload, with the record's header, is at most 16,777,216 bytes."""
    batcher = Batcher(BatchLimits(100, 10, 1.0, 1 << 30, 60.0))
    batcher.fit(DEPLOYED)
    with pytest.raises(RecordTooLarge, match="16777211"):
        put(batcher, bytes(MAX_RECORD_VALUE))


def test_after_refuse_no_record_is_taken() -> None:
    """A batcher whose session has ended says so."""
    batcher = Batcher(LIMITS)
    put(batcher, b"a")
    batcher.refuse(ClosedError("over"))
    with pytest.raises(ClosedError, match="over"):
        put(batcher, b"b")


def test_extend_stops_where_the_buffer_is_full() -> None:
    """It tells how many were added, so that the caller goes on there."""
    batcher = Batcher(LIMITS)
    batches: list[Batch] = []
    assert batcher.extend([b"x" * 95] * 20, 1, 0.0, batches) == 10
    assert len(batches) == 10
    with pytest.raises(BufferFull):
        batcher.extend([b"x"], 1, 0.0, batches)


def test_a_batch_that_an_interrupt_left_behind_holds_up_nobody() -> None:
    """Queued, and then KeyboardInterrupt before it became the last one: it is passed over."""
    batcher = Batcher(LIMITS)
    batcher.queue.append(Batch(1, 0.0, 60.0, None))
    batch, _ = put(batcher, b"x")
    batcher.seal()
    assert batcher.next_sealed() is batch
    assert batcher.next_sealed() is None


@dataclass
class Step:
    """A record and the time since the one before."""

    size: int
    wait: float
    record_type: int
    bulk: bool


STEPS = st.lists(
    st.builds(
        Step,
        size=st.integers(0, 150),
        wait=st.floats(0, 2),
        record_type=st.sampled_from([1, 1, 1, 2]),
        bulk=st.booleans(),
    ),
    max_size=60,
)


def run(steps: list[Step], limits: BatchLimits) -> tuple[list[bytes], list[tuple[Batch, float]]]:
    """Feed a batcher as drivers do; return the values and the batches with their seal times."""
    batcher, now = Batcher(limits), 0.0
    values: list[bytes] = []
    sealed: list[tuple[Batch, float]] = []

    def collect(at: float) -> None:
        while (batch := batcher.next_sealed()) is not None:
            sealed.append((batch, at))

    for number, step in enumerate(steps):
        until = now + step.wait
        while (due := batcher.next_deadline()) <= until:
            batcher.handle_timeout(due)
            collect(due)
        now = until
        value = number.to_bytes(2, "little") + bytes(step.size)
        if step.bulk:
            batcher.extend([value], step.record_type, now, [])
        else:
            put(batcher, value, step.record_type, now)
        values.append(value)
        collect(now)
    due = batcher.next_deadline()
    batcher.handle_timeout(due)
    collect(due)
    return values, sealed


ROOMY = BatchLimits(max_bytes=200, max_records=7, linger=1.0, capacity=10**9, delivery_timeout=60.0)


@given(STEPS)
def test_every_record_leaves_once_and_in_order(steps: list[Step]) -> None:
    """The batches' records, one after the other, are the records that were put in."""
    values, sealed = run(steps, ROOMY)
    assert [v for batch, _ in sealed for _, v in decode_records(batch.payload())] == values


@given(STEPS)
def test_no_batch_is_over_its_limits_unless_it_is_one_record(steps: list[Step]) -> None:
    """Size and count hold for every batch; a single record may be larger than max_bytes."""
    _, sealed = run(steps, ROOMY)
    for batch, _ in sealed:
        assert batch.count <= ROOMY.max_records
        assert batch.size <= ROOMY.max_bytes or batch.count == 1
        assert batch.size == len(batch.payload())


@given(STEPS)
def test_no_batch_waits_longer_than_linger(steps: list[Step]) -> None:
    """From its first record to its seal no batch takes more than linger."""
    _, sealed = run(steps, ROOMY)
    assert all(at <= batch.created + ROOMY.linger for batch, at in sealed)


@given(STEPS)
def test_linger_is_no_rate_limit(steps: list[Step]) -> None:
    """When records come faster than batches fill, no time passes between the batches."""
    hurried = [Step(step.size, 0.0, step.record_type, step.bulk) for step in steps]
    _, sealed = run(hurried, ROOMY)
    assert all(at == 0.0 for batch, at in sealed[:-1])


@given(STEPS)
def test_buffered_is_what_is_not_settled(steps: list[Step]) -> None:
    """At any time the buffer counts exactly the bytes of the records put in."""
    batcher = Batcher(ROOMY)
    total = 0
    for step in steps:
        put(batcher, bytes(step.size), step.record_type)
        total += 5 + step.size
        assert batcher.buffered == total
    batcher.seal()
    while (batch := batcher.next_sealed()) is not None:
        batcher.release(batch)
    assert batcher.buffered == 0
