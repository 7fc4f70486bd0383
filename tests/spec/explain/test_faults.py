"""Single faults are faults, and single; whole frames of every family are valid."""

from collections.abc import Callable
from typing import Any

import pytest
from construct import ConstructError
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from lance_spec.codec.composed import codec
from lance_spec.dialect import SPECIFIED
from lance_spec.errors import DecodeError
from lance_spec.explain import explain_any
from lance_spec.faults import KINDS, Fault, codec_of, faults
from lance_spec.frames import FrameSplitter
from lance_spec.ir.families import composed, declaration, families, message
from lance_spec.messages import fluvio, groups, rustlog
from lance_spec.strategies.families import frames, mutated, streams
from lance_spec.strategies.frames import cuts

FAMILIES = (*families(), *composed())
FIELDS = [
    f"{prefix}{each.name}.{field.name}"
    for prefix, family in (
        *(("", family) for family in families().values()),
        *((f"{name}.", family) for name, family in composed().items()),
    )
    for each in family.messages
    for field in each.fields
    if field.const is not None or field.facts.bounds or field.facts.closed or field.facts.checksum
]


def refused(name: str, data: bytes, version: int = 0) -> bool:
    """Whether a message is refused, or its checksum is."""
    cls = codec_of(name)
    try:
        value = cls.decode(data, version) if _versioned(name) else cls.decode(data)
    except DecodeError:
        return True
    return hasattr(value, "crc_ok") and not value.crc_ok()


def _versioned(name: str) -> bool:
    return message(name).versioned


@pytest.mark.parametrize("field", FIELDS)
def test_a_field_with_a_rule_can_be_broken_alone(field: str) -> None:
    """Every constant, limit, name and checksum: the valid one is taken, the broken one is not."""
    name = field.rpartition(".")[0]
    family = name.partition(".")[0]
    version = (composed()[family].versions or (0, 0))[1] if "." in name else 0

    @settings(max_examples=1, deadline=None, derandomize=True, database=None)
    @given(mutated(field, version))
    def check(fault: Fault) -> None:
        assert not refused(name, fault.valid, version)
        assert refused(name, fault.data, version) or _needs_more(name, field)

    check()


def _needs_more(name: str, field: str) -> bool:
    """Whether a flat checksum covers bytes that are not in the message itself."""
    return name in {"Header", "SegmentFrame"} and "crc" in field


@settings(max_examples=60, deadline=None)
@given(data=st.data(), name=st.sampled_from(["fluvio.ProduceRequest", "groups.GroupAssignment"]))
def test_faults_of_nested_messages_are_refused_by_the_grammar_too(
    data: st.DataObject, name: str
) -> None:
    """The interpreted grammar knows nothing of the code that made the fault."""
    fault = data.draw(mutated(f"{name}.{message(name).fields[-1].name}", 25))
    whole = declaration(name).construct()
    whole.parse(fault.valid, version=25, rows=0, present=0)
    with pytest.raises(ConstructError):
        whole.parse(fault.data, version=25, rows=0, present=0)


def test_a_message_has_faults_of_many_kinds() -> None:
    """One message with a text, a list, a name, limits and an end."""
    joined = codec("groups.GroupJoinAck")(
        member="m",
        generation=1,
        state=groups.GroupState.STABLE,
        session_timeout_ms=1,
        heartbeat_interval_ms=1,
        strategy="s",
    ).encode()
    kinds = {each.kind for each in faults("groups.GroupJoinAck", joined)}
    assert kinds == {"length", "text", "name", "limits", "cut", "trailing"}
    assert kinds < set(KINDS)


def test_a_message_that_is_not_valid_has_no_faults() -> None:
    """There would be two."""
    with pytest.raises(DecodeError):
        list(faults("Fetch", b"short"))


@pytest.mark.parametrize("family", [e for e in FAMILIES if e not in ("fluvio", "rustlog")])
def test_frames_of_every_family_are_explained_without_a_fault(family: str) -> None:
    """They are valid down to their last field; Fluvio and RustLog have tests of their own."""
    forms = {"engine": "SidecarEntry", "store_forward": "SegmentFrame"}

    @settings(max_examples=25, deadline=None, derandomize=True, database=None)
    @given(frames(family))
    def check(data: bytes) -> None:
        assert explain_any(data, form=forms.get(family, "")).faults == ()

    check()


@settings(max_examples=40, deadline=None)
@given(frames("fluvio"))
def test_frames_of_fluvio_hold_requests(data: bytes) -> None:
    """Length, header and body."""
    request = fluvio.Request.decode(fluvio.Frame.decode(data).body)
    assert request.client_id == "strategy"


@settings(max_examples=40, deadline=None)
@given(frames("rustlog"))
def test_frames_of_rustlog_hold_messages(data: bytes) -> None:
    """Length and message."""
    assert rustlog.Frame.decode(data).payload


@settings(max_examples=25, deadline=None)
@given(streams("lwp"), st.data())
def test_streams_are_frames_however_they_are_cut(frames: tuple[bytes, ...], data: Any) -> None:
    """What is drawn is what arrives."""
    splitter = FrameSplitter((SPECIFIED,))
    pieces = data.draw(cuts(b"".join(frames)))
    assert sum(len(splitter.receive_data(each)) for each in pieces) == len(frames)
    assert splitter.fault is None


@pytest.mark.parametrize("family", ["engine", "store_forward"])
def test_streams_of_files_begin_with_their_header(family: str) -> None:
    """Joined, they are a file that explains itself."""

    @settings(max_examples=20, deadline=None, derandomize=True, database=None)
    @given(streams(family))
    def check(pieces: tuple[bytes, ...]) -> None:
        assume(len(pieces) > 1)
        explanation = explain_any(b"".join(pieces))
        assert {each.field for each in explanation.broken} <= {"header_crc"}

    check()


@pytest.mark.parametrize("make", [frames, streams])
def test_an_unknown_family_is_refused_with_those_there_are(make: Callable[..., Any]) -> None:
    """The error of a misspelt name helps to spell it."""
    with pytest.raises(KeyError, match="store_forward"):
        make("kafka")


def test_an_unknown_field_is_refused() -> None:
    """Message and field are looked up before anything is drawn."""
    with pytest.raises(KeyError, match="no field"):
        mutated("Header.colour")
