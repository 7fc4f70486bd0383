"""The Python back end writes code that reads and writes what a grammar says, of any shape."""

import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from construct import (
    Bytes,
    Const,
    ConstructError,
    GreedyBytes,
    Int8ul,
    Int32ul,
    Rebuild,
    len_,
    this,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from lance_spec.emit.python import modules as python
from lance_spec.errors import DecodeError, EncodeError
from lance_spec.grammar._vocab import Crc, Grammar, field, message
from lance_spec.ir.lowering import lower_grammar


def a_field(name: str, parser: Any, **facts: Any) -> Any:
    """A field with the facts every field needs."""
    return field(name, parser, **{"doc": "Something", "section": "LWP section 1", **facts})


LABELLED = message(
    "Labelled",
    a_field("mark", Bytes(4)),
    a_field("first_size", Rebuild(Int8ul, len_(this.first))),
    a_field("first", Bytes(this.first_size)),
    a_field("second_size", Rebuild(Int8ul, len_(this.second))),
    a_field("second", Bytes(this.second_size)),
    a_field("level", Int8ul, minimum=1, maximum=7),
    a_field("end_mark", Const(b'"\\')),
    a_field("third_size", Rebuild(Int8ul, len_(this.third))),
    a_field("third", Bytes(this.third_size)),
    doc="Three runs of bytes between fixed fields",
    section="LWP section 1",
)
"""A message with everything LWP does not happen to combine."""

TAIL = message(
    "Tail",
    a_field("type", Int8ul),
    a_field("body", GreedyBytes),
    doc="A byte and the rest",
    section="LWP section 1",
)
SEALED = message(
    "Sealed",
    a_field("value", Int32ul),
    a_field("crc", Int32ul, checksum=Crc(over=(0, 4), algorithm="crc32c")),
    doc="A number and its checksum",
    section="LWP section 1",
)
SAMPLE = Grammar(
    name="sample", doc="A sample.", sources=("sample.py",), messages=(LABELLED, TAIL, SEALED)
)
VALUES = st.fixed_dictionaries(
    {
        "mark": st.binary(min_size=4, max_size=4),
        "first": st.binary(max_size=9),
        "second": st.binary(max_size=9),
        "level": st.integers(1, 7),
        "third": st.binary(max_size=9),
    }
)


@pytest.fixture(scope="module")
def sample() -> ModuleType:
    """The module generated from the sample grammar."""
    text = python.render(lower_grammar(SAMPLE))
    module = ModuleType("sample_messages")
    sys.modules[module.__name__] = module  # dataclasses look their module up
    exec(compile(text, "sample_messages.py", "exec"), module.__dict__)
    return module


def judged(sample: ModuleType, data: bytes) -> tuple[str, Any]:
    """What the generated code makes of bytes."""
    try:
        decoded = sample.Labelled.decode(data)
    except DecodeError as error:
        return ("rejected", error.field)
    return (
        "ok",
        [getattr(decoded, name) for name in ("mark", "first", "second", "level", "third")],
    )


def known(data: bytes) -> tuple[str, Any]:
    """What the interpreted grammar makes of bytes."""
    try:
        parsed = LABELLED.construct().parse(data)
    except ConstructError as error:
        names = (error.path or "").split(" -> ")[1:]
        return ("rejected", names[-1] if names else "")
    return ("ok", [parsed[name] for name in ("mark", "first", "second", "level", "third")])


RUN = ["level", "end_mark", "third_size"]
"""Neighbouring fixed fields, which generated code reads as one."""


def agree(mine: tuple[str, Any], theirs: tuple[str, Any]) -> bool:
    """Whether two judgements are the same.

    A run that is cut short and also holds a wrong value has two faults: generated code names
    the field that is not there, the interpreted grammar the wrong one before it.
    """
    if mine == theirs or mine[0] == "ok" or theirs[0] == "ok":
        return mine == theirs
    both = mine[1] in RUN and theirs[1] in RUN
    return both and RUN.index(mine[1]) > RUN.index(theirs[1])


@settings(max_examples=50, deadline=None)
@given(values=VALUES)
def test_any_shape_is_written_as_the_grammar_builds_it(
    sample: ModuleType, values: dict[str, Any]
) -> None:
    """Several variable fields between fixed ones encode alike."""
    assert sample.Labelled(**values).encode() == LABELLED.construct().build(values)


@settings(max_examples=25, deadline=None)
@given(values=VALUES, flip=st.integers(0, 10_000))
def test_any_shape_is_read_as_the_grammar_parses_it(
    sample: ModuleType, values: dict[str, Any], flip: int
) -> None:
    """Whole, cut short at any byte, longer by one, or with a bit flipped."""
    wire = LABELLED.construct().build(values)
    flipped = bytearray(wire)
    flipped[flip // 8 % len(wire)] ^= 1 << flip % 8
    for data in [*(wire[:length] for length in range(len(wire) + 1)), wire + b"!", bytes(flipped)]:
        assert agree(judged(sample, data), known(data))


def test_bytes_of_fixed_size_are_never_padded_or_cut(sample: ModuleType) -> None:
    """The struct module would do both in silence."""
    with pytest.raises(EncodeError, match=r"Labelled.mark: expected 4 bytes, got 3 bytes"):
        sample.Labelled(b"abc", b"", b"", 1, b"").encode()


def test_limits_hold_when_writing(sample: ModuleType) -> None:
    """A number outside its limits is refused."""
    with pytest.raises(EncodeError, match=r"Labelled.level: expected an integer from 1 to 7"):
        sample.Labelled(b"abcd", b"", b"", 8, b"").encode()


def test_a_name_of_python_is_a_field_all_the_same(sample: ModuleType) -> None:
    """A field may be called ``type``."""
    assert sample.Tail.decode(b"\x07rest") == sample.Tail(type=7, body=b"rest")


def test_a_checksum_has_a_default_to_be_replaced(sample: ModuleType) -> None:
    """A message ends with the checksum it can compute itself."""
    assert sample.Sealed(0x31323334).with_crc().crc_ok()


def test_generated_code_is_formatted(tmp_path: Path) -> None:
    """The formatter has nothing to add, whatever the grammar."""
    ruff = shutil.which("ruff", path=str(Path(sys.executable).parent)) or shutil.which("ruff")
    if ruff is None:
        pytest.skip("ruff is not installed")
    file = tmp_path / "sample.py"
    file.write_text(python.render(lower_grammar(SAMPLE)))
    arguments = [ruff, "format", "--isolated", "--line-length=100", "--diff", str(file)]
    finished = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert finished.stdout == ""
