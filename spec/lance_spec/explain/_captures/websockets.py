"""Explaining a WebSocket that carries QWP: the upgrade, its frames, and what is in them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from lance_spec.explain._model import Part, Row
from lance_spec.explain._qwp import explain_answer, explain_qwp
from lance_spec.explain._values import hexadecimal, size, text
from lance_spec.qwp.upgrade import CloseCode

_END: Final = b"\r\n\r\n"
_MOST_HEAD: Final = 65536
_KINDS: Final = {0: "continuation", 1: "text", 2: "binary", 8: "close", 9: "ping", 10: "pong"}


@dataclass(frozen=True, slots=True)
class _Frame:
    """A frame of a WebSocket."""

    start: int
    kind: int
    final: bool
    payload: bytes
    end: int


def explain_web_socket(data: memoryview, *, asks: bool, most: int) -> Iterator[Part]:
    """Explain what one side of a WebSocket sent.

    Args:
        data: all of it, from the first byte of HTTP on.
        asks: whether it is the sender's side.
        most: explain at most this many frames.
    """
    head = data[:_MOST_HEAD].tobytes().find(_END)
    if head < 0:
        row = Row(0, hexadecimal(data), "head", size(len(data)), "HTTP", "QWP wire ingress")
        yield Part("HTTP", (row.judged("note", "the head does not end here"),))
        return
    yield _head(data[:head].tobytes())
    joined = b""
    place, number = head + len(_END), 0
    while place < len(data) and number < most:
        frame = _frame(data, place)
        if frame is None:
            row = Row(place, hexadecimal(data[place:]), "frame", "", "Of a WebSocket", "RFC 6455")
            yield Part(f"Frame at byte {place}", (row.judged("note", "cut short here"),))
            return
        yield _shown(frame, asks=asks)
        if frame.kind in (0, 2):
            joined += frame.payload
        if frame.kind in (0, 2) and frame.final:
            yield from _message(joined, asks=asks)
            joined = b""
        place, number = frame.end, number + 1


def _head(raw: bytes) -> Part:
    first, *lines = raw.split(b"\r\n")
    rows, place = [], len(first) + 2
    for line in lines:
        name, _, value = line.partition(b":")
        rows.append(Row(place, "", text(name).strip("'"), text(value.strip()), "", "QWP upgrade"))
        place += len(line) + 2
    return Part(f"HTTP: {first.decode(errors='replace')[:100]}", tuple(rows))


def _frame(data: memoryview, start: int) -> _Frame | None:
    """Return the frame that begins at a place, or None where it does not end."""
    if start + 2 > len(data):
        return None
    masked, length, place = data[start + 1] >> 7, data[start + 1] & 0x7F, start + 2
    wide = {126: 2, 127: 8}.get(length, 0)
    if wide:
        length = int.from_bytes(data[place : place + wide], "big")
    place += wide
    mask = data[place : place + 4 * masked].tobytes()
    place += 4 * masked
    if place + length > len(data):
        return None
    payload = _unmasked(data[place : place + length].tobytes(), mask)
    return _Frame(start, data[start] & 15, bool(data[start] >> 7), payload, place + length)


def _unmasked(payload: bytes, mask: bytes) -> bytes:
    if not mask:
        return payload
    key = mask * (len(payload) // 4 + 1)
    joined = int.from_bytes(payload, "big") ^ int.from_bytes(key[: len(payload)], "big")
    return joined.to_bytes(len(payload), "big")


def _shown(frame: _Frame, *, asks: bool) -> Part:
    name = _KINDS.get(frame.kind, f"kind {frame.kind}")
    row = Row(frame.start, "", "frame", name, f"Of {size(len(frame.payload))}", "RFC 6455")
    if frame.kind == 8 and len(frame.payload) >= 2:
        row = row.judged("note", _close(frame.payload))
    elif frame.kind not in _KINDS or (frame.kind == 1):
        row = row.judged("fault", "QWP uses binary, close, ping and pong alone")
    elif asks and frame.kind in (0, 2) and not (frame.final and frame.kind == 2):
        row = row.judged("note", "senders put a message into one frame")
    return Part(f"WebSocket frame at byte {frame.start}", (row,))


def _close(payload: bytes) -> str:
    code = int.from_bytes(payload[:2], "big")
    known = {int(each): each.name for each in CloseCode}
    why = f", {text(payload[2:])}" if payload[2:] else ""
    return f"code {code} {known.get(code, 'without a name')}{why}"


def _message(data: bytes, *, asks: bool) -> Iterator[Part]:
    view = memoryview(data)
    if asks:
        yield from explain_qwp(view, 0, len(view))
    else:
        yield explain_answer(view, 0, len(view))
