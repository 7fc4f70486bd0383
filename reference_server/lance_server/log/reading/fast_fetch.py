"""The fast path: answers the usual Fetch with one compiled call (LWP section 5.8)."""

from collections.abc import Callable
from typing import Any, Final, Protocol, Self, TypeAlias
from weakref import ref

from lance_server.log.segments.segment_files import Segment
from lance_server.log.segments.sidecar import BatchIndex, Columns
from lance_server.storage.contract import StorageBackend
from lance_spec._native import accelerator
from lance_spec.checksum import Buffer

Form: TypeAlias = tuple[bytes, int, bool, Callable[[Buffer], int], bool]
"""How an answer looks: the first twelve bytes and the command of its header, whether its records
are counted, its checksum, and whether that is CRC32C."""
_Place: TypeAlias = tuple[Columns, int, int, int]
"""The columns of an index, the offset that they are relative to, and two relative ones: up to
which they tell, and of the file's end."""
_answer: Final[Any] = getattr(accelerator, "answer_fetch", None)


class _OpenFile(Protocol):
    """A segment's open file, as the cache keeps it."""

    @property
    def data(self) -> int:
        """Descriptor of the data file."""

    @property
    def dropped(self) -> bool:
        """Whether it is not to be used again."""


class FastFetch:
    """Part of a closed segment, whole batches of which can be answered with at once.

    It gives nothing but what `LogReader.fetch` would: batches that are records and were compared
    to their checksum, from the page cache. What is not as usual is left to that.

    It belongs to the part of the index that it is made of. Others keep it by a weak
    reference: a client that asks no more keeps neither a file open nor an index in memory.
    """

    __slots__ = ("__weakref__", "_descriptor", "_file", "_place")

    def __init__(self, descriptor: int, file: _OpenFile, place: _Place) -> None:
        self._descriptor = descriptor
        self._file = ref(file)
        self._place = place

    def __repr__(self) -> str:
        _, base, high, size = self._place
        return f"<FastFetch from {base} to {base + high} of {base + size}>"

    @classmethod
    def over(
        cls,
        storage: StorageBackend,
        segment: Segment,
        file: _OpenFile,
        index: BatchIndex,
        high: int,
    ) -> Self | None:
        """Return the fast path of a part; None without compiled loops, or for another kind of file.

        Args:
            storage: the backend.
            segment: a closed one.
            file: its file.
            index: its batches up to ``high``, at least.
            high: the relative offset from which on the part tells nothing.
        """
        descriptor = None if accelerator is None else storage.plain_fd(file.data)
        if descriptor is None:
            return None
        return cls(descriptor, file, (index.columns, segment.base_offset, high, segment.size))

    def answer(self, form: Form, start: int, most: int) -> bytearray | None:
        """Return a whole FetchResponse of the batches that begin at ``start``, if that is usual.

        Args:
            form: how it looks.
            start: the offset to begin at.
            most: bytes of data that it may hold.

        Returns:
            None where the answer is to be found in another way, or is no such one.
        """
        file = self._file()  # which stays open until this returns
        if file is None or file.dropped:
            return None
        answer: bytearray | None = _answer(self._descriptor, self._place, form, start, most)
        return answer
