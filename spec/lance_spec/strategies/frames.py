"""Hypothesis strategies made from the grammar (needs the ``test`` extra).

They lean towards the edges where codecs break: zero, the largest value of a field, empty and
growing byte strings, values without a name.
"""

import json
from importlib import import_module
from itertools import pairwise
from typing import Any, Final, TypeAlias

from hypothesis import strategies as st

from lance_spec.dialect import DIALECTS, Dialect
from lance_spec.enums import Command, Flag
from lance_spec.frames import encode_header
from lance_spec.ir.families import families, message
from lance_spec.ir.nodes import Difference, Field, LengthField, Message
from lance_spec.messages import lwp
from lance_spec.records import encode_record

Values: TypeAlias = dict[str, Any]

_MAX_BYTES = 300
_IN_JSON: Final = (Command.TOPIC_RESPONSE, Command.CLUSTER_STATUS_RESPONSE)


def codec(name: str) -> Any:
    """Return the generated class called ``name``."""
    for family in families().values():
        if any(name == each.name for each in family.messages):
            return getattr(import_module(f"lance_spec.messages.{family.name}"), name)
    raise KeyError(f"no generated class {name!r}")


def integers(field: Field) -> st.SearchStrategy[int]:
    """Return values of a number: its edges, its names, and anything between."""
    assert field.size is not None
    smallest, largest = field.facts.bounds or (0, 256**field.size - 1)
    edges = [smallest, largest, smallest + 1, (smallest + largest) // 2]
    edges += [int(name) for name in field.facts.enum or field.facts.flags or ()]
    return st.sampled_from(edges) | st.integers(smallest, largest)


def values(subject: Message) -> st.SearchStrategy[Values]:
    """Return what a caller of a generated class supplies: a dictionary by field name."""
    drawn = {each.name: _value(subject, each) for each in subject.given}
    return st.fixed_dictionaries(drawn).map(lambda given: _with_lengths(subject, given))


def _value(subject: Message, field: Field) -> st.SearchStrategy[Any]:
    if field.facts.boolean:
        return st.booleans()
    if field.is_integer:
        return integers(field)
    if field.size is not None:
        return st.binary(min_size=field.size, max_size=field.size)
    smallest, largest = 0, _MAX_BYTES
    if isinstance(field.length, LengthField):
        bounds = subject.field(field.length.name).facts.bounds
        smallest, largest = bounds or (smallest, largest)
    return st.binary(min_size=smallest, max_size=min(largest, _MAX_BYTES))


def _with_lengths(subject: Message, given: Values) -> Values:
    """Make stated lengths true to the bytes they speak of."""
    for each in subject.given:
        length = len(given[each.name]) if each.length else 0
        if isinstance(each.length, LengthField) and each.length.name in given:
            given[each.length.name] = length
        elif isinstance(each.length, Difference):
            start = min(given[each.length.start], 2**64 - 1 - length)
            given |= {each.length.start: start, each.length.end: start + length}
    return given


def encoded(name: str) -> st.SearchStrategy[bytes]:
    """Return valid encodings of the message called ``name``."""
    cls = codec(name)
    return values(message(name)).map(lambda given: bytes(cls(**given).encode()))


def records(max_count: int = 5) -> st.SearchStrategy[list[tuple[int, bytes]]]:
    """Return lists of records as pairs of type and value; values that have an inside have one."""
    types = integers(message("Record").field("type"))
    return st.lists(types.flatmap(_record), max_size=max_count)


def _record(record_type: int) -> st.SearchStrategy[tuple[int, bytes]]:
    form = {int(key): each for key, each in lwp.RECORD_VALUES.items()}.get(record_type)
    value = encoded(form.__name__) if form else st.binary(max_size=_MAX_BYTES)
    return st.tuples(st.just(record_type), value)


@st.composite
def ingests(draw: st.DrawFn, dialect: Dialect) -> bytes:
    """Return whole Ingest frames of a dialect, with at least one record."""
    batch = draw(records().filter(bool))
    payload = b"".join(encode_record(value, record_type) for record_type, value in batch)
    return _frame(
        dialect,
        Flag.BATCH_MODE,
        payload,
        batch_id=draw(st.integers(1, 2**64 - 1)),
        timestamp_ns=draw(st.integers(0, 2**64 - 1)),
        record_count=len(batch),
        topic_id=draw(st.integers(0, 2**32 - 1)),
    )


def _json_objects() -> st.SearchStrategy[bytes]:
    plain = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=20)
    members = st.dictionaries(st.text(max_size=10), plain, max_size=4)
    return members.map(lambda members: json.dumps(members).encode())


@st.composite
def controls(draw: st.DrawFn, dialect: Dialect) -> bytes:
    """Return whole Control frames of a dialect, with a payload that fits the command."""
    command = draw(st.sampled_from(list(lwp.PAYLOADS)))
    forms = lwp.PAYLOADS[command]
    form = forms[-1] if dialect.fetch_header == 24 else forms[0]
    payload = draw(_json_objects() if command in _IN_JSON else encoded(form.__name__))
    return _frame(dialect, Flag.CONTROL, payload, batch_id=int(command))


@st.composite
def signals(draw: st.DrawFn, dialect: Dialect) -> bytes:
    """Return whole frames without payload: Ack, Keepalive, Backpressure."""
    flag = draw(st.sampled_from([Flag.ACK, Flag.KEEPALIVE, Flag.BACKPRESSURE]))
    batch_id = draw(st.integers(0, 2**64 - 1)) if flag is Flag.ACK else 0
    return _frame(dialect, flag, b"", batch_id=batch_id)


def frames(dialect: Dialect) -> st.SearchStrategy[bytes]:
    """Return whole frames of every kind in a dialect."""
    return ingests(dialect) | controls(dialect) | signals(dialect)


def dialects() -> st.SearchStrategy[Dialect]:
    """Return the named dialects."""
    return st.sampled_from(list(DIALECTS.values()))


@st.composite
def cuts(draw: st.DrawFn, data: bytes) -> list[bytes]:
    """Return ``data`` in consecutive pieces, cut anywhere; some may be empty."""
    places = sorted(draw(st.lists(st.integers(0, len(data)), max_size=6)))
    edges = [0, *places, len(data)]
    return [data[start:end] for start, end in pairwise(edges)]


def _frame(dialect: Dialect, flags: int, payload: bytes, **fields: int) -> bytes:
    return encode_header(dialect, flags, payload=payload, **fields) + payload
