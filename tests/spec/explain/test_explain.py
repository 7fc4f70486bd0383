"""Explaining bytes: every field named, every fault found, nothing raised."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lance_spec import __main__ as command
from lance_spec.dialect import DEPLOYED, DIALECTS, SPECIFIED, Dialect
from lance_spec.enums import Command, Flag
from lance_spec.explain import Explanation, Row, explain
from lance_spec.frames import FrameSplitter, encode_control, encode_header, encode_keepalive
from lance_spec.messages import groups
from lance_spec.messages.lwp import Fetch, FetchResponse, FetchResponseExtended, KeyValue, Record
from lance_spec.strategies.frames import dialects, frames

KEEPALIVE = bytes.fromhex("4c414e43 01200000 0b8ba2a3") + bytes(32)
HELLO = bytes.fromhex("01 05000000 68656c6c6f")


def ingest(payload: bytes, count: int = 1, dialect: Dialect = SPECIFIED, **fields: int) -> bytes:
    """An Ingest frame with a batch id."""
    flags = fields.pop("flags", Flag.BATCH_MODE)
    header = encode_header(
        dialect, flags, payload=payload, **{"batch_id": 7, "record_count": count, **fields}
    )
    return header + payload


def row(explanation: Explanation, name: str) -> Row:
    """The first row of a field."""
    return next(each for each in explanation.rows if each.field == name)


def test_every_byte_of_a_header_is_accounted_for() -> None:
    """The rows of a Keepalive cover its 44 bytes without gap or overlap."""
    rows = explain(KEEPALIVE).rows
    places = [(each.offset, len(bytes.fromhex(each.hex))) for each in rows]
    assert [offset for offset, _ in places] == [0, 4, 5, 6, 8, 12, 20, 28, 32, 36, 40]
    assert sum(size for _, size in places) == 44


def test_a_row_says_what_where_and_by_which_section() -> None:
    """One field as it is explained."""
    assert row(explain(KEEPALIVE), "flags") == Row(
        offset=5,
        hex="20",
        field="flags",
        value="0x20 KEEPALIVE",
        meaning="Kind of the frame and properties of its payload",
        section="LWP section 3.3",
    )


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=str)
def test_the_checksum_that_fits_names_the_dialect(dialect: Dialect) -> None:
    """Both polynomials are tried."""
    explanation = explain(encode_keepalive(dialect))
    assert explanation.dialect == dialect.name
    found = row(explanation, "header_crc")
    assert (found.verdict, found.remark) == (
        "ok",
        f"{dialect.checksum.name}, dialect {dialect.name}",
    )


def test_a_wrong_header_crc_shows_both_right_ones() -> None:
    """AMB-02: the vector printed in Appendix A.1 fits neither polynomial."""
    printed = bytes.fromhex("4c414e43 01200000 e3a5b45c") + bytes(32)
    assert explain(printed).faults == (
        "header_crc at byte 8: expected 0xa3a28b0b (crc32c) or 0x539c1e06 (ieee) (LWP section 9.3)",
    )


def test_records_of_an_ingest_are_shown() -> None:
    """Type, length and value of each record, at their offsets."""
    explanation = explain(ingest(HELLO))
    assert explanation.faults == ()
    assert row(explanation, "value").value == "'hello'"
    assert row(explanation, "value").offset == 49


def test_the_inside_of_a_record_is_shown_where_its_type_has_one() -> None:
    """LWP section 8.3: a KeyValue record holds a key and a value."""
    payload = Record(0x10, KeyValue(b"k", b"v").encode()).encode()
    assert row(explain(ingest(payload)), "key").value == "'k'"


def test_a_tombstone_with_a_value_is_a_fault() -> None:
    """LWP section 8.2: the length of Null must be 0."""
    (fault,) = explain(ingest(Record(0xFF, b"x").encode())).faults
    assert "expected an empty value" in fault


def test_a_miscounted_batch_is_a_fault() -> None:
    """AMB-27: the record count is held against the records."""
    (fault,) = explain(ingest(HELLO, count=2)).faults
    assert fault == "record_count at byte 28: the payload holds 1 whole records (AMB-27)"


def test_a_miscounted_batch_is_only_odd_where_nobody_counts() -> None:
    """AMB-27: in `deployed` the count is not checked."""
    explanation = explain(ingest(HELLO, count=2, dialect=DEPLOYED))
    assert explanation.faults == ()
    assert row(explanation, "record_count").verdict == "note"


def test_batch_id_0_is_a_fault() -> None:
    """LWP section 4.1: the batch id of an Ingest is not 0."""
    (fault,) = explain(ingest(HELLO, batch_id=0)).faults
    assert fault.startswith("batch_id at byte 12")


def test_a_command_is_named_and_its_payload_explained() -> None:
    """A Control frame's batch id is its command."""
    explanation = explain(encode_control(SPECIFIED, Command.FETCH, Fetch(1, 0, 65536).encode()))
    assert row(explanation, "batch_id").remark == "command 0x10 FETCH"
    assert row(explanation, "max_bytes").value == "65536"


