"""Generated codecs of nested messages are the same function as the interpreted grammar."""

import dataclasses
from typing import Any

import pytest
from construct import ConstructError
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lance_spec.codec.composed import codec
from lance_spec.errors import DecodeError
from lance_spec.ir import families
from lance_spec.ir.families import composed_messages, declaration
from lance_spec.strategies.composed import composed

NAMES = list(composed_messages())
every_message = pytest.mark.parametrize("name", NAMES)
few = settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.too_slow])
fewer = settings(few, max_examples=2)


def versions(name: str) -> st.SearchStrategy[int]:
    """Versions in which a message exists; 0 where its family has none."""
    first, last = families.composed()[name.partition(".")[0]].versions or (0, 0)
    return st.integers(max(first, composed_messages()[name].since or 0), last)


def as_argument(name: str, version: int) -> tuple[int, ...]:
    """The version as codecs take it: only where the bytes depend on it."""
    return (version,) if composed_messages()[name].versioned else ()


@st.composite
def samples(draw: st.DrawFn, name: str) -> tuple[int, Any, bytes]:
    """A version, a message and its bytes."""
    version = draw(versions(name))
    message = draw(composed(name, version))
    return version, message, message.encode(*as_argument(name, version))


def trimmed(parsed: Any, like: Any) -> Any:
    """What construct parsed, without what a caller does not give: constants and lengths."""
    if isinstance(like, dict):
        return {key: trimmed(parsed[key], value) for key, value in like.items()}
    if isinstance(like, list):
        assert len(parsed) == len(like)
        return [trimmed(one, other) for one, other in zip(parsed, like, strict=True)]
    return parsed


def judged_alike(name: str, version: int, data: bytes) -> bool:
    """Whether both sides accept with equal values, or both refuse and name the same field."""
    try:
        decoded = codec(name).decode(data, *as_argument(name, version))
    except DecodeError as error:
        return ("refused", error.field) == by_construct(name, version, data)
    kind, parsed = by_construct(name, version, data)
    mine = dataclasses.asdict(decoded)
    return kind == "read" and trimmed(parsed, mine) == mine


def by_construct(name: str, version: int, data: bytes) -> tuple[str, Any]:
    """What the interpreted grammar makes of bytes."""
    try:
        return ("read", declaration(name).construct().parse(data, version=version))
    except ConstructError as error:
        names = (error.path or "").split(" -> ")[1:]
        return ("refused", names[-1] if names else "")


@every_message
@few
@given(data=st.data())
def test_encoding_is_what_the_grammar_builds(name: str, data: st.DataObject) -> None:
    """Valid values become the same bytes on both sides."""
    version, message, wire = data.draw(samples(name))
    values = dataclasses.asdict(message)
    assert declaration(name).construct().build(values, version=version) == wire


@every_message
@few
@given(data=st.data())
def test_decoding_gives_back_what_was_encoded(name: str, data: st.DataObject) -> None:
    """Values survive the way through bytes, and both sides read the same."""
    version, message, wire = data.draw(samples(name))
    assert codec(name).decode(wire, *as_argument(name, version)) == message
    assert judged_alike(name, version, wire)


@every_message
@fewer
@given(data=st.data())
def test_every_truncation_is_judged_alike(name: str, data: st.DataObject) -> None:
    """Cut anywhere, both refuse at the same field or read the same."""
    version, _, wire = data.draw(samples(name))
    for length in range(len(wire)):
        assert judged_alike(name, version, wire[:length]), wire[:length].hex()


@every_message
@fewer
@given(data=st.data())
def test_every_single_bit_flip_is_judged_alike(name: str, data: st.DataObject) -> None:
    """With one bit inverted, both refuse at the same field or read the same."""
    version, _, wire = data.draw(samples(name))
    bits = range(8 * len(wire))
    if len(wire) > 24:
        bits = data.draw(st.lists(st.sampled_from(bits), min_size=64, max_size=128, unique=True))
    for bit in bits:
        flipped = bytearray(wire)
        flipped[bit // 8] ^= 1 << bit % 8
        assert judged_alike(name, version, bytes(flipped)), flipped.hex()


@every_message
@few
@given(data=st.data(), extra=st.binary(min_size=1, max_size=9))
def test_bytes_after_a_message_are_judged_alike(
    name: str, data: st.DataObject, extra: bytes
) -> None:
    """Only a message that takes all the rest accepts more than it wrote."""
    version, _, wire = data.draw(samples(name))
    assert judged_alike(name, version, wire + extra)


@every_message
@few
@given(data=st.data(), noise=st.binary(max_size=60))
def test_noise_is_judged_alike(name: str, data: st.DataObject, noise: bytes) -> None:
    """Arbitrary bytes are refused at the same field or read the same."""
    assert judged_alike(name, data.draw(versions(name)), noise)


@pytest.mark.parametrize("name", [n for n in NAMES if composed_messages()[n].since])
def test_versions_of_another_layout_are_refused_alike(name: str) -> None:
    """A message that came with a version is read in none before."""
    before = (composed_messages()[name].since or 0) - 1
    with pytest.raises(DecodeError, match="or later"):
        codec(name).decode(b"", before)
    assert judged_alike(name, before, b"")
