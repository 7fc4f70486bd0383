"""Lowering accepts the grammar's vocabulary and refuses every other word, naming the field."""

from enum import IntFlag
from typing import Any

import pytest
from construct import (
    Array,
    Bytes,
    Const,
    Enum,
    FlagsEnum,
    GreedyBytes,
    GreedyRange,
    Int8ul,
    Int16ub,
    Int16ul,
    Int32sl,
    Int64ul,
    Optional,
    PascalString,
    Rebuild,
    len_,
    this,
)

from lance_spec.grammar._vocab import Crc, Declaration, field, message
from lance_spec.ir.lowering import GrammarError, lower
from lance_spec.ir.nodes import Difference, Fixed, LengthField, Rest, Var


def a_field(name: str, parser: Any, **facts: Any) -> Any:
    """A field with the facts every field needs."""
    return field(name, parser, **{"doc": "Something", "section": "LWP section 1", **facts})


def a_message(*fields: Any, **facts: Any) -> Declaration:
    """A message with the facts every message needs."""
    return message("Sample", *fields, **{"doc": "A sample", "section": "LWP section 1", **facts})


def refusal(*fields: Any, **facts: Any) -> GrammarError:
    """The error that lowering a message of these fields raises."""
    with pytest.raises(GrammarError) as caught:
        lower(a_message(*fields, **facts))
    return caught.value


class Wide(IntFlag):
    HIGH = 0x100


def test_neighbouring_fixed_fields_become_one_segment() -> None:
    """Integers and constants side by side are read as one."""
    lowered = lower(a_message(a_field("a", Const(b"AB")), a_field("b", Int16ul)))
    (segment,) = lowered.segments
    assert isinstance(segment, Fixed)
    assert (segment.format, segment.size, lowered.size) == ("<2sH", 4, 4)


def test_a_variable_field_parts_the_fixed_ones() -> None:
    """What stands before and behind a variable field is read separately."""
    lowered = lower(
        a_message(
            a_field("n", Rebuild(Int16ul, len_(this.name))),
            a_field("name", Bytes(this.n)),
            a_field("after", Int64ul),
        )
    )
    assert [type(each) for each in lowered.segments] == [Fixed, Var, Fixed]
    assert (lowered.minimum_size, lowered.size) == (10, None)


def test_offsets_are_known_up_to_the_first_variable_field() -> None:
    """Behind a field of variable length no offset is fixed."""
    lowered = lower(
        a_message(a_field("n", Int8ul), a_field("name", Bytes(this.n)), a_field("after", Int8ul))
    )
    assert [each.offset for each in lowered.fields] == [0, 1, None]


@pytest.mark.parametrize(
    ("parser", "length"),
    [
        (Bytes(this.a), LengthField("a")),
        (Bytes(this.b - this.a), Difference(end="b", start="a")),
        (GreedyBytes, Rest()),
    ],
)
def test_the_three_ways_to_say_how_long(parser: Any, length: object) -> None:
    """A length is a field, the difference of two, or all the rest."""
    lowered = lower(a_message(a_field("a", Int8ul), a_field("b", Int8ul), a_field("c", parser)))
    assert lowered.field("c").length == length


def test_a_computed_length_is_not_asked_of_callers() -> None:
    """A length that is rebuilt from its field is not among the given ones."""
    lowered = lower(
        a_message(a_field("n", Rebuild(Int8ul, len_(this.x))), a_field("x", Bytes(this.n)))
    )
    assert [each.name for each in lowered.given] == ["x"]


@pytest.mark.parametrize(
    "parser",
    [
        Int16ub,
        Int32sl,
        Enum(Int8ul, A=1),
        FlagsEnum(Int8ul, A=1),
        GreedyRange(Int8ul),
        Optional(Int8ul),
        PascalString(Int8ul, "utf8"),
        Array(3, Int8ul),
        Bytes(0),
        Const(b"AB", GreedyBytes),
    ],
    ids=repr,
)
def test_words_outside_the_vocabulary_are_refused(parser: Any) -> None:
    """Big-endian, signed, greedy, optional and text parsers have no place in the grammar."""
    error = refusal(a_field("x", parser))
    assert error.path == "Sample.x"
    assert "vocabulary" in error.problem