def test_the_alias_of_get_cluster_status_is_known() -> None:
    """AMB-11: 0x30 has a name and no payload."""
    assert explain(encode_control(SPECIFIED, 0x30)).faults == ()


def test_an_unknown_command_is_shown_as_bytes() -> None:
    """Its payload has no fields, but it is there."""
    explanation = explain(encode_control(SPECIFIED, 0x7F, b"abc"))
    assert row(explanation, "batch_id").remark == "command 0x7f without a name"
    assert row(explanation, "payload").value == "3 bytes"


def test_bytes_after_a_command_are_a_fault() -> None:
    """AMB-26: a payload is its message and nothing else."""
    (fault,) = explain(encode_control(SPECIFIED, Command.GET_TOPIC, bytes(5))).faults
    assert fault == "extra at byte 48: expected the end of GetTopic (AMB-26)"


def test_a_short_command_names_the_field_it_lacks() -> None:
    """An empty Fetch lacks its topic id."""
    (fault,) = explain(encode_control(SPECIFIED, Command.FETCH)).faults
    assert fault == "topic_id at byte 44: needs 4 bytes, none left (LWP section 5.8)"


def test_both_forms_of_fetch_response_are_recognised() -> None:
    """AMB-05: the one whose lengths agree is shown."""
    usual = FetchResponse(10, 10, 1, HELLO).encode()
    extended = FetchResponseExtended(0, 10, 99, HELLO).encode()
    for payload, name in ((usual, "bytes_returned"), (extended, "high_water_mark")):
        explanation = explain(encode_control(SPECIFIED, Command.FETCH_RESPONSE, payload))
        assert explanation.faults == ()
        assert row(explanation, name)
        assert row(explanation, "value").value == "'hello'"


def test_a_fetched_tail_is_not_a_fault() -> None:
    """AMB-19: an answer may cut its last record."""
    payload = FetchResponse(8, 8, 0x1, HELLO[:8]).encode()
    explanation = explain(encode_control(SPECIFIED, Command.FETCH_RESPONSE, payload))
    assert explanation.faults == ()
    assert row(explanation, "value").verdict == "note"


def test_data_that_starts_inside_a_record_is_not_read_as_records() -> None:
    """AMB-19: a record count of 0 says that no record starts here."""
    payload = FetchResponse(3, 3, 0, b"llo").encode()
    explanation = explain(encode_control(SPECIFIED, Command.FETCH_RESPONSE, payload))
    assert explanation.faults == ()
    assert not any(each.field == "type" for each in explanation.rows)


def test_an_error_response_shows_its_code() -> None:
    """LWP section 12: the code's name stands beside the body."""
    body = b'{"code":16,"message":"Topic 42 not found"}'
    explanation = explain(encode_control(SPECIFIED, Command.ERROR_RESPONSE, body))
    assert row(explanation, "body").remark == "code 0x10 TOPIC_NOT_FOUND"


def test_a_topic_response_without_json_is_a_fault() -> None:
    """LWP section 5.3: a TopicResponse is JSON."""
    explanation = explain(encode_control(SPECIFIED, Command.TOPIC_RESPONSE, b"fine"))
    assert explanation.faults[0].startswith("body at byte 44: expected JSON")


