"""Finding a batch in a sidecar by halving, without reading the whole of it."""

from collections.abc import Callable
from typing import Final

from lance_server.log.segments.segment_files import View
from lance_server.log.segments.sidecar_scan import count_entries, read_entries
from lance_server.storage.contract import StorageBackend
from lance_spec.messages.engine import SidecarEntry

_PAGE: Final = 64
"""Entries that are read at once after the place that is searched: a page of 4 KiB."""


class SidecarSearch:
    """Searches the entries of one sidecar; both offsets and server times rise in it.

    Args:
        storage: the backend.
        sidecar: the open file.
        cached_only: do not wait for the disk.
    """

    def __init__(self, storage: StorageBackend, sidecar: int, *, cached_only: bool = False) -> None:
        self._storage = storage
        self._sidecar = sidecar
        self._cached_only = cached_only
        self.count = count_entries(storage, sidecar)

    def entry_at(self, position: int) -> int:
        """Return the number of the last valid entry that begins at or before a position, or 0.

        Args:
            position: relative to the segment.

        Raises:
            WouldBlockError: the disk would have to be waited for, which was not wanted.
        """
        number = self._first_not(lambda entry: entry.relative_offset <= position) - 1
        while number > 0 and self._valid_from(number, number + 1) is None:
            number -= 1
        return max(number, 0)

    def first_since(self, time_ns: int) -> SidecarEntry | None:
        """Return the first valid entry of a server time or later, or None."""
        number = self._first_not(lambda entry: entry.server_time_ns < time_ns)
        found = self._valid_from(number, self.count)
        return None if found is None else found[1]

    def _first_not(self, is_before: Callable[[SidecarEntry], bool]) -> int:
        """Return the number after the last valid entry that comes before what is wanted."""
        low, high = 0, self.count
        while low < high:
            middle = (low + high) // 2
            found = self._valid_from(middle, high)
            if found is not None and is_before(found[1]):
                low = found[0] + 1
            else:
                high = middle
        return low

    def _valid_from(self, first: int, behind: int) -> tuple[int, SidecarEntry] | None:
        """Return the first valid entry in a range, and its number."""
        at_once = 1
        while first < behind:
            entries = read_entries(
                self._storage,
                self._sidecar,
                first,
                at_once=at_once,
                cached_only=self._cached_only,
            )
            for number, entry in zip(
                range(first, min(first + at_once, behind)), entries, strict=False
            ):
                if entry is not None:
                    return number, entry
            first, at_once = first + at_once, _PAGE
        return None


def first_since(storage: StorageBackend, view: View, time_ns: int) -> int:
    """Return the offset of the first batch that arrived at a server time or later (AMB-37).

    Server times never go backwards within a topic. The end of the view when there is none.
    """
    for segment in view.segments:
        if segment.last_ns < time_ns:
            continue
        sidecar = storage.open(segment.sidecar_path)
        try:
            entry = SidecarSearch(storage, sidecar).first_since(time_ns)
        finally:
            storage.close(sidecar)
        if entry is not None:
            return min(segment.base_offset + entry.relative_offset, view.end_offset)
    return view.end_offset
