"""Explaining a chain of TLV records."""

from collections.abc import Iterator

from lance_spec.enums import RecordType
from lance_spec.explain._model import Part
from lance_spec.explain._values import name, size
from lance_spec.explain._walk import Walk, raw_row, walk
from lance_spec.ir.families import message, messages
from lance_spec.ir.nodes import Message
from lance_spec.records import scan_records

_CUT = "cut here; the next Fetch brings the rest (AMB-19)"


def explain_records(
    data: memoryview, start: int, stop: int, *, most: int, may_be_cut: bool = False
) -> Iterator[Part]:
    """Explain the records in ``data[start:stop]``.

    Args:
        data: the bytes that offsets count in.
        start: where the first record begins.
        stop: where the chain ends.
        most: explain at most this many records and count the others.
        may_be_cut: whether the last record may be incomplete, as in an answer to Fetch.
    """
    index = 0
    while start < stop and index < most:
        found = walk(message("Record"), data, start, stop)
        if not found.whole and may_be_cut:
            last = list(found.rows)[-1]
            found.rows[last] = found.rows[last].judged("note", _CUT)
        yield Part(f"Record {index}, {_kind(found)}", tuple(found.rows.values()))
        if not found.whole:
            return
        yield from _inside(data, found, index)
        start, index = found.end, index + 1
    if start < stop:
        yield _others(data, start, stop, index, may_be_cut=may_be_cut)


def _kind(record: Walk) -> str:
    if "type" not in record.values:
        return "cut short"
    return name(RecordType, record.number("type")) or f"type 0x{record.number('type'):02x}"


def _inside(data: memoryview, record: Walk, index: int) -> Iterator[Part]:
    """Explain the value of a record whose type says what is in it."""
    form = _value_form(record.number("type"))
    if form is None:
        return
    start = record.rows["value"].offset
    found = walk(form, data, start, record.end)
    rows = list(found.rows.values())
    if found.whole and found.end < record.end:
        extra = raw_row(data, found.end, record.end, "value", "Bytes that a tombstone cannot have")
        rows.append(extra.judged("fault", "expected an empty value"))
    if rows:
        yield Part(f"Record {index}, inside {form.name}", tuple(rows))


def _value_form(record_type: int) -> Message | None:
    forms = (each for each in messages().values() if each.record_type == record_type)
    return next(forms, None)


def _others(data: memoryview, start: int, stop: int, index: int, *, may_be_cut: bool) -> Part:
    scan = scan_records(data[start:stop])
    row = raw_row(data, start, stop, "records", f"{scan.count} more records, not shown one by one")
    if scan.fault is not None and not (may_be_cut and scan.fault.truncated):
        where = f"record {index + scan.fault.index} at byte {start + scan.fault.offset}"
        row = row.judged("fault", f"{where} has {scan.fault.reason}")
    return Part(f"Records from {index} on, {size(stop - start)}", (row,))
