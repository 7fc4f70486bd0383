"""Timestamps that QWP sends as differences of differences (QWP wire ingress, Gorilla).

The first two stand as they are, in 8 bytes each. Of every other one, only by how much its distance
to the one before has changed is sent, in as few bits as the change needs: a prefix says how many.
Bits fill each byte from its lowest.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from lance_spec.checksum import Buffer

SEEDS: Final = 2
"""Values that stand as they are."""
WIDTHS: Final = (0, 7, 9, 12, 32)
"""Bits of a change, by the number of ones its prefix begins with; a zero ends all but the last."""
_SEED: Final = 8
_MOST: Final = len(WIDTHS) - 1


def size_of(data: Buffer, count: int) -> int | None:
    """Return how many bytes ``count`` timestamps take at the start of ``data``.

    It is None where ``data`` ends inside them. A byte holds up to eight of them, so bytes are
    walked, not values: what a hostile message claims costs no more than what it sends.
    """
    view = memoryview(data).cast("B")
    place, left = _SEED * min(count, SEEDS), count - SEEDS
    state, end = _FRESH, len(view)
    while left > 0:
        if state > _SKIPPED + 8:
            whole = (state - _SKIPPED - 1) // 8
            place += whole
            state -= 8 * whole
        if place >= end:
            return None
        found, state = _STEPS[state][view[place]]
        place, left = place + 1, left - found
    return None if place > end else place


def pack(values: Sequence[int]) -> bytes | None:
    """Return timestamps as bytes.

    They are None where a change does not fit into 32 bits: such a column is sent plainly.

    Args:
        values: integers of 64 bits with a sign.
    """
    seeds = b"".join(each.to_bytes(_SEED, "little", signed=True) for each in values[:SEEDS])
    bits = filled = 0
    for change in _changes(values):
        width = next((w for w in range(_MOST + 1) if _fits(change, WIDTHS[w])), None)
        if width is None:
            return None
        prefix = (1 << width) - 1
        start = min(width + 1, _MOST)
        bits |= (prefix | (change & (1 << WIDTHS[width]) - 1) << start) << filled
        filled += start + WIDTHS[width]
    return seeds + bits.to_bytes((filled + 7) // 8, "little")


def unpack(data: Buffer, count: int) -> list[int]:
    """Return the timestamps that `size_of` has measured.

    Raises:
        ValueError: ``data`` ends inside them.
    """
    size = size_of(data, count)
    if size is None:
        raise ValueError(f"{len(data)} bytes end inside {count} timestamps; send all of them")
    return list(values(data, count))


def values(data: Buffer, count: int) -> Iterator[int]:
    """Yield the timestamps one by one; ``data`` must hold them, as `size_of` tells."""
    view = memoryview(data).cast("B")
    last = step = 0
    for number in range(min(count, SEEDS)):
        seed = int.from_bytes(view[_SEED * number : _SEED * (number + 1)], "little", signed=True)
        step, last = _wrapped(seed - last), seed
        yield seed
    bits = held = 0
    place = _SEED * SEEDS
    for _ in range(count - SEEDS):
        if held < _LONGEST:
            fresh = view[place : place + _SEED]
            bits |= int.from_bytes(fresh, "little") << held
            place, held = place + len(fresh), held + 8 * len(fresh)
        ones = _ONES[bits & 0xF]
        start, width = min(ones + 1, _MOST), WIDTHS[ones]
        step = _wrapped(step + _signed(bits >> start, width))
        last = _wrapped(last + step)
        yield last
        bits, held = bits >> start + width, held - start - width


def _changes(values: Sequence[int]) -> Iterator[int]:
    steps = (_wrapped(after - before) for before, after in pairwise(values))
    return (_wrapped(after - before) for before, after in pairwise(steps))


def _signed(bits: int, width: int) -> int:
    """Return the lowest bits as a number with a sign."""
    raw = bits & (1 << width) - 1
    return raw - (1 << width) if width and raw >> width - 1 else raw


def _fits(change: int, width: int) -> bool:
    return change == 0 if not width else -(1 << width - 1) <= change < 1 << width - 1


def _wrapped(value: int) -> int:
    """Return a value within 64 bits, as subtraction in 64 bits leaves it."""
    return (value + 2**63) % 2**64 - 2**63


def _step(state: int, byte: int) -> tuple[int, int]:
    """Return how many values end in a byte, and the state after it."""
    found, ones, skipped = 0, state if state <= _SKIPPED else 0, max(0, state - _SKIPPED)
    for place in range(8):
        if skipped:
            skipped -= 1
        else:
            one = byte >> place & 1
            ones += one
            if one and ones < _MOST:
                continue
            skipped, ones = WIDTHS[ones], 0
        found += not skipped
    return found, _SKIPPED + skipped if skipped else ones


_FRESH: Final = 0
"""The state between two values; 1 to 3 are that many ones into a prefix."""
_SKIPPED: Final = _MOST - 1
"""States above are so many bits, plus this, before the end of a value."""
_STEPS: Final = [[_step(state, byte) for byte in range(256)] for state in range(_SKIPPED + 9)]
"""By state and byte; where more than 8 bits are missing, whole bytes are passed over first."""
_ONES: Final = tuple(
    next((n for n in range(_MOST) if not bits >> n & 1), _MOST) for bits in range(16)
)
"""By the lowest four bits: how many ones they begin with."""
_LONGEST: Final = _MOST + WIDTHS[-1]
"""Bits of the longest value."""
