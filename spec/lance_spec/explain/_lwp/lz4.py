"""Explaining a compressed payload: the LZ4 frame, and the records inside (AMB-20)."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import lz4.frame

from lance_spec.codec.xxhash import xxh32
from lance_spec.explain._flat import part, read
from lance_spec.explain._lwp.records import explain_records
from lance_spec.explain._model import Part
from lance_spec.explain._values import size
from lance_spec.explain._walk import Walk, raw_row
from lance_spec.grammar.lwp.lz4 import MAGIC, NOT_COMPRESSED, Lz4Flag
from lance_spec.ir.families import message
from lance_spec.limits import MAX_PAYLOAD

Judge: TypeAlias = Callable[[Walk], None]

_BAD_BITS: Final = Lz4Flag.DICTIONARY | Lz4Flag.RESERVED | Lz4Flag.VERSION_2


def explain_lz4(data: memoryview, start: int, stop: int, *, most: int) -> Iterator[Part]:
    """Explain ``data[start:stop]`` as one LZ4 frame, and the records that it holds."""
    if data[start : start + len(MAGIC)].tobytes() != MAGIC:
        row = raw_row(data, start, stop, "payload", "A bare LZ4 block")
        yield Part("Payload", (row.judged("note", "the LZ4 frame format is expected (AMB-20)"),))
        return
    frame = _Frame(data, start, stop)
    frame.read(most)
    yield from frame.parts
    if not frame.whole:
        return
    if frame.end < stop:
        extra = raw_row(data, frame.end, stop, "extra", "Bytes after the LZ4 frame")
        yield Part("Behind the LZ4 frame", (extra.judged("fault", "expected nothing (AMB-20)"),))
    yield from _inside(data[start : frame.end], most)


@dataclass(slots=True)
class _Frame:
    """An LZ4 frame that is being read.

    Attributes:
        end: where reading stands.
        whole: whether it was read to its end.
        parts: what was found.
    """

    data: memoryview
    end: int
    stop: int
    whole: bool = True
    parts: list[Part] = field(default_factory=list)

    def read(self, most: int) -> None:
        """Read head, blocks and checksums; show so many blocks one by one."""
        start = self.end
        head = self._take("Lz4Head", _judge_head)
        flags = head.number("flg")
        if flags & Lz4Flag.CONTENT_SIZE:
            self._take("Lz4ContentSize")
        descriptor = self.data[start + len(MAGIC) : self.end]
        self._take("Lz4HeadChecksum", lambda found: _judge_checksum(found, descriptor))
        self._blocks(bool(flags & Lz4Flag.BLOCK_CHECKSUM), most)
        if flags & Lz4Flag.CONTENT_CHECKSUM:
            self._take("Lz4Checksum")

    def _blocks(self, checked: bool, most: int) -> None:
        while self.whole:
            length = self._take("Lz4BlockLength", shown=len(self.parts) < most)
            number = length.number("block_length") & ~NOT_COMPRESSED
            if not length.number("block_length"):
                return  # the end, or nothing that could be read
            self._skip(length, number)
            if checked:
                self._take("Lz4Checksum", shown=len(self.parts) < most)

    def _skip(self, length: Walk, number: int) -> None:
        if number <= self.stop - self.end:
            self.end += number
            return
        length.judge("block_length", "fault", f"{size(self.stop - self.end)} left")
        self.parts.append(part("Block cut short", length))
        self.whole = False

    def _take(self, name: str, judge: Judge | None = None, *, shown: bool = True) -> Walk:
        found = read(message(name), self.data, self.end, self.stop if self.whole else self.end)
        if not self.whole:
            return Walk(self.end)
        if judge and found.whole:
            judge(found)
        if shown or not found.whole:
            self.parts.append(part(f"{name} at byte {self.end}", found))
        self.whole, self.end = found.whole, found.end
        return found


def _judge_head(head: Walk) -> None:
    flags = head.number("flg")
    if flags & _BAD_BITS or not flags & Lz4Flag.VERSION_1:
        head.judge("flg", "fault", "expected version 1, no dictionary, reserved bits 0 (AMB-20)")
    elif head.number("bd") & 0x8F:
        head.judge("bd", "fault", "expected 0x40, 0x50, 0x60 or 0x70")


def _judge_checksum(found: Walk, descriptor: memoryview) -> None:
    wanted = xxh32(descriptor) >> 8 & 0xFF
    if found.number("head_checksum") == wanted:
        found.judge("head_checksum", "ok", "xxHash-32")
    else:
        found.judge("head_checksum", "fault", f"expected 0x{wanted:02x} (xxHash-32)")


def _inside(frame: memoryview, most: int) -> Iterator[Part]:
    """Explain what a whole frame holds, which is opened within the bounds of a payload."""
    opener = lz4.frame.LZ4FrameDecompressor()
    try:
        records = opener.decompress(bytes(frame), max_length=MAX_PAYLOAD + 1)
    except RuntimeError as error:
        row = raw_row(frame, 0, len(frame), "blocks", "What is compressed")
        yield Part("Inside the LZ4 frame", (row.judged("fault", str(error)),))
        return
    if len(records) > MAX_PAYLOAD:
        row = raw_row(memoryview(records), 0, len(records), "content", "What was compressed")
        remark = f"expected at most {size(MAX_PAYLOAD)} (AMB-20, AMB-32)"
        yield Part("Inside the LZ4 frame", (row.judged("fault", remark),))
        return
    for each in explain_records(memoryview(records), 0, len(records), most=most):
        yield Part(f"{each.title}, decompressed", each.rows)
