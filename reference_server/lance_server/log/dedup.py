"""The duplicate window: a batch that is sent again is stored once (AMB-25)."""

from collections import deque
from dataclasses import dataclass
from typing import Final

from lance_spec.codec.ingest_runs import (
    NONCE_SHIFT,
    ROW_SIZE,
    BatchMeta,
    BatchTable,
    little_endian,
)

FIRST_LASTING_ID: Final = 1 << NONCE_SHIFT
"""Ids from here on carry a producer's nonce: they mean the same batch on every connection."""

_COUNTER: Final = FIRST_LASTING_ID - 1
_GENERATION: Final = 16_384
_ID_SIZE: Final = 8
_DIGEST_SIZE: Final = 16


@dataclass(frozen=True, slots=True)
class WindowLimits:
    """How far back duplicates are recognised.

    Attributes:
        entries: stored batches remembered per topic; 0 switches the window off. An id that was
            stored twice, with other content, counts twice.
        max_age_secs: seconds for which a batch is remembered.
    """

    entries: int = 1_000_000
    max_age_secs: int = 7 * 24 * 3600


def is_lasting(batch: BatchMeta) -> bool:
    """Whether the batch can be recognised on another connection."""
    return batch.batch_id >= FIRST_LASTING_ID and batch.client_timestamp_ns != 0


class _Generation:
    """Batches that were remembered together, packed: 24 bytes each."""

    __slots__ = ("_digests", "_ids", "highest", "newest_ns")

    def __init__(self, batches: BatchTable, newest_ns: int) -> None:
        ids = batches.ids
        self._ids = little_endian(ids)
        self._digests = batches.digests
        self.newest_ns = newest_ns
        lowest, highest = min(ids), max(ids)
        if lowest >> NONCE_SHIFT != highest >> NONCE_SHIFT:
            # Of the ids of one nonce the highest comes last, and stays.
            self.highest = {each >> NONCE_SHIFT: each & _COUNTER for each in sorted(ids)}
        else:
            self.highest = {highest >> NONCE_SHIFT: highest & _COUNTER}

    def __len__(self) -> int:
        return len(self._ids) // _ID_SIZE

    def find(self, batch_id: int) -> bytes | None:
        """Return the newest digest of a batch, or None; a search through memory, at its speed."""
        wanted = batch_id.to_bytes(_ID_SIZE, "little")
        place = self._ids.rfind(wanted)
        while place % _ID_SIZE and place >= 0:
            place = self._ids.rfind(wanted, 0, place + _ID_SIZE - 1)
        if place < 0:
            return None
        start = place // _ID_SIZE * _DIGEST_SIZE
        return self._digests[start : start + _DIGEST_SIZE]


def _always() -> bool:
    return True


class DuplicateWindow:
    """Remembers at least the last `WindowLimits.entries` batches that a topic stored.

    The newest are kept as they came, older ones packed in generations. Producers count upwards,
    so an id above the highest of its nonce is new, and that is all a first send costs; only a
    repeat or a straggler is looked for, and the newest are in a dictionary from then on.

    Memory: 24 bytes a batch, plus about 1 MiB for the newest, 4 MiB once a repeat was looked for,
    plus about 150 bytes for each producer nonce within the window.
    """

    def __init__(self, limits: WindowLimits) -> None:
        self._limits = limits
        self._recent = BatchTable()
        self._digests: dict[int, bytes] = {}
        self._looked_at = 0
        """How many of the recent batches are among the digests."""
        self._sealed: deque[_Generation] = deque()
        self._highest: dict[int, int] = {}
        self.expires = _always
        """Whether the clock may be believed: what is too old is forgotten only then."""
        self._generation = max(1, min(_GENERATION, limits.entries))

    def __len__(self) -> int:
        return len(self._recent) + sum(len(each) for each in self._sealed)

    def __repr__(self) -> str:
        return f"<DuplicateWindow {len(self)} batches of {len(self._highest)} producers>"

    @property
    def enabled(self) -> bool:
        """Whether anything is remembered at all."""
        return self._limits.entries > 0

    def may_know(self, batch_id: int) -> bool:
        """Whether the batch may have been announced before; False is certain."""
        return (batch_id & _COUNTER) <= self._highest.get(batch_id >> NONCE_SHIFT, -1)

    def announce(self, batch_id: int) -> None:
        """Note a batch that is about to be stored."""
        if self._limits.entries:
            nonce, counter = batch_id >> NONCE_SHIFT, batch_id & _COUNTER
            if counter > self._highest.get(nonce, -1):
                self._highest[nonce] = counter

    def admit(self, batch_id: int) -> bool:
        """Note a batch that is about to be stored if it is certain to be new; return if it is."""
        nonce, counter = batch_id >> NONCE_SHIFT, batch_id & _COUNTER
        if counter <= self._highest.get(nonce, -1):
            return False
        if nonce and self._limits.entries:  # ids without a nonce mean nothing elsewhere
            self._highest[nonce] = counter
        return True

    def find(self, batch_id: int) -> bytes | None:
        """Return the digest that is remembered under an id, or None."""
        digest = self._find_recent(batch_id)
        if digest is not None:
            return digest
        for generation in reversed(self._sealed):
            digest = generation.find(batch_id)
            if digest is not None:
                return digest
        return None

    def _find_recent(self, batch_id: int) -> bytes | None:
        newer = self._recent.since(self._looked_at)
        self._digests.update((batch.batch_id, batch.digest) for batch in newer)
        self._looked_at = len(self._recent)
        return self._digests.get(batch_id)

    def update(self, batches: BatchTable, now_ns: int) -> bool:
        """Remember batches that are durable by now.

        Args:
            batches: in log order; each id was announced.
            now_ns: the server's time.

        Returns:
            Whether producers may have been forgotten with their oldest batches: ids of batches that
            are not durable yet must then be announced again.
        """
        if not self._limits.entries:
            return False
        rows = self._recent.rows
        rows += batches.rows
        if len(rows) < self._generation * ROW_SIZE:
            return False
        self._sealed.append(_Generation(self._recent, now_ns))
        self._recent, self._digests, self._looked_at = BatchTable(), {}, 0
        self._forget(now_ns)
        return True

    def _forget(self, now_ns: int) -> None:
        total = len(self)
        too_old = now_ns - self._limits.max_age_secs * 1_000_000_000
        while self._sealed:
            oldest = self._sealed[0]
            is_old = oldest.newest_ns < too_old and self.expires()
            if total - len(oldest) < self._limits.entries and not is_old:
                break
            self._sealed.popleft()
            total -= len(oldest)
            self._lower(oldest)

    def _lower(self, gone: _Generation) -> None:
        """Forget producers of whom a forgotten generation held the highest counter."""
        for nonce, counter in gone.highest.items():
            if self._highest.get(nonce) == counter:
                left = max((each.highest.get(nonce, -1) for each in self._sealed), default=-1)
                if left < 0:
                    del self._highest[nonce]
                else:
                    self._highest[nonce] = left
