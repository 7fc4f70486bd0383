"""What a generated class says when bytes or values do not fit."""

import pytest

from lance_spec.checksum import CRC32C
from lance_spec.enums import Command, RecordType
from lance_spec.errors import DecodeError, EncodeError
from lance_spec.limits import MAX_RECORD_VALUE
from lance_spec.messages import lwp
from lance_spec.messages.engine import EntryFlag, SidecarEntry, SidecarHeader
from lance_spec.messages.lwp import (
    AuthenticateResponse,
    CreateTopic,
    CreateTopicWithRetention,
    ExtendedRecord,
    Fetch,
    FetchResponse,
    FetchResponseExtended,
    Header,
    KeyValue,
    ListTopics,
    Record,
)

FETCH = bytes.fromhex("01000000 0000000000000000 00000100")


def header_bytes() -> bytearray:
    """A Keepalive header with its CRC32C."""
    return bytearray(bytes.fromhex("4c414e43 01200000 0b8ba2a3") + bytes(32))


def an_entry() -> SidecarEntry:
    """A sidecar entry with a different value in every field."""
    return SidecarEntry(1, 2, 3, 4, 5, 6, 7, 8, EntryFlag.OPAQUE)


def decode_error(cls: type[lwp.Message], data: bytes) -> DecodeError:
    """The error that decoding raises."""
    with pytest.raises(DecodeError) as caught:
        cls.decode(data)
    return caught.value


def encode_error(subject: lwp.Message) -> EncodeError:
    """The error that encoding raises."""
    with pytest.raises(EncodeError) as caught:
        subject.encode()
    return caught.value


def test_a_fetch_reads_its_three_numbers() -> None:
    """LWP section 5.8: topic id, start offset, max bytes."""
    assert Fetch.decode(FETCH) == Fetch(topic_id=1, start_offset=0, max_bytes=65536)


def test_a_short_payload_names_the_field_it_ends_in() -> None:
    """Where the bytes run out is where the error points."""
    error = decode_error(Fetch, FETCH[:10])
    assert (error.message, error.field, error.offset) == ("Fetch", "start_offset", 4)
    assert str(error) == "Fetch.start_offset at byte 4: expected 8 bytes, got 6 before the end"


def test_bytes_after_a_message_are_counted() -> None:
    """A longer payload is refused at the place where it should have ended."""
    error = decode_error(Fetch, FETCH + b"???")
    assert (error.field, error.offset, error.got) == ("", 16, "3 more bytes")


def test_an_empty_message_refuses_any_byte() -> None:
    """LWP section 5.4: ListTopics has no payload."""
    assert decode_error(ListTopics, b"x").offset == 0


@pytest.mark.parametrize(("offset", "field"), [(0, "magic"), (4, "version"), (6, "reserved")])
def test_a_header_with_a_wrong_constant_names_it(offset: int, field: str) -> None:
    """Magic, version and reserved bytes have one value each."""
    damaged = header_bytes()
    damaged[offset] ^= 0xFF
    error = decode_error(Header, bytes(damaged))
    assert (error.field, error.offset) == (field, offset)


def test_a_header_keeps_flags_and_checksums_as_numbers() -> None:
    """Judging them needs a dialect, which the frame layer has."""
    assert Header.decode(header_bytes()) == Header(0x20, 0xA3A28B0B, 0, 0, 0, 0, 0, 0)


def test_a_name_longer_than_its_payload_names_the_name() -> None:
    """LWP section 5.11: the name length counts bytes that must be there."""
    error = decode_error(CreateTopicWithRetention, b"\x06\x00even" + bytes(1))
    assert (error.field, error.offset, error.expected) == ("name", 2, "6 bytes")


def test_a_truth_value_is_0_or_1() -> None:
    """AMB-11: the byte of an AuthenticateResponse is 0 or 1."""
    assert AuthenticateResponse.decode(b"\x01yes") == AuthenticateResponse(True, b"yes")
    assert decode_error(AuthenticateResponse, b"\x02").field == "ok"


def test_a_mismatched_fetch_response_names_the_option() -> None:
    """AMB-05: bytes returned must be the payload less 16, or the peer means the other form."""
    error = decode_error(FetchResponse, bytes(24))
    assert "fetch_header=24" in error.expected


def test_a_mismatched_extended_fetch_response_names_the_option() -> None:
    """AMB-05: the offsets must span the payload less 24, or the peer means the other form."""
    error = decode_error(FetchResponseExtended, bytes(25))
    assert "fetch_header=16" in error.expected


def test_offsets_that_run_backwards_are_refused() -> None:
    """An end before its start is no length."""
    backwards = (9).to_bytes(8, "little") + (5).to_bytes(8, "little") + bytes(8)
    error = decode_error(FetchResponseExtended, backwards)
    assert (error.field, error.got) == ("data", "-4")


def test_fetched_data_is_not_copied() -> None:
    """The data of a response decoded from a view is a view of the same memory."""
    wire = bytearray(FetchResponse(0, 3, 0, b"abc").encode())
    response = FetchResponse.decode(memoryview(wire))
    wire[-1] = ord("x")
    assert response.data == b"abx"


def test_the_prefix_of_a_response_leaves_its_data_out() -> None:
    """A writer can send the prefix and the data without joining them."""
    response = FetchResponse(7, 3, 1, b"abc")
    assert response.encode_prefix() + b"abc" == response.encode()


