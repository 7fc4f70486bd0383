"""Cases about records: their types, their lengths, and chains that break (LWP section 8)."""

from typing import Any

from generate.codec.wire import crc, record, u16, u32, u64
from generate.server.form import (
    Json,
    ack,
    case,
    duel,
    error,
    exchange,
    ingest,
    parts,
    sets,
    step,
    times,
)

INVALID, TOO_LARGE = 0x04, 0x03
MOMENT = u64(1_706_918_400_000_000_000)


def stored(head: Json, payload: bytes | list[Any], count: int = 1) -> Json:
    """Return a batch that is acknowledged and kept as it was sent."""
    pieces = parts(payload) if isinstance(payload, bytes) else payload
    return exchange(head, step([ingest(pieces, count)], [ack()]), stored=pieces)


TYPES = [
    stored(case(f"tlv/type-{name}", f"8.2/{'undefined' if 'nobody' in what else 'types'}",
                f"A record of type {kind:#04x} ({what}) is kept."), record(value, kind))
    for name, kind, what, value in (
        ("protobuf", 0x04, "Protobuf", b"\x08\x96\x01"),
        ("avro", 0x05, "Avro", b"\x06foo"),
        ("key-value", 0x10, "KeyValue", u16(3) + b"key" + b"value"),
        ("timestamped", 0x11, "Timestamped", MOMENT + b"data"),
        ("key-timestamped", 0x12, "KeyTimestamped", MOMENT + u16(3) + b"key" + b"value"),
        ("null", 0xFF, "Null", b""),
        ("undefined-06", 0x06, "which nobody defined yet", b"?"),
        ("undefined-7f", 0x7F, "which nobody defined yet", b"?"),
        ("user-80", 0x80, "the first user-defined one", b"mine"),
        ("user-fe", 0xFE, "the last user-defined one", b"mine"),
    )
]  # fmt: skip
NULL_AMONG = stored(
    case("tlv/null-among-others", "8.2/types",
         "A Null between two records is a record of its own.", quick=True),
    record(b"before") + record(b"", 0xFF) + record(b"after"),
    3,
)  # fmt: skip
RESERVED = [
    duel(
        case(f"tlv/{name}", clause, title,
             details="Storing it as it is and refusing it are both allowed; silence is not."),
        ingest(record(value, right)), sets("payload", record(value, wrong)), ack(),
        {"specified": [ack(1, cite), error(INVALID, cite=cite)], "deployed": [ack(1, cite)]},
    )
    for name, clause, cite, right, wrong, value, title in (
        ("type-0-answered", "8.2/reserved", "AMB-13", 0x01, 0x00, b"value",
         "A record of the reserved type 0 is stored or refused."),
        ("null-with-value-answered", "8.2/null", "AMB-12", 0x01, 0xFF, b"value",
         "A Null that has a value is stored or refused."),
    )
]  # fmt: skip
LENGTHS = [
    stored(case(f"tlv/value-of-{length}", "8.1/length", f"A value of {length} bytes is kept."),
           parts(b"\x01" + u32(length), times(b"\x5a", length)))
    for length in (1, 128, 255, 256, 65535, 65536, 1_048_576)
]  # fmt: skip
COUNTS = [
    stored(case(f"tlv/records-{count}", "8.4/count", f"A batch of {count} records is kept whole."),
           parts(times(record(b"r"), count)), count)
    for count in (256, 65536)
]  # fmt: skip
MANY_SIZES = stored(
    case("tlv/sizes-0-to-63", "8.8/packed", "Records stand at every alignment, without padding."),
    b"".join(record(bytes([size]) * size) for size in range(64)),
    64,
)

VALUE = b"nine byte"
RIGHT = record(VALUE)


def _chain(
    name: str, wrong: bytes, title: str, codes: tuple[int, ...] = (INVALID,), count: int = 1
) -> Json:
    refused, right = error(*codes, cite="AMB-27"), RIGHT * count
    return duel(
        case(f"tlv/{name}", "8.4/chain", title),
        ingest(right, count), sets("payload", wrong), ack(),
        {"specified": [refused], "deployed": [ack(1, "AMB-27")]},
        stored={"specified": parts(right), "deployed": parts(right + wrong)},
    )  # fmt: skip


def _with_crc(value: bytes) -> bytes:
    return record(value) + u32(crc("crc32c", record(value)))


EITHER = (INVALID, TOO_LARGE)
CHAINS = [
    _chain("one-byte-behind", RIGHT + b"\x01", "One byte after the last record is refused."),
    _chain("half-a-header-behind", RIGHT + RIGHT[:4],
           "Four bytes after the last record, less than a record's header, are refused."),
    _chain("padding-behind", RIGHT + bytes(2), "Zeros after the last record are refused."),
    _chain("header-alone-behind", RIGHT + RIGHT[:5],
           "The header of a record without its value is refused."),
    _chain("length-4-gib", b"\x01" + b"\xff" * 4 + VALUE,
           "A length of FFFFFFFF is refused; it does not wrap around.", EITHER),
    _chain("length-2-gib", b"\x01" + u32(2**31) + VALUE,
           "A length of 80000000 is refused; it is not negative.", EITHER),
    _chain("length-big-endian", b"\x01" + len(VALUE).to_bytes(4, "big") + VALUE,
           "A length in the byte order of big machines is refused.", EITHER),
    _chain("length-with-header", b"\x01" + u32(len(VALUE) + 5) + VALUE,
           "A length that counts the record's header, too, is refused."),
    _chain("length-one-too-high", b"\x01" + u32(len(VALUE) + 1) + VALUE,
           "A length that is one byte too high is refused."),
    _chain("appendix-a2", b"test",
           "The payload 'test' of appendix A.2, which is not a record, is refused."),
    _chain("plain-text", b"a line of plain text\n", "A line of text without a record is refused.",
           EITHER),
    _chain("extended-header", b"\xff" + u16(1) + u32(len(VALUE)) + VALUE,
           "A record with the seven-byte header of other documents is refused."),
    _chain("crc-behind-records", _with_crc(b"four") + _with_crc(b"five5"),
           "Checksums after records, as in files of other documents, are refused.", EITHER, 2),
    _chain("aligned-to-8", 2 * (RIGHT + bytes(2)), "Records padded to eight bytes are refused.",
           count=2),
]  # fmt: skip

CASES = [*TYPES, NULL_AMONG, *RESERVED, *LENGTHS, *COUNTS, MANY_SIZES, *CHAINS]
