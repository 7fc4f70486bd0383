"""Compiled help for sending does what the Python code does, and is one step for all threads."""

import threading
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_sdk import Delivery
from lance_sdk._protocol.produce.batcher import Batcher, BatchLimits
from lance_sdk.errors import BufferFull
from lance_spec._native import accelerator
from lance_spec.records import decode_records

pytestmark = pytest.mark.skipif(
    accelerator is None, reason="the compiled loops were not built (no C compiler)"
)

LIMITS = BatchLimits(
    max_bytes=100, max_records=10, linger=1.0, capacity=1000, delivery_timeout=60.0
)
THREADS = 4
EACH = 20_000


def interpreted(batcher: Batcher, value: bytes, kind: int) -> Delivery | None:
    """Add a record without compiled help."""
    index = batcher.add(value, kind)
    return None if index < 0 else Delivery(batcher.last, index)


def compiled(batcher: Batcher, value: bytes, kind: int) -> Delivery | None:
    """Add a record with it."""
    assert accelerator is not None
    handle: Delivery | None = accelerator.add_to_batch(batcher, value, kind, Delivery)
    return handle


@given(st.lists(st.tuples(st.binary(max_size=120), st.sampled_from([1, 1, 1, 2]))))
def test_records_are_added_alike(records: Sequence[tuple[bytes, int]]) -> None:
    """The same records go the short way, to the same places, and count as many bytes."""
    one, other = Batcher(LIMITS), Batcher(LIMITS)
    for value, kind in records:
        short, same = interpreted(one, value, kind), compiled(other, value, kind)
        assert (short is None) == (same is None)
        if short is None or same is None:
            for batcher in (one, other):
                try:
                    batcher.append(value, kind, 0.0)
                except BufferFull:
                    assert batcher.buffered + 5 + len(value) > LIMITS.capacity
        else:
            assert type(same) is Delivery
            assert short._index == same._index
            assert same._batch is other.last
        assert (one.used, one.bound, one.buffered) == (other.used, other.bound, other.buffered)
        assert one.last.values == other.last.values


def test_what_is_no_bytes_is_left_alone() -> None:
    """Bytes that can change must be copied first, so they do not go the short way."""
    batcher = Batcher(LIMITS)
    batcher.append(b"first", 1, 0.0)
    assert compiled(batcher, bytearray(b"second"), 1) is None  # type: ignore[arg-type]
    assert batcher.last.values == [b"first"]


class Borrowed:
    """A class with the fields of another one, and one that is none."""

    __slots__ = ("last",)
    used = Batcher.used
    bound = Batcher.bound
    plain_type = Batcher.plain_type
    values = Batcher.values


@pytest.mark.parametrize("batcher", [object(), Borrowed()])
def test_another_class_than_a_batcher_is_refused(batcher: object) -> None:
    """An object of another class says so, is not written to, and spoils nothing for others."""
    assert accelerator is not None
    sound = Batcher(LIMITS)
    sound.append(b"first", 1, 0.0)
    for _ in range(2):
        with pytest.raises((TypeError, AttributeError)):
            accelerator.add_to_batch(batcher, b"", 1, Delivery)
        assert compiled(sound, b"next", 1) is not None


@pytest.mark.parametrize("kind", [object, tuple, Borrowed])
def test_a_class_of_handles_without_their_fields_is_refused(kind: type) -> None:
    """It says so, the record is not added, and the next handle is right."""
    assert accelerator is not None
    batcher = Batcher(LIMITS)
    batcher.append(b"first", 1, 0.0)
    with pytest.raises((TypeError, AttributeError)):
        accelerator.add_to_batch(batcher, b"", 1, kind)
    assert batcher.last.values == [b"first"]
    assert compiled(batcher, b"next", 1) is not None


def test_threads_need_no_lock_for_it() -> None:
    """While one thread seals, others add: each record is in one batch, where its handle says."""
    limits = BatchLimits(
        max_bytes=4096, max_records=100, linger=1.0, capacity=1 << 40, delivery_timeout=60.0
    )
    batcher, lock, start = Batcher(limits), threading.Lock(), threading.Barrier(THREADS + 1)
    handles: list[list[tuple[bytes, Delivery]]] = [[] for _ in range(THREADS)]

    def add(number: int) -> None:
        start.wait()
        for count in range(EACH):
            value = b"%d %d" % (number, count)
            handle = compiled(batcher, value, 1)
            if handle is None:
                with lock:
                    index = batcher.append(value, 1, 0.0)
                    handle = Delivery(batcher.last, index)
            handles[number].append((value, handle))

    threads = [threading.Thread(target=add, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    start.wait()
    while any(thread.is_alive() for thread in threads):
        with lock:
            batcher.seal()
    batcher.seal()
    found = 0
    while (batch := batcher.next_sealed()) is not None:
        assert batch.count <= limits.max_records
        assert batch.size <= limits.max_bytes
        found += batch.count
    assert found == THREADS * EACH
    for value, handle in (pair for one in handles for pair in one):
        assert decode_records(handle._batch.payload())[handle._index] == (1, value)


values = st.lists(st.binary(max_size=300), max_size=20)


@given(values, st.integers(0, 255))
def test_records_are_joined_as_one_by_one(found: list[bytes], kind: int) -> None:
    """A chain holds every value with its type and its length."""
    assert accelerator is not None
    joined = accelerator.join_records(found, kind)
    assert joined is not None
    assert decode_records(joined) == [(kind, value) for value in found]


@pytest.mark.parametrize(
    ("found", "kind"), [((b"a",), 1), ([bytearray(b"a")], 1), ([b"a"], 256), ([b"a"], -1)]
)
def test_what_needs_a_look_is_not_joined(found: list[bytes], kind: int) -> None:
    """Only a list of bytes and a type that is a byte are; Python judges the rest."""
    assert accelerator is not None
    assert accelerator.join_records(found, kind) is None