def test_a_response_does_not_print_its_data() -> None:
    """Sixteen megabytes have no place in a log line."""
    assert repr(FetchResponse(0, 1, 0, b"x")) == (
        "FetchResponse(next_offset=0, bytes_returned=1, record_count=0)"
    )


@pytest.mark.parametrize("value", [-1, 2**32, 1.5, None])
def test_a_number_that_does_not_fit_names_its_field(value: int) -> None:
    """A topic id is an unsigned 32-bit integer."""
    error = encode_error(Fetch(topic_id=value, start_offset=0, max_bytes=0))
    assert (error.field, error.expected) == ("topic_id", "an integer from 0 to 2^32-1")
    assert error.got == repr(value)


def test_text_is_refused_where_bytes_belong() -> None:
    """Encoding text is the caller's decision."""
    error = encode_error(CreateTopic("events"))  # type: ignore[arg-type]  # the mistake under test
    assert str(error) == "CreateTopic.name: expected bytes, got a str"


def test_a_name_too_long_for_its_length_names_the_length() -> None:
    """AMB-07: the name length has 16 bits."""
    error = encode_error(CreateTopicWithRetention(bytes(65536), 0, 0))
    assert error.field == "name_length"


def test_a_key_too_long_for_its_length_names_the_length() -> None:
    """LWP section 8.3: the key length has 16 bits."""
    assert encode_error(KeyValue(bytes(65536), b"")).field == "key_length"


def test_a_record_over_16_mib_is_refused() -> None:
    """LWP section 8.7 limits a record's value."""
    assert encode_error(Record(1, bytes(MAX_RECORD_VALUE + 1))).field == "length"
    assert len(Record(1, bytes(MAX_RECORD_VALUE)).encode()) == MAX_RECORD_VALUE + 5


def test_a_record_that_claims_over_16_mib_is_refused() -> None:
    """The same limit holds for what arrives, before anything is allocated."""
    claimed = b"\x01" + (MAX_RECORD_VALUE + 1).to_bytes(4, "little")
    assert decode_error(Record, claimed).field == "length"


def test_a_stated_length_must_be_true() -> None:
    """FetchResponse.bytes_returned counts the data."""
    assert encode_error(FetchResponse(0, 4, 0, b"abc")).field == "bytes_returned"


def test_stated_offsets_must_span_the_data() -> None:
    """The extended form's offsets enclose the data."""
    assert encode_error(FetchResponseExtended(5, 9, 9, b"abc")).field == "end_offset"


def test_a_truth_value_is_written_as_0_or_1() -> None:
    """No other number can stand for yes."""
    error = encode_error(AuthenticateResponse(2, b""))  # type: ignore[arg-type]  # under test
    assert error.field == "ok"


def test_the_two_readings_of_type_0xff_differ_in_two_bytes() -> None:
    """AMB-12: an extended record has a 16-bit type where Null has its length."""
    assert ExtendedRecord(0x0102, b"v").encode() == bytes.fromhex("ff 0201 01000000 76")


def test_a_sealed_entry_is_intact() -> None:
    """AMB-14: the CRC covers bytes 0 to 59."""
    sealed = an_entry().with_crc()
    assert sealed.crc_ok()
    assert SidecarEntry.decode(sealed.encode()).crc_ok()


def test_the_seal_is_the_checksum_of_the_first_sixty_bytes() -> None:
    """AMB-14: of all of them, and of nothing else."""
    for sealed in (an_entry().with_crc(), SidecarHeader(1, 2, 3, 4).with_crc()):
        wire = sealed.encode()
        assert int.from_bytes(wire[60:], "little") == CRC32C(wire[:60])


def test_an_unsealed_entry_is_not() -> None:
    """The default checksum is not by chance the right one."""
    assert not an_entry().crc_ok()


@pytest.mark.parametrize("bit", [0, 100, 8 * 56 - 1, 8 * 60, 8 * 64 - 1])
def test_a_flipped_bit_breaks_the_seal(bit: int) -> None:
    """Damage in the fields or in the checksum shows."""
    damaged = bytearray(an_entry().with_crc().encode())
    damaged[bit // 8] ^= 1 << bit % 8
    assert not SidecarEntry.decode(damaged).crc_ok()


def test_a_sidecar_header_opens_with_its_magic() -> None:
    """AMB-14: the first eight bytes tell a sidecar from anything else."""
    wire = SidecarHeader(1, 2, 3, 4).with_crc().encode()
    assert wire[:8] == b"LNCBATCH"
    assert len(wire) == SidecarHeader.SIZE


def test_payload_classes_know_their_command() -> None:
    """The table and the classes agree."""
    for command, forms in lwp.PAYLOADS.items():
        assert all(form.COMMAND is command for form in forms)  # type: ignore[attr-defined]  # each has it


def test_unknown_commands_have_no_payload_class() -> None:
    """The alias 0x30 carries nothing of its own (AMB-11)."""
    assert Command.GET_CLUSTER_STATUS_ALIAS not in lwp.PAYLOADS


def test_plain_record_types_have_no_inside() -> None:
    """LWP section 8.3 leaves raw data to the application."""
    assert RecordType.RAW_DATA not in lwp.RECORD_VALUES