def test_a_payload_that_is_too_large_ends_the_explanation() -> None:
    """AMB-32: nothing behind such a header can be trusted."""
    header = bytearray(ingest(b""))
    header[32:36] = (2**32 - 1).to_bytes(4, "little")
    explanation = explain(bytes(header) + KEEPALIVE)
    assert len(explanation.parts) == 1
    assert "payload_length at byte 32: expected at most" in explanation.faults[0]


@pytest.mark.parametrize("offset", [5, 6, 7])
def test_reserved_bits_are_a_fault_only_where_the_dialect_is_strict(offset: int) -> None:
    """AMB-33: `specified` closes the connection, `deployed` looks away."""
    for dialect, verdict in ((SPECIFIED, "fault"), (DEPLOYED, "note")):
        header = bytearray(encode_keepalive(dialect))
        header[offset] |= 0x80
        header[8:12] = dialect.checksum(header[:8]).to_bytes(4, "little")
        name = "flags" if offset == 5 else "reserved"
        assert row(explain(bytes(header)), name).verdict == verdict


def test_fields_that_a_kind_does_not_use_are_noted() -> None:
    """LWP section 4.3: all fields of a Keepalive are 0."""
    odd = encode_header(SPECIFIED, Flag.KEEPALIVE, topic_id=3)
    found = row(explain(odd), "topic_id")
    assert (found.verdict, found.remark) == ("note", "expected 0 in a frame of kind KEEPALIVE")


@pytest.mark.parametrize("missing", [1, 10])
def test_a_payload_that_is_cut_short_is_a_fault_of_its_length(missing: int) -> None:
    """The header announces what does not follow, be it one byte or all."""
    (fault, *_) = explain(ingest(HELLO)[:-missing]).faults
    shown = f"10 bytes should follow, {_bytes(10 - missing)} do"
    assert fault == f"payload_length at byte 32: {shown} (LWP section 3.2)"


def _bytes(count: int) -> str:
    return f"{count} bytes"


def test_bare_records_are_explained_too() -> None:
    """A payload without its header is a chain of records."""
    explanation = explain(HELLO * 2)
    assert [part.title for part in explanation.parts] == [
        "Record 0, RAW_DATA",
        "Record 1, RAW_DATA",
    ]


def test_what_is_no_frame_is_said_to_be_none() -> None:
    """A browser's request is not taken apart as a header."""
    explanation = explain(b"GET / HTTP/1.1\r\n\r\n")
    assert explanation.faults == ("magic at byte 0: expected 'LANC' (LWP section 3.2)",)


def test_no_bytes_are_no_fault() -> None:
    """There is nothing to say about nothing."""
    assert str(explain(b"")) == "There are no bytes to explain."


def test_many_records_are_counted_instead_of_shown() -> None:
    """An explanation has a bounded size."""
    explanation = explain(ingest(HELLO * 1000, count=1000), most=3)
    assert explanation.faults == ()
    assert explanation.rows[-1].meaning == "997 more records, not shown one by one"


def test_a_fault_among_counted_records_is_found() -> None:
    """What is not shown is still checked."""
    explanation = explain(ingest(HELLO * 5 + b"\x01", count=5), most=3)
    assert explanation.faults == (
        "records at byte 74: record 5 at byte 94 has 1 of the 5 bytes of a record header",
    )


def test_many_frames_are_counted_instead_of_shown() -> None:
    """A long capture is cut."""
    explanation = explain(KEEPALIVE * 9, most=2)
    assert len(explanation.parts) == 3
    assert explanation.parts[-1].rows[0].value == "308 bytes"


def test_the_text_marks_faults_and_ends_with_them() -> None:
    """People look at the margin first and at the last line next."""
    damaged = bytearray(KEEPALIVE)
    damaged[4] = 2
    lines = str(explain(bytes(damaged))).splitlines()
    assert [line.split()[1] for line in lines if line.startswith("!")] == ["4", "8"]
    assert lines[-2] == "Fault: version at byte 4: expected 1 (LWP section 3.2)."


def test_the_text_of_intact_bytes_says_so() -> None:
    """The absence of a fault is stated."""
    assert str(explain(KEEPALIVE)).endswith("No faults in 44 bytes.")


