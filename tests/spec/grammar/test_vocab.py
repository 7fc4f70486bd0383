"""The words of nested messages: what lowering refuses, and what the generated codecs do."""

import dataclasses
import shutil
import subprocess
import sys
from enum import IntEnum
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from construct import (
    Bytes,
    Const,
    ConstructError,
    GreedyBytes,
    GreedyRange,
    Int8ub,
    Int16sl,
    Int16ub,
    Int32sb,
    Int64sl,
    Optional,
    PascalString,
    PrefixedArray,
    Rebuild,
    len_,
    this,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lance_spec.emit.docs import json_description
from lance_spec.emit.python import modules as python
from lance_spec.errors import DecodeError, EncodeError
from lance_spec.grammar._columns import Elements, Nulls, PerValue, Sections
from lance_spec.grammar._composed import (
    LEB128,
    ZIGZAG,
    Blob,
    Choice,
    Filled,
    Many,
    Maybe,
    Nested,
    Sized,
    least,
)
from lance_spec.grammar._vocab import Declaration, Grammar, GrammarError, field
from lance_spec.grammar._vocab import message as declared
from lance_spec.ir.families import composed_messages, declaration, message
from lance_spec.ir.lowering import lower_grammar
from lance_spec.messages._cursor import Sink, Source
from lance_spec.strategies.composed import Drawing

LAST_VERSION = 9


class Colour(IntEnum):
    RED = 1
    GREEN = 2


def a_field(name: str, parser: Any, **facts: Any) -> Any:
    """A field with the facts every field needs."""
    return field(name, parser, **{"doc": "Something", "section": "Section 1", **facts})


def a_message(name: str, *fields: Any, **facts: Any) -> Declaration:
    """A message with the facts every message needs."""
    return declared(name, *fields, **{"doc": "A sample", "section": "Section 1", **facts})


def a_grammar(*messages: Declaration, versions: tuple[int, int] | None = None) -> Grammar:
    """A composed grammar of some messages."""
    return Grammar(
        name="sample",
        doc="A sample.",
        sources=("sample.py",),
        messages=messages,
        composed=True,
        versions=versions,
    )


POINT = a_message("Point", a_field("x", Int16sl), a_field("y", Int64sl))
PAINT = a_message("Paint", a_field("coats", Int8ub))
EVERYTHING = a_message(
    "Everything",
    a_field("mark", Bytes(3)),
    a_field("small", LEB128),
    a_field("delta", ZIGZAG),
    a_field("maybe_text", Blob(Int16ub, text=True, nullable=False)),
    a_field("nothing_or_bytes", Blob(Int32sb, nullable=True)),
    a_field("nothing_or_text", Blob(ZIGZAG, text=True, nullable=True)),
    a_field("old", Int8ub, until=3, absent=7),
    a_field("colour", Int8ub, enum=Colour, closed=True),
    a_field("paint", Choice("colour", {Colour.RED: PAINT})),
    a_field("points", Sized(LEB128, Many(LEB128, Nested(POINT)))),
    a_field("origin", Maybe(Nested(POINT)), since=5),
    a_field("size", Rebuild(Int16ub, len_(this.body) + 2)),
    a_field("body", Bytes(this.size - 2)),
    a_field("yes", Int8ub, boolean=True),
    a_field("end", Const(b"\xff\xfe")),
    a_field("rest", GreedyBytes),
)
SAMPLE = a_grammar(POINT, PAINT, EVERYTHING, versions=(0, LAST_VERSION))
"""Everything that the published protocols do not happen to combine."""


@pytest.fixture(scope="module")
def sample() -> ModuleType:
    """The module generated from the sample grammar."""
    module = ModuleType("sample_composed")
    sys.modules[module.__name__] = module  # dataclasses look their module up
    text = python.render(lower_grammar(SAMPLE))
    module.__dict__["Colour"] = Colour
    exec(compile(text, "sample_composed.py", "exec"), module.__dict__)
    return module


@st.composite
def samples(draw: st.DrawFn, module: ModuleType) -> tuple[int, Any, bytes]:
    """A version, a value and its bytes."""
    version = draw(st.integers(0, LAST_VERSION))
    drawing = Drawing(lower_grammar(SAMPLE), module, version)
    value = draw(drawing.message("Everything"))
    return version, value, value.encode(version)


def judged(module: ModuleType, version: int, data: bytes) -> tuple[str, Any]:
    """What the generated code makes of bytes."""
    try:
        return ("read", dataclasses.asdict(module.Everything.decode(data, version)))
    except DecodeError as error:
        return ("refused", error.field)


def known(version: int, data: bytes, names: list[str]) -> tuple[str, Any]:
    """What the interpreted grammar makes of bytes."""
    try:
        parsed = EVERYTHING.construct().parse(data, version=version)
    except ConstructError as error:
        path = (error.path or "").split(" -> ")[1:]
        return ("refused", path[-1] if path else "")
    return ("read", {name: plain(parsed[name]) for name in names})


def plain(value: Any) -> Any:
    """A parsed value as dictionaries and lists."""
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items() if key != "_io"}
    return [plain(each) for each in value] if isinstance(value, list) else value


