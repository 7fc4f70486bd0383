"""Explaining flat messages that stand by themselves or one after the other."""

from collections.abc import Iterator

from lance_spec.checksum import CRC32C
from lance_spec.explain._model import Part
from lance_spec.explain._values import size
from lance_spec.explain._walk import Walk, walk
from lance_spec.ir.families import message
from lance_spec.ir.nodes import Message


def explain_flat(name: str, data: memoryview, start: int, stop: int, title: str = "") -> Part:
    """Explain ``data[start:stop]`` as the flat message ``name`` and nothing after it."""
    found = read(message(name), data, start, stop)
    return part(title or f"{name} at byte {start}", found)


def explain_each(name: str, data: memoryview, start: int, *, most: int) -> Iterator[Part]:
    """Explain ``data[start:]`` as messages of one kind, one after the other."""
    form, number = message(name), 0
    while start < len(data) and number < most:
        found = read(form, data, start, len(data))
        yield part(f"{name} {number} at byte {start}", found)
        if not found.whole or found.end == start:
            return
        start, number = found.end, number + 1
    if start < len(data):
        yield Part(f"{size(len(data) - start)} more, not shown", ())


def read(form: Message, data: memoryview, start: int, stop: int) -> Walk:
    """Read a flat message and judge the checksums that stand in it."""
    found = walk(form, data, start, stop)
    for field in form.fields:
        checksum = field.facts.checksum
        if checksum and not isinstance(checksum.over, str) and field.name in found.values:
            first, last = checksum.over
            judge_crc(found, field.name, data[start + first : start + last])
    return found


def judge_crc(found: Walk, field: str, covered: memoryview) -> None:
    """Say of a checksum that was read whether it is that of some bytes."""
    wanted = CRC32C(covered)
    if found.number(field) == wanted:
        found.judge(field, "ok", "crc32c")
    else:
        found.judge(field, "fault", f"expected 0x{wanted:08x} (crc32c)")


def part(title: str, found: Walk) -> Part:
    """Return what was read under a title."""
    return Part(title, tuple(found.rows.values()))