def test_the_json_form_holds_the_same() -> None:
    """A program gets rows, faults and dialect."""
    document = json.loads(json.dumps(explain(KEEPALIVE).to_json()))
    assert document["dialect"] == "specified"
    assert document["faults"] == []
    assert document["parts"][0]["rows"][0]["field"] == "magic"


@settings(max_examples=50, deadline=None)
@given(data=st.data(), dialect=dialects())
def test_valid_frames_have_no_faults(data: st.DataObject, dialect: Dialect) -> None:
    """Whatever the grammar can write, the explanation accepts."""
    stream = b"".join(data.draw(st.lists(frames(dialect), min_size=1, max_size=3)))
    splitter = FrameSplitter((dialect,))
    splitter.receive_data(stream)
    assert splitter.fault is None
    faults = [each for each in explain(stream).faults if not _about_content(each)]
    assert faults == []


def _about_content(fault: str) -> bool:
    """Faults of values that strategies draw freely: JSON bodies, tombstones, typed values."""
    return fault.startswith(("body at", "value at", "key", "timestamp_ns at", "type at", "length"))


@settings(max_examples=25, deadline=None)
@given(data=st.data(), dialect=dialects(), bit=st.integers(0, 95))
def test_every_flipped_bit_of_the_guarded_bytes_is_found(
    data: st.DataObject, dialect: Dialect, bit: int
) -> None:
    """LWP section 9.3: the header CRC guards bytes 0 to 7 and itself."""
    damaged = bytearray(data.draw(frames(dialect)))
    damaged[bit // 8] ^= 1 << bit % 8
    assert explain(bytes(damaged)).faults


@settings(max_examples=25, deadline=None)
@given(data=st.data(), dialect=dialects())
def test_every_truncation_is_found(data: st.DataObject, dialect: Dialect) -> None:
    """A frame that is cut short anywhere has a fault."""
    stream = data.draw(frames(dialect))
    for length in range(1, len(stream)):
        assert explain(stream[:length]).faults


@settings(max_examples=200, deadline=None)
@given(noise=st.binary(max_size=200), prefix=st.sampled_from([b"", b"LANC", KEEPALIVE[:12]]))
def test_nothing_makes_it_raise(noise: bytes, prefix: bytes) -> None:
    """Any bytes can be explained, as text and as JSON."""
    explanation = explain(prefix + noise)
    assert str(explanation)
    assert json.dumps(explanation.to_json())


def test_the_command_explains_hexadecimal(capsys: pytest.CaptureFixture[str]) -> None:
    """``python -m lance_spec explain`` takes groups of digits and exits 0 without a fault."""
    assert command.main(["explain", *KEEPALIVE.hex(" ", 4).split()]) == 0
    assert "KEEPALIVE" in capsys.readouterr().out


def test_the_command_exits_1_on_a_fault(capsys: pytest.CaptureFixture[str]) -> None:
    """A script can tell damaged bytes from intact ones."""
    assert command.main(["explain", "--json", "4c414e43"]) == 1
    assert json.loads(capsys.readouterr().out)["faults"]


def test_the_command_refuses_what_is_not_hexadecimal(capsys: pytest.CaptureFixture[str]) -> None:
    """A usage error names the place."""
    assert command.main(["explain", "4c4z"]) == 2
    assert "position 3" in capsys.readouterr().err


def test_a_command_of_a_group_is_taken_apart() -> None:
    """AMB-38: the lists of a group's message are shown value by value, at their offsets."""
    sync = groups.GroupSync(group="g", member="m", generation=3, owned=[7, 9])
    explanation = explain(encode_control(SPECIFIED, Command.GROUP_SYNC, sync.encode()))
    assert row(explanation, "owned[1]").value == "9"
    assert row(explanation, "owned[1]").offset == 44 + 2 + 2 + 8 + 4 + 4
    assert not explanation.faults


def test_a_broken_command_of_a_group_names_its_field() -> None:
    """The list that is counted longer than it is stands in the fault."""
    broken = bytearray(groups.GroupSync(group="g", member="m", generation=3, owned=[7]).encode())
    broken[12] = 9
    (fault,) = explain(encode_control(SPECIFIED, Command.GROUP_SYNC, bytes(broken))).faults
    assert fault.startswith("owned")
    assert "expected a count of 0 to 1, got 9" in fault
