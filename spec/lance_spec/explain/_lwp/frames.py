"""Explaining frames, one after another."""

from collections.abc import Iterator

from lance_spec.checksum import Buffer
from lance_spec.enums import Flag
from lance_spec.explain._lwp.header import ParsedHeader
from lance_spec.explain._lwp.lz4 import explain_lz4
from lance_spec.explain._lwp.payload import explain_command, explain_raw
from lance_spec.explain._lwp.records import explain_records
from lance_spec.explain._model import Explanation, Part
from lance_spec.explain._values import size
from lance_spec.explain._walk import Walk, walk
from lance_spec.ir.families import message
from lance_spec.limits import MAGIC
from lance_spec.records import scan_records

_MOST = 100


def explain(data: Buffer, *, most: int = _MOST) -> Explanation:
    """Explain frames, or a bare chain of records.

    Never raises for what the bytes are: it goes as far as they make sense and names the faults.

    Args:
        data: frames back to back, from the start of a header; or records back to back.
        most: explain at most this many frames, and records of each, one by one.
    """
    view = memoryview(data).cast("B")
    if view and view[: len(MAGIC)].tobytes() != MAGIC and scan_records(view).fault is None:
        return Explanation(len(view), None, tuple(explain_records(view, 0, len(view), most=most)))
    parts: list[Part] = []
    dialect, start, number = None, 0, 1
    while start < len(view) and number <= most:
        fields = walk(message("Header"), view, start, len(view))
        header = ParsedHeader.of(fields, view) if fields.whole else None
        parts += _frame(number, fields, header, view, most)
        dialect = dialect or (header and header.dialect)
        if header is None or not header.readable:
            break
        start, number = fields.end + fields.number("payload_length"), number + 1
    else:
        if start < len(view):
            parts.append(explain_raw(view, start, len(view), "More frames, not shown"))
    return Explanation(len(view), dialect.name if dialect else None, tuple(parts))


def _frame(
    number: int, fields: Walk, header: ParsedHeader | None, view: memoryview, most: int
) -> Iterator[Part]:
    if fields.rows["magic"].verdict == "fault" and (header is None or header.dialect is None):
        yield Part(f"No frame at byte {fields.start}", (fields.rows["magic"],))
        return
    if header is not None:
        header.judge()
    kind = " and ".join(form.kind for form in header.forms) if header else "cut short"
    length = size(fields.end - fields.start + (len(header.payload) if header else 0))
    title = f"Frame {number} at byte {fields.start}: {kind or 'no kind'}, {length}"
    payload = list(_payload(header, view, most)) if header and header.readable else []
    if header:
        _judge_count(header)
    yield Part(title, tuple(fields.rows.values()))
    yield from payload


def _payload(header: ParsedHeader, view: memoryview, most: int) -> Iterator[Part]:
    start = header.fields.end
    stop = start + len(header.payload)
    carried = header.forms[0].payload if header.forms else "records"
    if carried == "command":
        code = header.fields.number("batch_id")
        yield from explain_command(code, view, start, stop, most=most)
    elif start == stop:
        return
    elif carried == "none":
        yield explain_raw(view, start, stop, "A payload that this kind of frame does not have")
    elif header.fields.number("flags") & Flag.COMPRESSED:
        yield from explain_lz4(view, start, stop, most=most)
    else:
        yield from explain_records(view, start, stop, most=most)


def _judge_count(header: ParsedHeader) -> None:
    """Hold the record count of an Ingest frame against the records there are (AMB-27)."""
    fields, whole = header.fields, len(header.payload) == header.fields.number("payload_length")
    records = bool(header.forms) and header.forms[0].payload == "records"
    if not records or not whole or fields.number("flags") & (Flag.COMPRESSED | Flag.ENCRYPTED):
        return
    if not header.readable:
        return
    count, stated = scan_records(header.payload).count, fields.number("record_count")
    if count != stated:
        found = f"the payload holds {count} whole records (AMB-27)"
        fields.judge("record_count", header.broken, found)
    elif not count:
        fields.judge("record_count", header.broken, "expected at least 1 record (AMB-27)")
