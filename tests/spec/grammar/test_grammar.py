"""The grammar says what the specification says."""

import pytest

from lance_spec.enums import Command, Flag, RecordType
from lance_spec.frames import FrameKind
from lance_spec.grammar._vocab import Grammar
from lance_spec.grammar.engine.files import SIDECAR_HEADER
from lance_spec.grammar.lwp.header import FRAMES
from lance_spec.ir.families import composed_messages, families, message, messages
from lance_spec.ir.nodes import Fixed
from lance_spec.messages import groups

SIZES = {
    "Header": 44,
    "DeleteTopic": 4,
    "GetTopic": 4,
    "SetRetention": 20,
    "Fetch": 16,
    "CatchingUp": 8,
    "Subscribe": 24,
    "Unsubscribe": 12,
    "CommitOffset": 20,
    "SubscribeAck": 16,
    "CommitAck": 16,
    "OffsetForTime": 12,
    "OffsetForTimeResponse": 8,
    "BatchTimes": 20,
    "SidecarHeader": 64,
    "SidecarEntry": 64,
    "SparseIndexEntry": 24,
    "SecondaryIndexEntry": 16,
    "SortKey": 16,
    "PublishedIndexEntry": 24,
    "WalEnd": 4,
}
"""Sizes as the specification and the decisions print them, in bytes."""


@pytest.mark.parametrize(("name", "size"), SIZES.items())
def test_sizes_are_the_published_ones(name: str, size: int) -> None:
    """Each fixed message has the size its section states."""
    assert message(name).size == size


@pytest.mark.parametrize(
    ("name", "offset"),
    {
        "magic": 0,
        "version": 4,
        "flags": 5,
        "reserved": 6,
        "header_crc": 8,
        "batch_id": 12,
        "timestamp_ns": 20,
        "record_count": 28,
        "payload_length": 32,
        "payload_crc": 36,
        "topic_id": 40,
    }.items(),
)
def test_header_fields_stand_where_section_3_2_puts_them(name: str, offset: int) -> None:
    """LWP section 3.2 prints the offset of every header field."""
    assert message("Header").field(name).offset == offset


def test_every_field_and_message_is_documented() -> None:
    """Each has a sentence and a section to look it up in."""
    for subject in messages().values():
        assert subject.doc
        assert subject.section
        for field in subject.fields:
            assert field.facts.doc, f"{subject.name}.{field.name}"
            assert field.facts.section, f"{subject.name}.{field.name}"


def test_every_command_has_a_payload() -> None:
    """Every code of the enumeration is declared; 0x30 is read as 0x07 (AMB-11)."""
    every = (*messages().values(), *composed_messages().values())
    declared = {each.command for each in every if each.command is not None}
    assert set(Command) - declared == {Command.GET_CLUSTER_STATUS_ALIAS}


def test_only_fetch_response_has_two_forms() -> None:
    """AMB-05 leaves two FetchResponse layouts; nothing else is ambiguous on the wire."""
    commands = [each.command for each in messages().values() if each.command is not None]
    assert {each for each in commands if commands.count(each) > 1} == {Command.FETCH_RESPONSE}


def test_record_types_with_an_inside_are_declared() -> None:
    """LWP section 8.3 defines the inside of three types; Null must be empty."""
    declared = {each.record_type for each in messages().values() if each.record_type is not None}
    assert declared == {
        RecordType.KEY_VALUE,
        RecordType.TIMESTAMPED,
        RecordType.KEY_TIMESTAMPED,
        RecordType.NULL,
    }


def test_frame_kinds_are_the_ones_of_section_4() -> None:
    """Each kind the frame layer knows has a form, under the same flag."""
    forms = {form.kind: form.flag for form in FRAMES}
    kinds = {kind.name: kind.value for kind in FrameKind if isinstance(kind.value, Flag)}
    assert forms == kinds


def test_frame_forms_name_header_fields() -> None:
    """What must be zero exists."""
    names = {each.name for each in message("Header").fields}
    assert all(set(form.zero_fields) <= names for form in FRAMES)


def test_the_sidecar_checksums_cover_all_but_themselves() -> None:
    """AMB-14 puts the CRC over bytes 0 to 59 into the last four bytes."""
    for name in ("SidecarHeader", "SidecarEntry"):
        last = message(name).fields[-1]
        assert last.facts.checksum is not None
        assert last.facts.checksum.over == (0, last.offset)


def test_formats_are_little_endian() -> None:
    """LWP section 2.1: all multi-byte integers are little-endian."""
    for subject in messages().values():
        for segment in subject.segments:
            assert not isinstance(segment, Fixed) or segment.format.startswith("<")


def test_message_names_are_unique_across_families() -> None:
    """A name alone is enough to find a message."""
    assert len(messages()) == sum(len(each.messages) for each in families().values())


def test_a_grammar_refuses_a_name_twice() -> None:
    """Two declarations of one name would overwrite each other's class."""
    with pytest.raises(ValueError, match="SidecarHeader twice"):
        Grammar(name="x", doc="X.", sources=(), messages=(SIDECAR_HEADER, SIDECAR_HEADER))


def test_an_unknown_message_is_refused_with_the_names_there_are() -> None:
    """The error of a misspelt name helps to spell it."""
    with pytest.raises(KeyError, match="FetchResponse"):
        message("FetchReponse")


def test_group_commands_stand_in_the_range_that_is_theirs() -> None:
    """AMB-38: codes 0x60 to 0x6F; requests are even, and the answer to one is the next code."""
    codes = [each for each in Command if each.name.startswith("GROUP_")]
    assert codes == [*range(0x60, 0x6E), 0x6F]
    for each in groups.PAYLOADS:
        assert message(f"groups.{groups.PAYLOADS[each][0].__name__}").sender == (
            "server" if each % 2 else "client"
        )


def test_every_group_command_has_a_message() -> None:
    """AMB-38: what a code carries is declared."""
    assert set(groups.PAYLOADS) == {each for each in Command if each.name.startswith("GROUP_")}


@pytest.mark.parametrize("name", ["GroupSync", "GroupHeartbeat", "GroupCommit", "GroupLeave"])
def test_a_member_names_its_generation_in_every_request(name: str) -> None:
    """AMB-38: so that a coordinator can refuse a stale one."""
    assert [each.name for each in message(f"groups.{name}").fields[:3]] == [
        "group",
        "member",
        "generation",
    ]


def test_a_stale_generation_has_a_code_of_its_own() -> None:
    """AMB-38: a refused member can tell that it has to sync from every other trouble."""
    refused = groups.GroupError(
        code=groups.GroupErrorCode.STALE_GENERATION, generation=8, message="sync first"
    )
    assert groups.GroupError.decode(refused.encode()) == refused


def test_a_sort_key_opens_an_index_entry() -> None:
    """AMB-15: a sparse index entry is a sort key and an offset."""
    key = [each.name for each in message("SortKey").fields]
    assert [each.name for each in message("SparseIndexEntry").fields] == [*key, "offset"]


def test_a_replicated_write_has_the_fields_of_the_design_in_its_order() -> None:
    """Design section 4.1.1 draws them."""
    assert [each.name for each in message("ReplicatedWrite").given] == [
        "topic_id",
        "global_offset",
        "segment_name",
        "write_offset",
        "flags",
        "data",
    ]
