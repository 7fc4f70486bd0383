"""Explaining what QWP puts into WebSockets and slots."""

from collections.abc import Iterator
from typing import Final

from lance_spec.errors import DecodeError
from lance_spec.explain._model import Part
from lance_spec.explain._nested import explain_part
from lance_spec.messages import qwp
from lance_spec.messages.qwp import MessageFlag
from lance_spec.qwp.upgrade import AnyPayload, payload_class

MAGIC: Final = b"QWP1"
_HEADER: Final = 12
_ANSWERS: Final = {0: "OkResponse", 2: "DurableAck"}


def explain_qwp(data: memoryview, start: int, stop: int) -> Iterator[Part]:
    """Explain ``data[start:stop]`` as a message of a sender, with its payload."""
    whole = data[:stop]
    title = f"QWP message at byte {start}"
    header = explain_part(title, "qwp.QwpMessage", whole, start=start)
    try:
        message = qwp.QwpMessage.decode(data[start:stop])
    except DecodeError:
        yield header
        return
    form = payload_class(message.flags)
    payload = explain_part(
        f"{form.__name__} (flags {_flags(message.flags)})",
        f"qwp.{form.__name__}",
        whole,
        start=start + _HEADER,
    )
    yield _counted(header, message, form)
    yield payload


def explain_answer(data: memoryview, start: int, stop: int) -> Part:
    """Explain ``data[start:stop]`` as an answer of a server."""
    name = _ANSWERS.get(data[start], "ErrorResponse") if start < stop else "OkResponse"
    title = f"QWP {name} at byte {start}"
    return explain_part(title, f"qwp.{name}", data[:stop], start=start)


def _flags(value: int) -> str:
    return "|".join(str(each.name) for each in MessageFlag if value & each) or "none"


def _counted(header: Part, message: qwp.QwpMessage, form: AnyPayload) -> Part:
    """Hold the number of tables that the header states against those there are."""
    try:
        found = len(form.decode(message.payload).tables)
    except DecodeError:
        return header
    if found == message.table_count:
        return header
    remark = f"the payload holds {found}"
    rows = [r.judged("fault", remark) if r.field == "table_count" else r for r in header.rows]
    return Part(header.title, tuple(rows))
