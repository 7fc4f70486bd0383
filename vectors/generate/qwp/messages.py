"""Family ``qwp_message``: what QWP senders send in columns, and what servers answer."""

from collections.abc import Iterable
from typing import Any

from generate.codec.nested import Struct
from generate.composed import NOTES, Example, Family, used
from generate.document import document, group
from generate.qwp import captured
from generate.qwp.captured import PAYLOADS
from generate.qwp.forms import FORMS, SYMBOL_FILE
from generate.qwp.grammar import (
    DURABLE,
    KINDS,
    MESSAGE,
    OK,
    PARTS,
    PAYLOAD,
    SPEC,
    TABLE,
    named,
    table,
)


def _column(kind: tuple[str, int, dict[str, Any], dict[str, Any]]) -> tuple[Example, ...]:
    name, code, full, nulls = kind
    few = {key: type(value)() for key, value in full.items() if key not in {"scale", "precision"}}
    empty = full | few | {"nulls": None}
    return (
        named(name, f"Three values of type {code:#04x}.", **table(code, full | {"nulls": None})),
        named(f"{name}-nulls", "Three rows, some of them null.", **table(code, nulls)),
        named(f"{name}-no-rows", "No rows.", **table(code, empty, 0)),
    )


def build() -> dict[str, Any]:
    """Return the family's file."""
    header = [
        "One message of QWP, or a part of one: what a sender sends and what a server answers.",
        "A valid one is read as `fields`, exactly to its end; the values of a column are the",
        "bytes that stand there. An invalid one is refused; `reason`, `field` and `offset` say",
        "why: it is `short`, has `trailing` bytes, or a `value` that must not be.",
    ]
    family = Family("qwp", "QwpMessage", "QWP", basis="prose")
    groups = [family.group(struct, examples) for struct, examples in (*PARTS, *FORMS, *SYMBOL_FILE)]
    groups += [_columns(family, kind) for kind in KINDS]
    groups += _captured()
    return document("qwp_message", header, used(NOTES, groups), groups, SPEC)


def _columns(
    family: Family, kind: tuple[str, int, dict[str, Any], dict[str, Any]]
) -> dict[str, Any]:
    """Return the tests of one type of column: its table is spoilt from the sections on."""
    own = Family(f"{family.prefix}-{kind[0]}", family.kind, family.section, family.basis)
    tests = own.tests(TABLE, _column(kind), sound=frozenset({"name", "row_count", "columns"}))
    return group(own.kind, tests, message="TableBlock", column=kind[1])


def _captured() -> list[dict[str, Any]]:
    """Return what a published sender stored and sent, and answers that it took."""
    contents = [(name, comment, data[12:]) for name, comment, data in PAYLOADS]
    spoken = [
        ("catch-up", "The symbols of earlier connections.", bytes.fromhex(captured.CATCH_UP)),
        ("next-symbol", "A message after it.", bytes.fromhex(captured.NEXT_SYMBOL)),
    ]
    answers = [
        ("one-table", "A message with one table.", bytes.fromhex(captured.OK)),
        ("no-tables", "A message of which no table is named.", captured.OK_WITHOUT_TABLES),
    ]
    durable = [("one-table", "One table is safe.", bytes.fromhex(captured.DURABLE))]
    return [
        _seen(MESSAGE, PAYLOADS, captured.SENT),
        _seen(PAYLOAD, contents, captured.SENT),
        _seen(MESSAGE, spoken, captured.SPOKEN),
        _seen(PAYLOAD, [(name, said, data[12:]) for name, said, data in spoken], captured.SPOKEN),
        _seen(OK, answers, captured.ANSWERED),
        _seen(DURABLE, durable, captured.ANSWERED),
    ]


def _seen(
    struct: Struct, rows: Iterable[tuple[str, str, bytes]], source: dict[str, str]
) -> dict[str, Any]:
    family = Family("captured-qwp", "QwpMessage", "QWP", basis="capture")
    found = group(family.kind, family.seen(struct, rows), message=struct.name)
    return found | {"source": source}
