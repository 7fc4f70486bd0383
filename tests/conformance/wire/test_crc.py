"""The kit's checksums against values from RFC 3720 and the usual check string."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_conformance.server.golden import codec as golden
from lance_conformance.wire.crc import crc32_ieee, crc32c, crc32c_portable

RFC_3720 = [
    (bytes(32), 0x8A9136AA),
    (b"\xff" * 32, 0x62A8AB43),
    (bytes(range(32)), 0x46DD794E),
    (bytes(reversed(range(32))), 0x113FDB5C),
]


@pytest.mark.parametrize(("data", "value"), RFC_3720)
def test_rfc_3720_values(data: bytes, value: int) -> None:
    """RFC 3720 B.4 gives these CRC32C values."""
    assert crc32c_portable(data) == value
    assert crc32c(data) == value
    assert golden.castagnoli(data) == value


@pytest.mark.parametrize(
    ("data", "castagnoli", "ieee"),
    [
        (b"", 0, 0),
        (b"a", 0xC1D04330, 0xE8B7BE43),
        (b"hello", 0x9A71BB4C, 0x3610A686),
        (b"123456789", 0xE3069283, 0xCBF43926),
        (b"LANC\x01\x20\x00\x00", 0xA3A28B0B, 0x539C1E06),
    ],
)
def test_known_values_of_both_polynomials(data: bytes, castagnoli: int, ieee: int) -> None:
    """The values of LWP Appendix A.3, the check string, and the Keepalive header (AMB-02)."""
    assert (crc32c(data), crc32_ieee(data)) == (castagnoli, ieee)


@given(st.binary(max_size=200))
def test_portable_and_accelerated_agree(data: bytes) -> None:
    """Whichever CRC32C is in use, the values are the same; so are the golden server's."""
    assert crc32c_portable(data) == crc32c(data) == golden.castagnoli(data)
    assert crc32_ieee(data) == golden.ieee(data)
