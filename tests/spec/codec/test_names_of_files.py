"""Names of segments and of offset files, and what an offset file holds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_spec.disk.offset_files import OffsetFileName, decode_offset, encode_offset
from lance_spec.disk.segment_names import SegmentName
from lance_spec.errors import DecodeError, EncodeError

U32, U64 = st.integers(0, 2**32 - 1), st.integers(0, 2**64 - 1)
TIMES = st.tuples(U64, U64).map(sorted)


@given(U64, U64)
def test_the_name_of_an_open_segment_reads_as_it_is_written(index: int, start: int) -> None:
    """Design section 24.2: no dash while it is written."""
    name = SegmentName(index, start)
    assert SegmentName.parse(str(name)) == name
    assert not name.is_closed


@given(U64, TIMES)
def test_the_name_of_a_closed_segment_reads_as_it_is_written(
    index: int, times: tuple[int, int]
) -> None:
    """Design section 24.2: the end stands after a dash."""
    name = SegmentName(index, *times)
    assert SegmentName.parse(str(name)) == name
    assert name.is_closed


@given(st.text(max_size=60))
def test_any_text_is_a_name_or_refused(text: str) -> None:
    """Whatever lies in a folder cannot stop a start."""
    for cls in (SegmentName, OffsetFileName):
        try:
            parsed = cls.parse(text)
        except DecodeError:
            continue
        assert cls.parse(str(parsed)) == parsed


@given(U32, U64)
def test_the_name_of_an_offset_file_reads_as_it_is_written(topic: int, consumer: int) -> None:
    """AMB-49: the published client's form."""
    name = OffsetFileName(topic, consumer)
    assert OffsetFileName.parse(str(name)) == name


@given(U64)
def test_an_offset_reads_as_it_is_written(offset: int) -> None:
    """AMB-49: decimal digits and a line feed."""
    assert decode_offset(encode_offset(offset)) == offset


@given(st.binary(max_size=100))
def test_any_content_is_an_offset_or_refused(content: bytes) -> None:
    """A file cut short or overwritten is never read as another offset."""
    try:
        offset = decode_offset(content)
    except DecodeError:
        return
    assert content.rstrip(b"\n").lstrip(b"0") == (b"%d" % offset).lstrip(b"0")


@pytest.mark.parametrize("offset", [-1, 2**64])
def test_an_offset_of_more_than_64_bits_is_not_written(offset: int) -> None:
    """It could not be read again."""
    with pytest.raises(EncodeError):
        encode_offset(offset)
