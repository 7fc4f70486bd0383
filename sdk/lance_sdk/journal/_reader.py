"""Handing frames out in order."""

from collections.abc import Generator, Iterator

from lance_sdk.journal._layout import FRAME_HEADER, FRAME_HEADER_SIZE, crc32c
from lance_sdk.journal._segment import Segment, Span
from lance_sdk.journal._state import State
from lance_sdk.journal.errors import FrameDamaged


def read(state: State, fsn: int) -> Iterator[tuple[int, bytes]]:
    """Yield frames from number ``fsn`` on, until there are no more at that moment."""
    while True:
        with state.lock:
            fsn = max(fsn, state.ring.acked_fsn + 1)
            segment = state.ring.holding(fsn)
            if segment is None:
                return
            span = _span(segment, fsn)
        if span is None:
            fsn = segment.stop
        else:
            fsn = yield from _frames(state, segment, max(fsn, span.first), span.stop)


def _span(segment: Segment, fsn: int) -> Span | None:
    """Return a copy of the span that holds frame ``fsn``, or the next one."""
    for each in segment.current_spans():
        if fsn < each.stop and each.first < each.stop:
            return Span(each.first, each.stop, each.offset, each.end)
    return None


def _frames(
    state: State, segment: Segment, fsn: int, stop: int
) -> Generator[tuple[int, bytes], None, int]:
    """Yield frames of one span; return the number to go on with.

    Frames that somebody acknowledged meanwhile are not handed out; their bytes may be gone.
    """
    view = segment.reading()
    offset, fsn = segment.offset_of(fsn, view)
    while fsn < stop:
        crc, length = FRAME_HEADER.unpack_from(view, offset)
        start = offset + FRAME_HEADER_SIZE
        end = start + length
        whole = end <= len(view) and crc32c(view[offset + 4 : end]) == crc
        with state.lock:
            if fsn <= state.ring.acked_fsn:
                return fsn
            state.ring.sent_fsn = max(state.ring.sent_fsn, fsn)
            segment.damaged = segment.damaged or not whole  # it is set aside, not deleted
        if not whole:
            raise FrameDamaged(fsn, segment.path, offset)
        segment.remember(fsn, offset)
        yield fsn, bytes(view[start:end])
        offset = end
        fsn += 1
    return fsn