@pytest.mark.parametrize("expression", [lambda ctx: ctx.a, this.a + 1, this.a * this.a])
def test_lengths_that_cannot_be_read_are_refused(expression: Any) -> None:
    """A lambda or other arithmetic cannot be turned into code."""
    error = refusal(a_field("a", Int8ul), a_field("x", Bytes(expression)))
    assert error.path == "Sample.x"


def test_a_field_without_facts_is_refused() -> None:
    """A bare parser has no sentence and no section."""
    assert refusal("x" / Int8ul).path == "Sample[0]"


def test_a_field_without_a_name_is_refused() -> None:
    """Nothing in a message is anonymous."""
    assert refusal(a_field("a", Int8ul), Int8ul).path == "Sample[1]"


@pytest.mark.parametrize("doc", ["", "Ends with a stop.", " padded "])
def test_a_field_needs_one_sentence(doc: str) -> None:
    """The sentence is printed in tables and docstrings, which add the stop themselves."""
    assert refusal(a_field("x", Int8ul, doc=doc)).path == "Sample.x"


def test_a_field_needs_a_section() -> None:
    """Every field can be looked up where it is defined."""
    assert "section" in refusal(a_field("x", Int8ul, section="")).problem


def test_a_message_needs_a_section() -> None:
    """So can every message."""
    assert refusal(a_field("x", Int8ul), section="").path == "Sample"


def test_field_names_are_unique() -> None:
    """Two fields of one name would be one attribute."""
    assert refusal(a_field("x", Int8ul), a_field("x", Int8ul)).path == "Sample.x"


def test_nothing_follows_a_field_that_takes_the_rest() -> None:
    """Greedy bytes leave nothing."""
    error = refusal(a_field("x", GreedyBytes), a_field("y", Int8ul))
    assert error.path == "Sample.y"


@pytest.mark.parametrize("before", [[], [a_field("n", Const(b"AB"))]])
def test_a_length_refers_to_an_integer_before_it(before: list[Any]) -> None:
    """A length that comes later, or is no number, cannot be used."""
    error = refusal(*before, a_field("x", Bytes(this.n)), a_field("y", Int8ul))
    assert "refers to n" in error.problem


def test_a_computed_length_belongs_to_the_field_that_uses_it() -> None:
    """Measuring one field and bounding another would write wrong lengths."""
    error = refusal(
        a_field("n", Rebuild(Int8ul, len_(this.other))),
        a_field("x", Bytes(this.n)),
        a_field("other", GreedyBytes),
    )
    assert error.path == "Sample.n"


def test_names_of_values_fit_their_field() -> None:
    """A flag that needs more bits than the field has could never be set."""
    assert "256" in refusal(a_field("x", Int8ul, flags=Wide)).problem


def test_limits_fit_their_field() -> None:
    """A limit beyond the field's width limits nothing."""
    assert "300" in refusal(a_field("x", Int8ul, minimum=0, maximum=300)).problem


def test_limits_come_in_pairs() -> None:
    """One limit alone is a slip."""
    assert "both" in refusal(a_field("x", Int8ul, minimum=1)).problem


def test_reserved_means_zero() -> None:
    """A reserved field with another constant is a contradiction."""
    assert "zeros" in refusal(a_field("x", Const(1, Int8ul), reserved=True)).problem


@pytest.mark.parametrize("facts", [{"enum": Wide}, {"boolean": True}, {"minimum": 0, "maximum": 1}])
def test_facts_about_numbers_need_a_number(facts: dict[str, Any]) -> None:
    """Bytes have no limits and no named values."""
    assert "integers" in refusal(a_field("x", GreedyBytes, **facts)).problem


def test_only_variable_bytes_can_be_borrowed() -> None:
    """A number is always a copy."""
    assert "borrowed" in refusal(a_field("x", Int8ul, borrowed=True)).problem


@pytest.mark.parametrize("over", [(0, 9), (3, 3), (-1, 4)])
def test_a_checksum_covers_bytes_before_it(over: tuple[int, int]) -> None:
    """A checksum cannot cover itself, nothing, or what is not there."""
    crc = Crc(over=over, algorithm="crc32c")
    error = refusal(a_field("a", Int64ul), a_field("crc", Int16ul, checksum=crc))
    assert error.path == "Sample.crc"


def test_a_refusal_reads_as_a_sentence() -> None:
    """The text names the field before it says what is wrong."""
    assert str(refusal(a_field("x", Int16ub))).startswith("Sample.x: ")