thorough = settings(
    max_examples=30,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@thorough
@given(data=st.data())
def test_every_word_is_written_as_the_grammar_builds_it(
    sample: ModuleType, data: st.DataObject
) -> None:
    """In every version, with and without the fields it gates."""
    version, value, wire = data.draw(samples(sample))
    built = EVERYTHING.construct().build(dataclasses.asdict(value), version=version)
    assert wire == built


@thorough
@given(data=st.data(), flip=st.integers(0, 10_000))
def test_every_word_is_read_as_the_grammar_parses_it(
    sample: ModuleType, data: st.DataObject, flip: int
) -> None:
    """Whole, cut short at any byte, or with a bit flipped."""
    version, value, wire = data.draw(samples(sample))
    names = [each.name for each in dataclasses.fields(value)]
    assert sample.Everything.decode(wire, version) == value
    flipped = bytearray(wire)
    flipped[flip // 8 % len(wire)] ^= 1 << flip % 8
    for given_bytes in [*(wire[:length] for length in range(len(wire))), bytes(flipped)]:
        assert judged(sample, version, given_bytes) == known(version, given_bytes, names)


def test_generated_code_of_nested_messages_is_formatted(tmp_path: Path) -> None:
    """The formatter has nothing to add."""
    ruff = shutil.which("ruff", path=str(Path(sys.executable).parent)) or shutil.which("ruff")
    if ruff is None:
        pytest.skip("ruff is not installed")
    file = tmp_path / "sample.py"
    file.write_text(python.render(lower_grammar(SAMPLE)))
    arguments = [ruff, "format", "--isolated", "--line-length=100", "--diff", str(file)]
    finished = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert finished.stdout == ""


def refusal(*fields: Any, before: tuple[Declaration, ...] = (), **facts: Any) -> GrammarError:
    """The error that lowering a message of these fields raises."""
    with pytest.raises(GrammarError) as caught:
        lower_grammar(a_grammar(*before, a_message("Sample", *fields), **facts))
    return caught.value


@pytest.mark.parametrize(
    "parser",
    [
        GreedyRange(Int8ub),
        Optional(Int8ub),
        PascalString(Int8ub, "utf8"),
        PrefixedArray(Int8ub, Int8ub),
        Maybe(GreedyRange(Int8ub)),
        Blob(Bytes(2)),
    ],
    ids=repr,
)
def test_words_of_construct_that_forgive_are_refused(parser: Any) -> None:
    """What hides errors or has no bound cannot be declared."""
    error = refusal(a_field("x", parser))
    assert (error.path, "vocabulary" in error.problem) == ("Sample.x", True)


@pytest.mark.parametrize("item", [Bytes(this.n), GreedyBytes, Nested(a_message("Empty"))])
def test_a_value_of_a_list_takes_a_byte(item: Any) -> None:
    """A count of values without bytes would be bounded by nothing."""
    empty = (a_message("Empty"),)
    error = refusal(a_field("n", Int8ub), a_field("x", Many(Int8ub, item)), before=empty)
    assert "bounds nothing" in error.problem


def test_a_nested_message_stands_before_its_holder() -> None:
    """So that generated classes can name each other."""
    assert "before" in refusal(a_field("x", Nested(POINT))).problem


def test_nothing_follows_a_list_that_takes_the_rest() -> None:
    """Values up to the end leave nothing."""
    error = refusal(a_field("x", Filled(Int8ub)), a_field("y", Int8ub))
    assert error.path == "Sample.y"


def test_a_union_needs_a_closed_tag() -> None:
    """A value without a rule would leave the rest of the message unknown."""
    tag = a_field("tag", Int8ub, enum=Colour)
    choice = a_field("x", Choice("tag", {Colour.RED: PAINT}))
    assert "closed" in refusal(tag, choice, before=(PAINT,)).problem


def test_the_cases_of_a_union_are_named() -> None:
    """A case that the tag can never have is a slip."""
    tag = a_field("tag", Int8ub, enum=Colour, closed=True)
    choice = a_field("x", Choice("tag", {3: PAINT}))
    assert "name every case" in refusal(tag, choice, before=(PAINT,)).problem


def test_a_closed_field_has_an_enum() -> None:
    """Closed to what?"""
    assert "enum" in refusal(a_field("x", Int8ub, closed=True)).problem


def test_a_union_refers_to_a_field_before_it() -> None:
    """A tag that comes later cannot be used."""
    choice = a_field("x", Choice("tag", {Colour.RED: PAINT}))
    assert "refers to tag" in refusal(choice, before=(PAINT,)).problem


def test_limits_fit_signed_numbers() -> None:
    """A byte with a sign ends at 127."""
    assert "-2" in refusal(a_field("x", Int8ub, minimum=-2, maximum=3)).problem


def test_versions_are_stated() -> None:
    """A gate means nothing in a protocol without versions."""
    assert "version" in refusal(a_field("x", Int8ub, since=3, absent=0)).problem


def test_a_gated_field_is_given() -> None:
    """A constant that some versions leave out could not be told from damage."""
    gated = a_field("x", Const(1, Int8ub), since=3, absent=1)
    assert "given" in refusal(gated, versions=(0, 9)).problem


def test_flat_messages_have_no_versions() -> None:
    """The flat codecs know nothing of them."""
    flat = Grammar(
        name="flat",
        doc="Flat.",
        sources=(),
        messages=(a_message("Flat", a_field("x", Int8ub, since=3, absent=0)),),
    )
    with pytest.raises(GrammarError):
        lower_grammar(flat)


def test_a_measure_counts_what_its_bytes_say() -> None:
    """A length that counts two more must be read as two less."""
    size = a_field("n", Rebuild(Int8ub, len_(this.x) + 2))
    assert refusal(size, a_field("x", Bytes(this.n - 1))).path == "Sample.n"


@pytest.mark.parametrize("name", composed_messages())
def test_the_smallest_size_is_the_one_of_the_grammar(name: str) -> None:
    """It bounds counts on both sides, so both must say the same."""
    assert message(name).minimum_size == least(Nested(declaration(name)))


def test_the_json_form_describes_shapes() -> None:
    """Another language can follow it down to the numbers."""
    text = json_description.render(lower_grammar(SAMPLE))
    assert '"kind": "sized"' in text
    assert '"kind": "many"' in text
    assert '"nullable": true' in text
    assert '"until": 3' in text


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("mark", b"12", "3 bytes"),
        ("mark", "abc", "bytes"),
        ("small", -1, "an integer from 0"),
        ("small", "1", "an integer from 0"),
        ("delta", 2**63, "an integer from -"),
        ("maybe_text", b"bytes", "text"),
        ("maybe_text", "\ud800", "without lone surrogates"),
        ("maybe_text", "x" * 65536, "an integer from 0 to 65535"),
        ("nothing_or_bytes", "text", "bytes"),
        ("colour", 3, "a value of Colour"),
        ("points", None, "a list"),
        ("points", [1], "a Point"),
        ("yes", 2, "True or False"),
    ],
)
def test_a_value_that_does_not_fit_is_refused(
    sample: ModuleType, name: str, value: object, expected: str
) -> None:
    """The error names the field and what it wants."""
    valid = sample.Everything(
        mark=b"abc",
        small=0,
        delta=0,
        maybe_text="",
        nothing_or_bytes=None,
        nothing_or_text=None,
        colour=Colour.GREEN,
        paint=None,
        points=[],
        body=b"",
        yes=True,
        rest=b"",
    )
    assert sample.Everything.decode(valid.encode(5), 5) == valid
    with pytest.raises(EncodeError) as caught:
        dataclasses.replace(valid, **{name: value}).encode(5)
    assert (caught.value.field, expected in caught.value.expected) == (name, True)


