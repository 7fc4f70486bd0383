"""The two checksums (LWP section 9, AMB-01)."""

import pytest

from lance_spec.checksum import CRC32_IEEE, CRC32C


@pytest.mark.parametrize(
    ("data", "castagnoli", "ieee"),
    [
        (b"", 0x00000000, 0x00000000),
        (b"a", 0xC1D04330, 0xE8B7BE43),
        (b"hello", 0x9A71BB4C, 0x3610A686),
        (b"123456789", 0xE3069283, 0xCBF43926),
        (bytes(32), 0x8A9136AA, 0x190A55AD),
        (b"\xff" * 32, 0x62A8AB43, 0xFF6CAB0B),
        (bytes(range(32)), 0x46DD794E, 0x91267E8A),
    ],
)
def test_known_values(data: bytes, castagnoli: int, ieee: int) -> None:
    """Appendix A.3, RFC 3720 B.4 and the check values of both polynomials."""
    assert CRC32C(data) == castagnoli
    assert CRC32_IEEE(data) == ieee
    assert CRC32C(memoryview(bytearray(data))) == castagnoli


def test_a_checksum_shows_its_name() -> None:
    """The name tells the two apart."""
    assert repr(CRC32C) == "Checksum(name='crc32c')"
