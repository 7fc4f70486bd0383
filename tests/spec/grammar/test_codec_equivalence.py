"""The generated codec and the interpreted grammar are the same function, message by message."""

from typing import Any

import pytest
from construct import ConstructError
from hypothesis import given, settings
from hypothesis import strategies as st

from lance_spec.errors import DecodeError
from lance_spec.grammar._vocab import Declaration
from lance_spec.ir.families import GRAMMARS, message, messages
from lance_spec.strategies.frames import codec, encoded, values

DECLARATIONS = {each.name: each for grammar in GRAMMARS for each in grammar.messages}
every_message = pytest.mark.parametrize("name", list(DECLARATIONS))
few = settings(max_examples=25, deadline=None)
fewer = settings(max_examples=8, deadline=None)
not_empty = pytest.mark.parametrize("name", [n for n in DECLARATIONS if message(n).fields])


def oracle(declaration: Declaration, data: bytes) -> tuple[str, Any]:
    """Read with the interpreted grammar: ("ok", values) or ("rejected", field)."""
    try:
        parsed = declaration.construct().parse(data)
    except ConstructError as error:
        names = (error.path or "").split(" -> ")[1:]
        return ("rejected", names[-1] if names else "")
    return ("ok", {each.name: parsed[each.name] for each in message(declaration.name).given})


def generated(name: str, data: bytes) -> tuple[str, Any]:
    """Read with the generated codec, in the same terms."""
    try:
        decoded = codec(name).decode(data)
    except DecodeError as error:
        return ("rejected", error.field)
    return ("ok", {each.name: getattr(decoded, each.name) for each in message(name).given})


def test_every_declared_message_has_a_generated_class() -> None:
    """No declaration is left without code."""
    assert [codec(name).__name__ for name in messages()] == list(DECLARATIONS)


@every_message
@few
@given(data=st.data())
def test_encoding_is_what_the_grammar_builds(name: str, data: st.DataObject) -> None:
    """Valid values become the same bytes on both sides."""
    drawn = data.draw(values(message(name)))
    built = DECLARATIONS[name].construct().build(drawn)
    assert codec(name)(**drawn).encode() == built


@every_message
@few
@given(data=st.data())
def test_decoding_is_what_the_grammar_parses(name: str, data: st.DataObject) -> None:
    """Valid bytes become the same values on both sides, and the values that were encoded."""
    drawn = data.draw(values(message(name)))
    wire = codec(name)(**drawn).encode()
    assert generated(name, wire) == oracle(DECLARATIONS[name], wire) == ("ok", drawn)


@every_message
@few
@given(data=st.data())
def test_a_decoded_message_encodes_to_the_bytes_it_came_from(
    name: str, data: st.DataObject
) -> None:
    """Nothing is lost or normalised on the way through a class."""
    wire = data.draw(encoded(name))
    assert codec(name).decode(wire).encode() == wire


@not_empty
@fewer
@given(data=st.data())
def test_every_truncation_is_judged_alike(name: str, data: st.DataObject) -> None:
    """Cut anywhere, both accept with the same values or both name the same field."""
    wire = data.draw(encoded(name))
    for length in range(len(wire)):
        cut = wire[:length]
        assert generated(name, cut) == oracle(DECLARATIONS[name], cut)


@not_empty
@fewer
@given(data=st.data())
def test_every_single_bit_flip_is_judged_alike(name: str, data: st.DataObject) -> None:
    """With any one bit inverted, both accept with the same values or name the same field."""
    wire = data.draw(encoded(name))
    bits = range(8 * len(wire)) if len(wire) <= 64 else data.draw(_some_bits(len(wire)))
    for bit in bits:
        flipped = bytearray(wire)
        flipped[bit // 8] ^= 1 << bit % 8
        assert generated(name, bytes(flipped)) == oracle(DECLARATIONS[name], bytes(flipped))


def _some_bits(size: int) -> st.SearchStrategy[list[int]]:
    """All bits of the first 64 bytes, and a sample of those behind."""
    behind = st.lists(st.integers(8 * 64, 8 * size - 1), max_size=64)
    return behind.map(lambda more: [*range(8 * 64), *more])


@every_message
@few
@given(data=st.data(), extra=st.binary(min_size=1, max_size=9))
def test_bytes_after_the_message_are_judged_alike(
    name: str, data: st.DataObject, extra: bytes
) -> None:
    """Only a message that takes all the rest accepts more bytes than it wrote."""
    wire = data.draw(encoded(name)) + extra
    assert generated(name, wire) == oracle(DECLARATIONS[name], wire)


@every_message
@few
@given(noise=st.binary(max_size=100))
def test_noise_is_accepted_or_refused_alike(name: str, noise: bytes) -> None:
    """On arbitrary bytes both sides agree on whether they are the message."""
    judged, known = generated(name, noise), oracle(DECLARATIONS[name], noise)
    assert judged[0] == known[0]
    if judged[0] == "ok":
        assert judged == known


@every_message
@few
@given(data=st.data())
def test_every_kind_of_buffer_decodes_alike(name: str, data: st.DataObject) -> None:
    """Bytes, bytearray and memoryview give equal messages."""
    wire = data.draw(encoded(name))
    plain = codec(name).decode(wire)
    assert codec(name).decode(bytearray(wire)) == plain
    assert codec(name).decode(memoryview(wire)) == plain
