"""The duplicate window of a replicated topic: exact, so that all nodes agree (AMB-25).

A batch is known while it is among the last N lasting batches that the topic stored and its
server time lies within the window's age of the record that asks. That holds however the window
came to be: kept, or built again from sidecars. Where an id was stored more than once, the newest
digest counts.
"""

from array import array
from collections import deque
from typing import Final, NamedTuple

from lance_spec.codec.ingest_runs import NONCE_SHIFT

_COUNTER: Final = (1 << NONCE_SHIFT) - 1
_GENERATION: Final = 16_384
_ID_SIZE: Final = 8
_DIGEST_SIZE: Final = 16
_SECOND: Final = 1_000_000_000


class WindowSize(NamedTuple):
    """How far back duplicates are recognised.

    Attributes:
        entries: lasting batches of a topic; 0 switches the window off.
        max_age_secs: seconds before the server time of the batch that asks.
    """

    entries: int
    max_age_secs: int


class _Generation:
    """Batches that were remembered together: 32 bytes each, in the order of the log."""

    __slots__ = ("digests", "first", "highest", "ids", "times")

    def __init__(self, first: int) -> None:
        self.first = first
        self.ids = bytearray()
        self.digests = bytearray()
        self.times = array("Q")
        self.highest: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self.times)

    def add(self, batch_id: int, digest: bytes, time_ns: int) -> None:
        self.ids += batch_id.to_bytes(_ID_SIZE, "little")
        self.digests += digest
        self.times.append(time_ns)
        nonce, counter = batch_id >> NONCE_SHIFT, batch_id & _COUNTER
        if counter > self.highest.get(nonce, -1):
            self.highest[nonce] = counter

    def find(self, batch_id: int) -> int:
        """Return the number of the newest batch with an id within the generation, or -1."""
        wanted = batch_id.to_bytes(_ID_SIZE, "little")
        place = self.ids.rfind(wanted)
        while place > 0 and place % _ID_SIZE:
            place = self.ids.rfind(wanted, 0, place + _ID_SIZE - 1)
        return place // _ID_SIZE if place >= 0 else -1


class ExactWindow:
    """Remembers exactly the batches that the rule names.

    Args:
        size: how far back duplicates are recognised.
    """

    def __init__(self, size: WindowSize) -> None:
        self._size = size
        self._generations: deque[_Generation] = deque([_Generation(0)])
        self._recent: dict[int, int] = {}
        """Batches of the newest generation: their number in it, by id."""
        self._highest: dict[int, int] = {}
        self._next = 0

    def __repr__(self) -> str:
        return f"<ExactWindow {self._next} batches seen, {len(self._highest)} producers>"

    def may_know(self, batch_id: int) -> bool:
        """Whether the batch may be known; False is certain."""
        return (batch_id & _COUNTER) <= self._highest.get(batch_id >> NONCE_SHIFT, -1)

    def find(self, batch_id: int, now_ns: int) -> bytes | None:
        """Return the digest that is known under an id at a server time, or None."""
        if not self.may_know(batch_id):
            return None
        found = self._newest(batch_id)
        if found is None:
            return None
        generation, number = found
        oldest_ns = now_ns - self._size.max_age_secs * _SECOND
        is_within = generation.first + number >= self._next - self._size.entries
        if not is_within or generation.times[number] < oldest_ns:
            return None
        start = number * _DIGEST_SIZE
        return bytes(generation.digests[start : start + _DIGEST_SIZE])

    def _newest(self, batch_id: int) -> tuple[_Generation, int] | None:
        number = self._recent.get(batch_id, -1)
        if number >= 0:
            return self._generations[-1], number
        for generation in list(self._generations)[-2::-1]:
            number = generation.find(batch_id)
            if number >= 0:
                return generation, number
        return None

    def add(self, batch_id: int, digest: bytes, time_ns: int) -> None:
        """Remember a batch that was stored.

        Args:
            batch_id: a lasting id.
            digest: what `BatchMeta.digest` returns.
            time_ns: its server time.
        """
        if not self._size.entries:
            return
        newest = self._generations[-1]
        if len(newest) >= _GENERATION:
            newest = _Generation(self._next)
            self._generations.append(newest)
            self._recent = {}
            self._forget()
        self._recent[batch_id] = len(newest)
        newest.add(batch_id, digest, time_ns)
        nonce, counter = batch_id >> NONCE_SHIFT, batch_id & _COUNTER
        if counter > self._highest.get(nonce, -1):
            self._highest[nonce] = counter
        self._next += 1

    def _forget(self) -> None:
        """Let generations go that no rule can reach any more."""
        first = self._next - self._size.entries
        while len(self._generations) > 1 and self._generations[1].first <= first:
            gone = self._generations.popleft()
            for nonce, counter in gone.highest.items():
                if self._highest.get(nonce) == counter:
                    left = max(each.highest.get(nonce, -1) for each in self._generations)
                    if left < 0:
                        del self._highest[nonce]
                    else:
                        self._highest[nonce] = left