def test_cursors_show_where_they_stand() -> None:
    """For whoever debugs a codec."""
    source, sink = Source(b"abc"), Sink()
    source.message, source.field = sink.message, sink.field = "Point", "x"
    assert repr(source) == "Source(Point.x; 0 of 3 bytes)"
    assert repr(sink) == "Sink(Point.x; 0 bytes)"


def test_columns_lean_on_fields_before_them() -> None:
    """A section of rows that no field states could be of any length."""
    column = a_message("Column", a_field("kind", Int8ub, enum=Colour, closed=True))
    section = a_message("Section", a_field("nulls", Nulls()), a_field("values", PerValue(1)))
    sections = a_field("x", Sections("columns", "kind", "rows", dict.fromkeys(Colour, section)))
    columns = a_field("columns", Many(Int8ub, Nested(column)))
    before = (column, section)
    assert "refers to rows" in refusal(columns, sections, before=before).problem
    rows = a_field("rows", Int8ub)
    assert "refers to columns" in refusal(rows, sections, before=before).problem
    lower_grammar(a_grammar(*before, a_message("Sample", rows, columns, sections)))


def test_bits_and_dimensions_stand_before_what_they_measure() -> None:
    """Both are read first."""
    assert "refers to bits" in refusal(a_field("x", PerValue(bits="bits"))).problem
    assert "refers to dims" in refusal(a_field("x", Elements("dims", 8))).problem
