"""One segment of the ring: where its frames are, and how the next one is written."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from lance_sdk.journal._slot.layout import (
    FIRST_FRAME,
    FRAME_HEADER,
    FRAME_HEADER_SIZE,
    crc32c_from,
    crc_of_length,
)
from lance_sdk.journal.files import SlotFile
from lance_spec.checksum import Buffer
from lance_spec.messages.store_forward import SegmentHeader

HAS_MANIFEST: Final = 1
"""Header flag: the slot has a manifest and must not be read without it."""
_FRAME_HEADER: Final = FRAME_HEADER.pack


@dataclass(slots=True)
class Span:
    """Frames of a segment that follow each other without a gap.

    Attributes:
        first: number of the first one.
        stop: number after the last one.
        offset: where the first one starts.
        end: where the last one ends.
    """

    first: int
    stop: int
    offset: int
    end: int


class Segment:
    """A segment; one thread at a time may append to it, any may read what was appended.

    Attributes:
        path: its file, or None in memory.
        size: bytes that the segment takes.
        base: number of its first frame.
        spans: where its frames are; the last span grows while the segment is active.
        stop: number after its last frame.
        end: offset after its last frame.
        file: the open file while it is kept open, or None.
        unsynced: whether frames were appended since the last sync began.
        doubtful: whether its bytes may be clean in memory without being on disk: an earlier
            sync failed, or nothing is known of it. They are written again before a sync counts.
        folds: how often its first frames became one; whoever walks the frames compares it.
        damaged: whether something in it cannot be read; such a file is set aside, not deleted.
        reclaimed: bytes at its beginning that were given back to the file system.
        created_us: when it was begun, microseconds since the Unix epoch.
    """

    __slots__ = (
        "_hint",
        "_reopen",
        "base",
        "created_us",
        "damaged",
        "doubtful",
        "end",
        "file",
        "folds",
        "path",
        "reclaimed",
        "size",
        "spans",
        "stop",
        "unsynced",
    )

    def __init__(
        self,
        file: SlotFile,
        spans: list[Span],
        *,
        base: int,
        created_us: int,
        reopen: Callable[[Path], SlotFile],
    ) -> None:
        self.path = file.path
        self.size = file.size
        self.file: SlotFile | None = file
        self.base = base
        self.spans = spans or [Span(base, base, FIRST_FRAME, FIRST_FRAME)]
        self.stop = self.spans[-1].stop
        self.end = self.spans[-1].end
        self.unsynced = False
        self.doubtful = False
        self.folds = 0
        self.damaged = False
        self.reclaimed = 0
        self.created_us = created_us
        self._reopen = reopen
        self._hint = (self.spans[-1].first, self.spans[-1].offset)

    def __repr__(self) -> str:
        name = self.path.name if self.path else "memory"
        state = ", damaged" if self.damaged else ""
        return f"<Segment {name}: {self.base}..{self.stop - 1}, {self.end}/{self.size} B{state}>"

    def begin(self, base: int, created_us: int) -> None:
        """Give an empty segment its place in the ring."""
        assert self.end == FIRST_FRAME, "only a segment without frames gets a place"
        header = SegmentHeader(HAS_MANIFEST, base, created_us).encode()
        self._open_file.write(0, header)
        self.base = self.stop = base
        self.created_us = created_us
        self.spans = [Span(base, base, FIRST_FRAME, FIRST_FRAME)]
        self._hint = (base, FIRST_FRAME)
        self.unsynced = True

    @property
    def _open_file(self) -> SlotFile:
        assert self.file is not None, f"{self!r} takes no frames"
        return self.file

    def append(self, payload: Buffer, length: int) -> bool:
        """Write the next frame; return False where it does not fit.

        It is written in one call. Where a kill cuts that short, zeros follow what was copied,
        and the checksum in front does not match.
        """
        end = self.end + FRAME_HEADER_SIZE + length
        if end > self.size:
            return False
        file = self.file
        assert file is not None, f"{self!r} takes no frames"
        crc = crc32c_from(payload, crc_of_length(length))
        file.write(self.end, _FRAME_HEADER(crc, length) + payload)
        self.end = end
        self.stop += 1
        self.unsynced = True
        return True

    def holds(self, length: int) -> bool:
        """Whether a payload of ``length`` bytes still fits."""
        return self.size - self.end >= length + FRAME_HEADER_SIZE

    def window(self) -> "Window":
        """Return a reader of the segment's bytes, with a descriptor of its own.

        The segment's is closed when the segment is sealed and synced, and its number may then be
        another file's.
        """
        if self.path is None:
            return Window(self._open_file, owned=False)
        return Window(self._reopen(self.path), owned=True)

    def release(self) -> None:
        """Give up the descriptor; readers open the file again."""
        if self.file is not None and self.path is not None:
            self.file.close()
            self.file = None

    def current_spans(self) -> list[Span]:
        """Return the spans as they are now."""
        last = self.spans[-1]
        last.stop, last.end = self.stop, self.end
        return self.spans

    def start_for(self, fsn: int) -> tuple[int, int]:
        """Return a frame's number and place from which ``fsn`` can be walked to.

        Args:
            fsn: a number below `stop`.
        """
        for span in self.current_spans():
            if fsn < span.stop:
                near, at = self._hint
                if span.first <= near <= fsn and at >= span.offset:
                    return near, at
                return span.first, span.offset
        raise AssertionError(f"{self!r} was asked for frame {fsn}")

    def offset_of(self, fsn: int, window: "Window") -> tuple[int, int]:
        """Return where frame ``fsn``, or the next one after a gap, starts, and its number.

        Nothing may fold the segment meanwhile.
        """
        found = walk(window, *self.start_for(fsn), fsn)
        self.remember(found[1], found[0])
        return found

    def folded(self, fsn: int) -> None:
        """Note that the frames up to ``fsn`` became one frame of that number."""
        assert self.base <= fsn < self.stop, "the last of the folded frames is in the segment"
        self.base = fsn
        self.folds += 1
        first, *rest = self.current_spans()
        self.spans = [Span(fsn, first.stop, FIRST_FRAME, first.end), *rest]
        self._hint = (fsn, FIRST_FRAME)

    def remember(self, fsn: int, offset: int) -> None:
        """Keep in mind where a frame starts, for the next search."""
        self._hint = (fsn, offset)

    def payload_bytes(self, after: int) -> int:
        """Return the bytes of the payloads of frames numbered above ``after``."""
        total, fsn = 0, after + 1
        for span in self.current_spans():
            if fsn >= span.stop:
                continue
            start, number = span.offset, span.first
            if fsn > span.first:
                with self.window() as window:
                    start, number = self.offset_of(fsn, window)
            total += span.end - start - FRAME_HEADER_SIZE * (span.stop - number)
        return total

    def frames(self, after: int) -> int:
        """Return how many frames are numbered above ``after``."""
        return sum(max(0, s.stop - max(s.first, after + 1)) for s in self.current_spans())


_WINDOW: Final = 256 << 10
"""Bytes that a window reads at once."""


class Window:
    """Reads a segment forward in large pieces.

    Args:
        file: the segment's file.
        owned: whether `close` closes it.
    """

    def __init__(self, file: SlotFile, *, owned: bool) -> None:
        self._file = file
        self._owned = owned
        self._start = 0
        self._data = memoryview(b"")

    def __repr__(self) -> str:
        return f"<Window of {self._file!r} at {self._start}, {len(self._data)} bytes>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give up the file."""
        if self._owned:
            self._file.close()

    def forget(self) -> None:
        """Read everything again: the bytes changed."""
        self._data = memoryview(b"")

    def bytes_at(self, offset: int, length: int, stop: int | None = None) -> memoryview:
        """Return ``length`` bytes from ``offset`` on; fewer where the file ends.

        Args:
            offset: where they start.
            length: how many they are.
            stop: where the caller's interest ends; no more is read ahead.
        """
        begin = offset - self._start
        if begin < 0 or begin + length > len(self._data):
            most = _WINDOW if stop is None else max(0, stop - offset)
            self._start, begin = offset, 0
            self._data = memoryview(self._file.read(offset, max(length, min(most, _WINDOW))))
        return self._data[begin : begin + length]


def walk(window: Window, number: int, offset: int, fsn: int) -> tuple[int, int]:
    """Return where frame ``fsn`` starts, from a frame before it, and its number.

    Where ``number`` is higher already, as after a gap, that frame is the answer. Frames that a
    file has no more of end the walk early.
    """
    while number < fsn:
        header = window.bytes_at(offset, FRAME_HEADER_SIZE)
        if len(header) < FRAME_HEADER_SIZE:
            break
        offset += FRAME_HEADER_SIZE + FRAME_HEADER.unpack(header)[1]
        number += 1
    return offset, number
