"""Annotated bytes: everything is there, in order, and the fault is marked."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from lance_conformance.wire.annotate import annotate, readable_payload, split_frames
from lance_conformance.wire.consumers import subscribe
from lance_conformance.wire.control import KEEPALIVE, ingest
from lance_conformance.wire.crc import crc32c
from lance_conformance.wire.frame import Command, Frame

STREAM = st.lists(
    st.one_of(st.binary(max_size=80), st.just(KEEPALIVE.encode(crc32c))), max_size=4
).map(b"".join)


@given(STREAM.filter(lambda data: len(data) <= 64))
def test_every_byte_is_shown_once(data: bytes) -> None:
    """The rows of a short dump are the dump."""
    assert b"".join(row.data for row in annotate(data, crc32c)) == data


@given(STREAM)
def test_splitting_loses_nothing(data: bytes) -> None:
    """Frames put together are the stream."""
    assert b"".join(split_frames(data)) == data


def test_fields_and_their_meaning() -> None:
    """A header is shown field by field, as the document names them."""
    shown = "\n".join(map(str, annotate(ingest(3, 7, [b"x"]).encode(crc32c), crc32c)))
    for part in ("magic           LANC", "BATCH_MODE", "right for bytes 0-7", "topic_id        3"):
        assert part in shown


def test_the_fault_is_marked() -> None:
    """The one wrong field is marked, and no other."""
    rows = annotate(replace(KEEPALIVE, version=2).encode(crc32c), crc32c, "version")
    assert [row.field for row in rows if row.fault] == ["version"]
    assert "FAULT" in str(next(row for row in rows if row.fault))


def test_a_wrong_magic_is_still_a_header() -> None:
    """A fault in the magic bytes does not hide the other fields."""
    rows = annotate(replace(KEEPALIVE, magic=b"XXXX").encode(crc32c), crc32c, "magic")
    assert [row.field for row in rows][:3] == ["magic", "version", "flags"]


def test_a_wrong_checksum_shows_the_right_one() -> None:
    """The reader sees what it is and what it should be."""
    rows = annotate(replace(KEEPALIVE, header_crc=0).encode(crc32c), crc32c)
    assert rows[4].meaning == "0x00000000; bytes 0-7 give 0xa3a28b0b"


def test_a_cut_header_says_so() -> None:
    """Half a field is shown as far as it goes."""
    rows = annotate(KEEPALIVE.encode(crc32c)[:10], crc32c)
    assert (rows[-1].field, rows[-1].meaning, len(rows[-1].data)) == ("header_crc", "cut short", 2)


def test_long_payloads_are_elided() -> None:
    """A report shows the beginning of a long payload and says how much is left."""
    frame = Frame(flags=0x04, payload=bytes(1000))
    assert "936 more bytes" in str(annotate(frame.encode(crc32c), crc32c)[-1])


def test_bytes_that_are_no_frame_are_a_plain_dump() -> None:
    """An HTTP answer is shown as text."""
    rows = annotate(b"HTTP/1.1 400", crc32c)
    assert rows[0].meaning == "|HTTP/1.1|"


def test_text_from_the_target_cannot_steer_the_terminal() -> None:
    """Escape sequences in an error message are not printed."""
    text = readable_payload(Command.ERROR_RESPONSE, b"\x1b[2Jgone\xff")
    assert text == " [2Jgone\\xff"
    assert readable_payload(Command.FETCH_RESPONSE, b"data") is None


def test_the_payload_of_a_command_is_shown_field_by_field() -> None:
    """Whoever reads a failure need not count bytes."""
    rows = annotate(subscribe(3, 0xC0, start=25, max_bytes=100).encode(crc32c), crc32c)
    shown = {row.field: row.meaning for row in rows[-4:]}
    assert shown == {
        "topic_id": "3",
        "start_offset": "25",
        "max_batch_bytes": "100",
        "consumer_id": "192",
    }


def test_a_payload_that_is_too_short_is_shown_as_far_as_it_goes() -> None:
    """The fields that are there are named, and the rest is there, too."""
    whole = subscribe(3, 0xC0).encode(crc32c)
    rows = annotate(whole[:-5], crc32c)
    assert [row.field for row in rows[-4:]] == [
        "topic_id",
        "start_offset",
        "max_batch_bytes",
        "payload",
    ]
    assert rows[-1].data == whole[-8:-5]
