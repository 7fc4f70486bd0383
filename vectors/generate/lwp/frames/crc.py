"""Family ``crc``: checksums of byte strings under both polynomials."""

from typing import Any

from generate.codec.wire import crc, u32
from generate.document import ACCEPT, Test, document, group, note

INPUTS = (
    ("empty", b"", "No bytes at all.", "00000000", "00000000"),
    ("a", b"a", "One letter (LWP Appendix A.3).", "c1d04330", "e8b7be43"),
    ("hello", b"hello", "A word (LWP Appendix A.3).", "9a71bb4c", "3610a686"),
    (
        "check",
        b"123456789",
        "The check value by which catalogues list CRCs.",
        "e3069283",
        "cbf43926",
    ),
    ("test", b"test", "The payload of LWP Appendix A.2.", "86a072c0", "d87f7e0c"),
    ("zeros", bytes(32), "32 bytes of zeros (RFC 3720 B.4).", "8a9136aa", "190a55ad"),
    ("ones", b"\xff" * 32, "32 bytes of ones (RFC 3720 B.4).", "62a8ab43", "ff6cab0b"),
    ("rising", bytes(range(32)), "32 rising bytes (RFC 3720 B.4).", "46dd794e", "91267e8a"),
    (
        "falling",
        bytes(range(31, -1, -1)),
        "32 falling bytes (RFC 3720 B.4).",
        "113fdb5c",
        "9ab0ef72",
    ),
    (
        "iscsi-read",
        bytes.fromhex(
            "01c00000 00000000 00000000 00000000 14000000 00000400"
            "00000014 00000018 28000000 00000000 02000000 00000000"
        ),
        "An iSCSI Read command (RFC 3720 B.4).",
        "d9963a56",
        "51e17412",
    ),
    ("keepalive", b"LANC\x01\x20\0\0", "Bytes 0 to 7 of a Keepalive.", "a3a28b0b", "539c1e06"),
    ("ingest", b"LANC\x01\x04\0\0", "Bytes 0 to 7 of an Ingest.", "dc38d405", "6cd8f03a"),
    ("compressed", b"LANC\x01\x05\0\0", "The same, compressed.", "7979467b", "6d1a9a0d"),
    ("ack", b"LANC\x01\x08\0\0", "Bytes 0 to 7 of an Ack.", "7ab74eda", "65c2095e"),
    (
        "backpressure",
        b"LANC\x01\x10\0\0",
        "Bytes 0 to 7 of a Backpressure.",
        "32440d95",
        "77f7fb96",
    ),
    ("control", b"LANC\x01\x40\0\0", "Bytes 0 to 7 of a Control frame.", "8583f0c6", "1b4bd526"),
)
"""Name, input, comment, CRC32C and IEEE CRC-32; published or checked by hand."""

NOTES = {
    "OtherPolynomial": note(
        "MISSING_STEP",
        "The value is the checksum under the other polynomial.",
        "Peers that compute it are disconnected at their first frame, without an error.",
        "9.1",
    ),
    "PrintedByTheSpecification": note(
        "KNOWN_BUG",
        "The value stands in LWP Appendix A.1 and belongs to neither polynomial.",
        "An implementation that was fitted to it talks to nobody.",
        "A.1",
    ),
    "NoFinalInversion": note(
        "MISSING_STEP",
        "The register is used without its final inversion.",
        "Every checksum differs in every bit.",
        "9.1",
    ),
}


def build() -> dict[str, Any]:
    """Return the family's file."""
    header = [
        "Bytes and their checksum. `crc` is the number, `wire` its four bytes as they are sent.",
        "An invalid test states a value that must not be computed.",
    ]
    groups = [
        group("Crc", _tests(algorithm), algorithm=algorithm) for algorithm in ("crc32c", "ieee")
    ]
    return document("crc", header, NOTES, groups)


def _tests(algorithm: str) -> list[Test]:
    column = {"crc32c": 3, "ieee": 4}[algorithm]
    tests = []
    for row in INPUTS:
        known = row[column]
        assert crc(algorithm, row[1]) == int(known, 16), f"{algorithm} of {row[0]}"
        tests.append(_test(algorithm, row[0], row[1], row[2], int(known, 16)))
    return [*tests, *_wrong(algorithm)]


def _wrong(algorithm: str) -> list[Test]:
    other = {"crc32c": "ieee", "ieee": "crc32c"}[algorithm]
    values = [
        ("a-other", "a", b"a", crc(other, b"a"), "OtherPolynomial"),
        ("hello-other", "hello", b"hello", crc(other, b"hello"), "OtherPolynomial"),
        ("hello-raw", "hello", b"hello", crc(algorithm, b"hello") ^ 0xFFFFFFFF, "NoFinalInversion"),
        (
            "keepalive-printed",
            "keepalive",
            b"LANC\x01\x20\0\0",
            0x5CB4A5E3,
            "PrintedByTheSpecification",
        ),
    ]
    return [
        _test(algorithm, name, data, NOTES[flag]["description"], value)
        | {
            "pairOf": f"crc-{algorithm}-{pair}",
            "fault": {"field": "crc", "kind": "set", "value": f"{value:08x}"},
            "result": "invalid",
            "outcome": {"action": "reject"},
            "flags": [flag],
        }
        for name, pair, data, value, flag in values
    ]


def _test(algorithm: str, name: str, data: bytes, comment: str, value: int) -> Test:
    return {
        "id": f"crc-{algorithm}-{name}",
        "comment": comment,
        "clause": "9.1/polynomial",
        "level": "MUST",
        "basis": "prose",
        "bytes": data.hex(),
        "crc": f"{value:08x}",
        "wire": u32(value).hex(),
        "result": "valid",
        "outcome": ACCEPT,
        "flags": [],
    }
