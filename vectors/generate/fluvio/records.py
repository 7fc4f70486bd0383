"""Family ``fluvio_records``: the records of a batch, in each compression."""

from collections.abc import Iterator
from typing import Any

from generate.codec.containers import Lz4, gzip, lz4_literals, snappy, zstd
from generate.document import Test, document, group, note
from generate.fluvio import captured
from generate.fluvio.common_types import RECORDS
from generate.fluvio.examples import record
from generate.fluvio.messages import SPEC
from generate.plain import Plain

NOTES = {
    "CutCompression": note(
        "EDGE_CASE",
        "Compressed bytes end early.",
        "A reader that takes what it got loses records without an error.",
        "FLV-01",
    ),
    "NoCompression": note(
        "MODIFIED_PARAMETER",
        "The bytes are not what the batch says they are compressed with.",
        "A reader that goes on reads records that nobody sent.",
        "FLV-01",
    ),
    "ContentChecksum": note(
        "MISSING_STEP",
        "The checksum that the compression carries does not fit.",
        "A reader that skips it returns what nobody sent; the batch's own checksum is right.",
        "FLV-01",
    ),
    "NoRecords": note(
        "EDGE_CASE",
        "What the compression holds is not a list of records.",
        "A reader that does not check returns records that nobody sent.",
        "FLV-01",
    ),
}
CODES = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
"""Bits 0 to 2 of a batch's attributes."""

SENT = [
    record(b"hello " * 8, key=b"k1"),
    record(b"hello " * 8 + b"world", key=b"", at=1),
]
"""What the captured batches hold."""
HELLO = record(b"hello", key=b"k")
ONE = RECORDS.encode({"records": [HELLO]})
NONE = RECORDS.encode({"records": []})


def stored(data: bytes) -> dict[str, bytes]:
    """Return bytes in each compression, without compressing them."""
    return {
        "none": data,
        "gzip": gzip(data),
        "snappy": snappy((1, data, data)),
        "lz4": Lz4(blocks=((False, data),), content=data).encode(),
        "zstd": zstd(data),
    }


FORMS = {
    "lz4": (
        (
            "literals",
            "A compressed block.",
            Lz4(blocks=((True, lz4_literals(ONE)),), content=ONE).encode(),
        ),
        (
            "unchecked",
            "No checksum of the content.",
            Lz4(blocks=((False, ONE),), content=ONE, checked=False).encode(),
        ),
    ),
    "snappy": (
        ("two-chunks", "Two chunks.", snappy((1, ONE[:5], ONE[:5]), (1, ONE[5:], ONE[5:]))),
        (
            "literal",
            "A compressed chunk.",
            snappy((0, bytes([len(ONE), (len(ONE) - 1) << 2]) + ONE, ONE)),
        ),
    ),
}
"""Other ways of writing the same."""
SPOTS = {
    "gzip": ((0, "NoCompression"), (-5, "ContentChecksum"), (-1, "ContentChecksum")),
    "snappy": ((0, "NoCompression"), (4, "NoCompression"), (14, "ContentChecksum")),
    "lz4": ((0, "NoCompression"), (6, "NoCompression"), (-1, "ContentChecksum")),
    "zstd": ((0, "NoCompression"), (3, "NoCompression")),
}
"""Bytes of a stored form in which one changed bit must be noticed."""


def build() -> dict[str, Any]:
    """Return the family's file."""
    header = [
        "The records of a Fluvio batch as bytes, compressed as the group says; `attributes` is",
        "what a batch states for it. A valid test is read as `fields`, the records with their",
        "count, which stands inside the compression. An invalid one is refused.",
    ]
    groups = [
        group("FluvioRecords", _tests(name), compression=name, attributes=code)
        for name, code in CODES.items()
    ]
    groups += [
        group("FluvioRecords", [_captured(name, raw)], compression=name, attributes=CODES[name])
        | {"source": captured.SENT}
        for name, raw in captured.COMPRESSED.items()
    ]
    return document("fluvio_records", header, NOTES, groups, SPEC)


def shown(*records: dict[str, Any]) -> dict[str, Any]:
    """Return what a reader finds."""
    return RECORDS.show({"records": list(records)}, 0)


def _captured(name: str, raw: str) -> Test:
    plain = Plain("captured-records", "FLV-01/Records", basis="capture")
    comment = f"Two records as the published client compressed them with {name}."
    return plain.valid(name, comment, bytes.fromhex(raw), shown(*SENT))


def _tests(name: str) -> Iterator[Test]:
    plain = Plain(f"records-{name}", "FLV-01/Records")
    one = plain.valid("one", "One record.", stored(ONE)[name], shown(HELLO))
    size = len(one["bytes"]) // 2
    yield one
    yield plain.valid("none", "No record, only the count.", stored(NONE)[name], shown())
    for title, comment, data in FORMS.get(name, ()):
        yield plain.valid(title, comment, data, shown(HELLO))
    for length in dict.fromkeys((0, 4, size // 2, size - 1)):
        yield plain.cut(one, length, "CutCompression")
    for place, flag in SPOTS.get(name, ()):
        yield plain.flip(one, place, f"One bit of byte {place % size} has changed.", flag)
    comment = "The last byte of the records is missing inside."
    change = (0, size, stored(ONE[:-1])[name])
    yield plain.splice(one, "short-inside", comment, change, flag="NoRecords")
