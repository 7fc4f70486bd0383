"""Explaining whatever there is: frames, messages, files, captures."""

from collections.abc import Iterator
from typing import Final

from lance_spec.checksum import Buffer
from lance_spec.explain._captures.conversations import PROTOCOLS, explain_conversations
from lance_spec.explain._captures.reader import is_capture
from lance_spec.explain._files import KINDS, FileKind, kind_named, kind_of
from lance_spec.explain._flat import explain_each
from lance_spec.explain._lwp.frames import explain
from lance_spec.explain._lwp.records import explain_records
from lance_spec.explain._model import Explanation, Part
from lance_spec.explain._nested import explain_message
from lance_spec.explain._qwp import MAGIC, explain_answer, explain_qwp
from lance_spec.ir.families import composed, composed_messages, messages

_MOST: Final = 100
_OWN: Final = ("lwp", "records", "qwp", "qwp-answer")


class UnknownFormError(ValueError):
    """There is no such form; the text lists what there is."""


def forms() -> tuple[str, ...]:
    """Return every name that `explain_any` takes for ``form``, the messages left out."""
    return (*_OWN, *(each.name for each in KINDS))


def explain_any(
    data: Buffer, *, file_name: str = "", form: str = "", version: int = 0, most: int = _MOST
) -> Explanation:
    """Explain bytes of any form that this package knows.

    What is self-evident is found out: captures, files of servers and slots, frames, records and
    QWP messages. Anything else needs its name. Never raises for what the bytes are.

    Args:
        data: the bytes.
        file_name: the name of the file they come from; some files have no other mark.
        form: what they are: one of `forms`, a protocol for the conversations of a capture, a flat
            message (``SidecarEntry``), one or more, or a message that nests
            (``fluvio.ProduceRequest``).
        version: version of the protocol for a message that has versions.
        most: explain at most this many frames, records and conversations one by one.

    Raises:
        UnknownFormError: there is no such form.
    """
    view = memoryview(data).cast("B")
    if form in composed_messages():
        return explain_message(form, view, version)
    if is_capture(view) and form in ("", *PROTOCOLS):
        protocol = form if form in PROTOCOLS else None
        return _explanation(view, explain_conversations(view, protocol, most))
    kind = kind_named(form) or (None if form else kind_of(view, file_name))
    if kind is not None:
        return _explanation(view, _of_kind(kind, view, most))
    return _plain(view, form, most)


def _plain(view: memoryview, form: str, most: int) -> Explanation:
    if form in ("", "lwp"):
        if not form and view[: len(MAGIC)].tobytes() == MAGIC:
            return _plain(view, "qwp", most)
        return explain(view, most=most)
    if form == "records":
        return _explanation(view, explain_records(view, 0, len(view), most=most))
    if form == "qwp":
        return _explanation(view, explain_qwp(view, 0, len(view)))
    if form == "qwp-answer":
        return _explanation(view, iter([explain_answer(view, 0, len(view))]))
    if form in messages():
        return _explanation(view, explain_each(form, view, 0, most=most))
    raise UnknownFormError(_unknown(form))


def _of_kind(kind: FileKind, view: memoryview, most: int) -> Iterator[Part]:
    yield Part(f"{kind.name}: {kind.doc}", ())
    yield from kind.explain(view, most)


def _explanation(view: memoryview, parts: Iterator[Part]) -> Explanation:
    return Explanation(len(view), None, tuple(parts))


def _unknown(form: str) -> str:
    if form in PROTOCOLS:
        return f"{form} is for captures; name the message, for example {form}.{_example(form)}"
    return (
        f"nothing is called {form!r}; there are {', '.join(forms())}, the flat messages such as "
        f"SidecarEntry, and messages by family: {', '.join(f'{each}.…' for each in composed())}"
    )


def _example(family: str) -> str:
    return composed()[family].messages[0].name
