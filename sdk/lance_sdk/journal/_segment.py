"""One segment of the ring: where its frames are, and how the next one is written."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from lance_sdk.journal._layout import (
    FIRST_FRAME,
    FRAME_CRC,
    FRAME_HEADER,
    FRAME_HEADER_SIZE,
    crc32c,
)
from lance_sdk.journal.files import MappedFile
from lance_spec.checksum import Buffer
from lance_spec.messages.store_forward import SegmentHeader

HAS_MANIFEST: Final = 1
"""Header flag: the slot has a manifest and must not be read without it."""


@dataclass(slots=True)
class Span:
    """Frames of a segment that follow each other without a gap.

    Attributes:
        first: number of the first one.
        stop: number behind the last one.
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
        stop: number behind its last frame.
        end: offset behind its last frame.
        file: the mapping while it is kept open, or None.
        unsynced: whether frames were appended since the last sync began.
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
        "end",
        "file",
        "path",
        "reclaimed",
        "size",
        "spans",
        "stop",
        "unsynced",
        "view",
    )

    def __init__(
        self,
        file: MappedFile,
        spans: list[Span],
        *,
        base: int,
        created_us: int,
        reopen: Callable[[Path], MappedFile],
    ) -> None:
        self.path = file.path
        self.size = file.size
        self.file: MappedFile | None = file
        self.view = file.view
        self.base = base
        self.spans = spans or [Span(base, base, FIRST_FRAME, FIRST_FRAME)]
        self.stop = self.spans[-1].stop
        self.end = self.spans[-1].end
        self.unsynced = False
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
        header = SegmentHeader(HAS_MANIFEST, base, created_us).encode()
        self.view[:FIRST_FRAME] = header
        self.base = self.stop = base
        self.created_us = created_us
        self.spans = [Span(base, base, FIRST_FRAME, FIRST_FRAME)]
        self._hint = (base, FIRST_FRAME)
        self.unsynced = True

    def append(self, payload: Buffer, length: int) -> None:
        """Write the next frame; the caller has checked that it fits.

        The checksum is written last, so a frame that a kill cuts short is never valid.
        """
        view, start = self.view, self.end
        body = start + FRAME_HEADER_SIZE
        end = body + length
        FRAME_HEADER.pack_into(view, start, 0, length)
        view[body:end] = payload
        FRAME_CRC.pack_into(view, start, crc32c(view[start + 4 : end]))
        self.end = end
        self.stop += 1
        self.unsynced = True

    def holds(self, length: int) -> bool:
        """Whether a payload of ``length`` bytes still fits."""
        return self.size - self.end >= length + FRAME_HEADER_SIZE

    def reading(self) -> memoryview:
        """Return the segment's bytes, mapping the file again when it was given up."""
        if self.file is not None or self.path is None:
            return self.view
        file = self._reopen(self.path)
        try:
            return file.view
        finally:
            file.close()

    def release(self) -> None:
        """Give up descriptor and mapping; readers map the file again."""
        if self.file is not None and self.path is not None:
            self.file.close()
            self.file = None
            self.view = memoryview(b"")

    def current_spans(self) -> list[Span]:
        """Return the spans as they are now."""
        last = self.spans[-1]
        last.stop, last.end = self.stop, self.end
        return self.spans

    def offset_of(self, fsn: int, view: memoryview) -> tuple[int, int]:
        """Return where frame ``fsn``, or the next one behind a gap, starts, and its number.

        Args:
            fsn: a number below `stop`.
            view: the segment's bytes.
        """
        for span in self.current_spans():
            if fsn < span.stop:
                number, offset = span.first, span.offset
                near, at = self._hint
                if span.first <= near <= fsn and at >= offset:
                    number, offset = near, at
                return self._walk(view, number, offset, max(fsn, span.first))
        raise AssertionError(f"{self!r} was asked for frame {fsn}")

    def folded(self, fsn: int, reclaimed: int) -> None:
        """Note that the frames up to ``fsn`` became one frame of that number."""
        self.base = fsn
        self.reclaimed = reclaimed
        first, *rest = self.current_spans()
        self.spans = [Span(fsn, first.stop, FIRST_FRAME, first.end), *rest]

    def remember(self, fsn: int, offset: int) -> None:
        """Keep in mind where a frame starts, for the next search."""
        self._hint = (fsn, offset)

    def _walk(self, view: memoryview, number: int, offset: int, fsn: int) -> tuple[int, int]:
        while number < fsn:
            offset += FRAME_HEADER_SIZE + FRAME_HEADER.unpack_from(view, offset)[1]
            number += 1
        self._hint = (number, offset)
        return offset, number

    def payload_bytes(self, after: int) -> int:
        """Return the bytes of the payloads of frames numbered above ``after``."""
        total, fsn = 0, after + 1
        for span in self.current_spans():
            if fsn >= span.stop:
                continue
            start, number = span.offset, span.first
            if fsn > span.first:
                start, number = self.offset_of(fsn, self.reading())
            total += span.end - start - FRAME_HEADER_SIZE * (span.stop - number)
        return total

    def frames(self, after: int) -> int:
        """Return how many frames are numbered above ``after``."""
        return sum(max(0, s.stop - max(s.first, after + 1)) for s in self.current_spans())
