"""Explaining write-ahead logs: this server's, and those of one batch after the other."""

from collections.abc import Iterator
from typing import Final

from lance_spec.explain._flat import judge_crc, part, read
from lance_spec.explain._model import Part
from lance_spec.explain._values import size
from lance_spec.explain._walk import Walk, raw_row
from lance_spec.ir.families import message

_MAGIC: Final = b"LWAL"
_SECTOR: Final = 512
_FRAMES: Final = 2 * _SECTOR
_END: Final = 4
_HEAD: Final = 12
"""Bytes of a frame before its body."""


def explain_wal(data: memoryview, most: int) -> Iterator[Part]:
    """Explain a write-ahead log; the number is the most commits, or entries."""
    if data[_SECTOR : _SECTOR + len(_MAGIC)].tobytes() == _MAGIC:
        yield from _own(data, most)
        return
    place, number = 0, 0
    while place < len(data) and number < most:
        ended = not any(data[place : place + _END])
        found = read(message("WalEnd" if ended else "WalEntry"), data, place, len(data))
        yield part(f"{'WalEnd' if ended else 'WalEntry'} at byte {place}", found)
        if ended or not found.whole:
            return
        place, number = found.end, number + 1


def _own(data: memoryview, most: int) -> Iterator[Part]:
    """Explain the log of this server: a guard, the generation, and a frame for each commit."""
    guard = read(message("RedoEntry"), data, 0, _SECTOR)
    yield part("RedoEntry at byte 0: the first release refuses it", guard)
    use = read(message("WalGeneration"), data, _SECTOR, len(data))
    judge_crc(use, "crc", data[_SECTOR + 8 : use.end])
    yield part(f"WalGeneration at byte {_SECTOR}", use)
    place, number = _FRAMES, 0
    while place < len(data) and number < most:
        if data[place : place + len(_MAGIC)].tobytes() != _MAGIC:
            yield from _end(data, place)
            return
        frame = read(message("WalFrame"), data, place, len(data))
        judge_crc(frame, "crc", data[place + _HEAD : frame.end])
        commit = read(message("WalCommit"), data, place + _HEAD, frame.end)
        if _is_earlier(commit, use):
            yield from _end(data, place)
            return
        yield part(f"WalFrame {number} at byte {place}", frame)
        if not frame.whole:
            return
        yield part(f"WalCommit at byte {place + _HEAD}", commit)
        yield from _writes(data, commit.rows["writes"].offset, frame.end)
        place, number = frame.end, number + 1
    if place < len(data):
        yield Part(f"{size(len(data) - place)} more, not shown", ())


def _is_earlier(commit: Walk, use: Walk) -> bool:
    names = ("file_id", "generation")
    return any(commit.values.get(name) != use.values.get(name) for name in names)


def _writes(data: memoryview, start: int, stop: int) -> Iterator[Part]:
    number = 0
    while start < stop:
        found = read(message("WalWrite"), data, start, stop)
        yield part(f"WalWrite {number} at byte {start}", found)
        if not found.whole:
            return
        start, number = found.end, number + 1


def _end(data: memoryview, place: int) -> Iterator[Part]:
    """Explain what follows the last commit."""
    if data[place : place + _END].tobytes() == bytes(_END):
        found = read(message("WalEnd"), data, place, len(data))
        yield part(f"WalEnd at byte {place}", found)
        place = found.end
    if place < len(data):
        meaning = "Room that was made beforehand, or what an earlier use of the file has left"
        rest = raw_row(data, place, len(data), "free", meaning)
        yield Part(f"After the last commit, {size(len(data) - place)}", (rest,))
