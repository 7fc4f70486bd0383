"""Handing frames out in order."""

from collections.abc import Generator, Iterator

from lance_sdk.journal._ring.segment import Segment, Span, Window, walk
from lance_sdk.journal._ring.shared_state import SharedState
from lance_sdk.journal._slot.layout import FRAME_HEADER, FRAME_HEADER_SIZE, crc32c
from lance_sdk.journal.errors import FrameDamaged


def read(state: SharedState, fsn: int) -> Iterator[tuple[int, bytes]]:
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
            fsn = yield from _frames(state, segment, max(fsn, span.first), span)


def _span(segment: Segment, fsn: int) -> Span | None:
    """Return a copy of the span that holds frame ``fsn``, or the next one."""
    for each in segment.current_spans():
        if fsn < each.stop and each.first < each.stop:
            return Span(each.first, each.stop, each.offset, each.end)
    return None


def _frames(
    state: SharedState, segment: Segment, fsn: int, span: Span
) -> Generator[tuple[int, bytes], None, int]:
    """Yield frames of one span; return the number to go on with.

    Frames that somebody acknowledged meanwhile are not handed out; their bytes may be gone.
    """
    with segment.window() as window:
        offset, fsn = _locate(state, segment, fsn, window)
        while fsn < span.stop:
            payload = _payload(window, offset, segment.size, span.end)
            with state.lock:
                if fsn <= state.ring.acked_fsn:
                    return fsn
                state.ring.sent_fsn = max(state.ring.sent_fsn, fsn)
                if payload is None:
                    segment.damaged = True  # it is set aside, not deleted
            if payload is None:
                raise FrameDamaged(fsn, segment.path, offset)
            segment.remember(fsn, offset)
            yield fsn, payload
            offset += FRAME_HEADER_SIZE + len(payload)
            fsn += 1
    return fsn


def _locate(state: SharedState, segment: Segment, fsn: int, window: Window) -> tuple[int, int]:
    """Return where a frame starts, and its number; again where a fold came in between."""
    while True:
        with state.lock:
            folds, start = segment.folds, segment.start_for(fsn)
        offset, number = walk(window, *start, fsn)
        with state.lock:
            if folds == segment.folds:
                if number < fsn:
                    segment.damaged = True
                    raise FrameDamaged(fsn, segment.path, offset)
                return offset, number
        window.forget()


def _payload(window: Window, offset: int, size: int, stop: int) -> bytes | None:
    """Return the payload of the frame at ``offset``, or None where it is not what was stored."""
    header = window.bytes_at(offset, FRAME_HEADER_SIZE, stop)
    if len(header) < FRAME_HEADER_SIZE:
        return None
    crc, length = FRAME_HEADER.unpack(header)
    if offset + FRAME_HEADER_SIZE + length > size:
        return None
    body = window.bytes_at(offset + 4, 4 + length, stop)
    if len(body) < 4 + length or crc32c(body) != crc:
        return None
    return bytes(body[4:])
