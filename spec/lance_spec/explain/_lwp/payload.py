"""Explaining the payload of a frame."""

from collections.abc import Iterator

from lance_spec.bodies import decode_error, decode_json
from lance_spec.enums import Command, ErrorCode
from lance_spec.errors import DecodeError
from lance_spec.explain._lwp.records import explain_records
from lance_spec.explain._model import Part
from lance_spec.explain._nested import explain_part
from lance_spec.explain._values import name
from lance_spec.explain._walk import Walk, raw_row, walk
from lance_spec.ir.families import composed, messages
from lance_spec.ir.nodes import Message


def explain_command(
    code: int, data: memoryview, start: int, stop: int, *, most: int
) -> Iterator[Part]:
    """Explain ``data[start:stop]`` as the payload of the command ``code``."""
    forms = _forms(code)
    if not forms:
        yield _of_a_group(code, data, start, stop, most) or explain_raw(
            data, start, stop, "Payload of an unknown command"
        )
        return
    form, found = _best(forms, data, start, stop)
    _judge_body(form, found)
    records_start, records_stop = _data_range(found)
    rows = list(found.rows.values())
    if found.whole and found.end < stop:
        extra = raw_row(data, found.end, stop, "extra", "Bytes after the message")
        rows.append(extra.judged("fault", f"expected the end of {form.name} (AMB-26)"))
    if rows:
        yield Part(f"{form.name} payload", tuple(rows))
    if records_start < records_stop:
        yield from explain_records(data, records_start, records_stop, most=most, may_be_cut=True)


def _of_a_group(code: int, data: memoryview, start: int, stop: int, most: int) -> Part | None:
    """Explain the payload of a command of consumer groups, if it is one (AMB-38)."""
    for each in composed()["groups"].messages:
        if each.command == code:
            name, title = f"groups.{each.name}", f"{each.name} payload"
            return explain_part(title, name, data[:stop], start=start, most=10 * most)
    return None


def explain_raw(data: memoryview, start: int, stop: int, meaning: str) -> Part:
    """Return a payload that has no fields, or none that can be seen."""
    return Part("Payload", (raw_row(data, start, stop, "payload", meaning),))


def _forms(code: int) -> list[Message]:
    if code == Command.GET_CLUSTER_STATUS_ALIAS:
        code = Command.GET_CLUSTER_STATUS
    return [each for each in messages().values() if each.command == code]


def _best(forms: list[Message], data: memoryview, start: int, stop: int) -> tuple[Message, Walk]:
    """Return the form that fits exactly, or else the first, which is the usual one (AMB-05)."""
    walks = [(form, walk(form, data, start, stop)) for form in forms]
    exact = [each for each in walks if each[1].whole and each[1].end == stop]
    return (exact or walks)[0]


def _judge_body(form: Message, found: Walk) -> None:
    body = found.values.get("body")
    if not isinstance(body, bytes):
        return
    if form.command == Command.ERROR_RESPONSE:
        code = decode_error(body).code
        named = name(ErrorCode, code) or "without a name"
        found.judge("body", "ok", f"code 0x{code:02x} {named}")
        return
    try:
        decode_json(body, form.name)
    except DecodeError as error:
        found.judge("body", "fault", f"expected {error.expected}, got {error.got}")


def _data_range(found: Walk) -> tuple[int, int]:
    """Return where the records of a FetchResponse lie; nowhere when they are not aligned."""
    row = found.rows.get("data")
    if row is None or "data" not in found.values:
        return (0, 0)
    if found.values.get("record_count") == 0 and found.values["data"]:
        found.judge("data", "note", "no record is said to start here (AMB-19)")
        return (0, 0)
    return (row.offset, found.end)
