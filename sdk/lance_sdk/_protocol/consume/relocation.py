"""Finds records again when a server's offsets moved (AMB-29, AMB-31).

The published server counts an offset over the files that are there now, so that retention moves all
of them. Toward it each Fetch begins a little before the place that was reached; what is read once
more must be the same. Where it is not, the last records are looked for, from the old place down.
"""

from typing import Final

from lance_sdk._protocol.consume.fetch_response import DecodedFetch
from lance_spec.limits import RECORD_HEADER_SIZE

OVERLAP: Final = 1024
"""Bytes that are read once more with each Fetch."""
NEEDLE: Final = 64 * 1024
"""Bytes of the last records that are looked for."""
_WINDOW: Final = 1024 * 1024


class Relocation:
    """Looks for bytes in a log, window by window, from a place down to the beginning.

    Args:
        records: whole records, at least one; as many of the last ones as fit are looked for.
        place: the offset after which they were not found.

    Attributes:
        old: where the bytes ended before.
        found: where they end now; None while they were not found.
        over: whether there is nothing left to look through.
    """

    def __init__(self, records: bytes, place: int) -> None:
        assert records, "nothing can be recognised by no bytes"
        self._starts = _last_starts(records)
        first = self._starts[0]
        self._needle = records[first:]
        self._starts = [start - first for start in self._starts]
        self._data = b""
        self.old = place
        self.found: int | None = None
        self.over = False
        self._look_below(place + len(self._needle))

    def __repr__(self) -> str:
        return f"<Relocation from {self.old} at {self._low}..{self._high} found={self.found}>"

    def _look_below(self, high: int) -> None:
        self._high = high
        self._low = max(0, high - _WINDOW - len(self._needle))
        self._data = b""

    def _look_at_the_beginning(self) -> None:
        """See whether the log begins with some of the records: those before them are gone."""
        for start in self._starts[1:]:
            if self._data.startswith(left := self._needle[start:]):
                self.found = len(left)
                return

    @property
    def next_fetch(self) -> int:
        """Offset of the next byte that is needed."""
        return self._low + len(self._data)

    @property
    def missing(self) -> int:
        """Bytes that are needed from there."""
        return self._high - self.next_fetch

    def take(self, answer: DecodedFetch) -> None:
        """Take the answer to a Fetch at `next_fetch`."""
        self._data += answer.data[: self.missing]
        if answer.data and self.missing:
            return
        at = self._data.rfind(self._needle)
        if at >= 0:
            self.found = self._low + at + len(self._needle)
        elif self._low == 0:
            self.over = True
            self._look_at_the_beginning()
        else:
            self._look_below(self._low + len(self._needle) - 1)


def _last_starts(records: bytes) -> list[int]:
    """Return where the last records that fit in a needle begin; of one at least."""
    starts, position = list[int](), 0
    while position < len(records):
        starts.append(position)
        length = records[position + 1 : position + RECORD_HEADER_SIZE]
        position += RECORD_HEADER_SIZE + int.from_bytes(length, "little")
    fitting = [start for start in starts if len(records) - start <= NEEDLE]
    return fitting or starts[-1:]
