"""The golden server's own checksum and decompression, held against libraries."""

import os

import crc32c
import lz4.block
import lz4.frame
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lance_conformance.server.golden.codec import castagnoli_in_python
from lance_conformance.server.golden.specified import Specified
from lance_conformance.server.golden.state import Refused

RULES = Specified()
CONTENTS = st.one_of(
    st.binary(max_size=400),
    st.tuples(st.binary(min_size=1, max_size=9), st.integers(0, 400)).map(lambda t: t[0] * t[1]),
)


@given(data=CONTENTS)
def test_checksums_without_the_package_are_right(data: bytes) -> None:
    """Byte by byte, it is the same number."""
    assert castagnoli_in_python(data) == crc32c.crc32c(data)


@settings(deadline=None, max_examples=60)
@given(content=CONTENTS, checked=st.booleans(), linked=st.booleans(), level=st.integers(0, 9))
def test_frames_are_opened(content: bytes, *, checked: bool, linked: bool, level: int) -> None:
    """Whatever a library writes is read back."""
    data = lz4.frame.compress(
        content, content_checksum=checked, block_linked=linked, compression_level=level
    )
    assert RULES.unpacked(data) == content


@settings(deadline=None, max_examples=60)
@given(content=CONTENTS.filter(bool))
def test_bare_blocks_are_opened(content: bytes) -> None:
    """So are blocks without a frame."""
    assert RULES.bare(lz4.block.compress(content, store_size=False)) == content


@settings(deadline=None, max_examples=60)
@given(content=st.binary(min_size=20, max_size=200), data=st.data())
def test_cut_frames_are_refused(content: bytes, data: st.DataObject) -> None:
    """A frame that lacks its end is never opened, and nothing but a refusal comes of it."""
    whole = lz4.frame.compress(content, content_checksum=True)
    cut = whole[: data.draw(st.integers(7, len(whole) - 1))]
    with pytest.raises(Refused):
        RULES.unpacked(cut)


def test_frames_beyond_a_megabyte_are_opened() -> None:
    """Several blocks, linked, of a size that copies reach across."""
    content = os.urandom(1000) * 1500
    data = lz4.frame.compress(content, block_size=lz4.frame.BLOCKSIZE_MAX64KB, block_linked=True)
    assert RULES.unpacked(data) == content
