"""TLV records: as they go out, and as they are read."""

from collections.abc import Iterable

from lance_conformance.client.cases.registry import SPECIFIED, add_case
from lance_conformance.client.checks import Count, Sent
from lance_conformance.client.client_case import ClientCase
from lance_conformance.client.operations import encoded, fetch, list_topics, send
from lance_conformance.client.scripted.received_frame import ReceivedFrame
from lance_conformance.wire.tlv import record

Pair = tuple[int, bytes]
TYPES = {
    0x01: "RawData", 0x02: "JSON", 0x03: "MessagePack", 0x04: "Protobuf", 0x05: "Avro",
    0x10: "KeyValue", 0x11: "Timestamped", 0x12: "KeyTimestamped", 0x80: "the first user type",
    0xFE: "the last user type",
}  # fmt: skip
VALUES = {
    0x02: b'{"a": 1}', 0x10: b"\x03\x00keyvalue", 0x11: bytes(8) + b"data",
    0x12: bytes(8) + b"\x03\x00keyvalue",
}  # fmt: skip
SIZES = {
    "empty": (b"", "an empty value"), "all-bytes": (bytes(range(256)), "every byte there is"),
    "large": (b"\xa5" * 70_000, "70,000 bytes"),
    "looks-like-a-frame": (b"LANC\x01\x04\0\0" * 8, "bytes that look like a header"),
    "looks-like-a-record": (record(b"inner"), "bytes that look like a record"),
}  # fmt: skip


def goes_out(*pairs: Pair) -> ClientCase:
    """Records that are sent as one batch arrive as they are."""
    payload = b"".join(record(value, kind) for kind, value in pairs)

    def holds(received: ReceivedFrame) -> str:
        found = received.opened.payload
        return "" if found == payload else f"payload {found[:40]!r}, must be {payload[:40]!r}"

    check = Sent("ingest", holds, f"{len(pairs)} records, type, length and value")
    return ClientCase((send(*pairs),), checks=(check,), paired=False)


def is_read(pairs: tuple[Pair, ...], *, max_bytes: int = 1_048_576) -> ClientCase:
    """Records that a topic holds are read as they are."""
    wanted = [{"type": kind, "value": encoded(value)} for kind, value in pairs]
    return ClientCase(
        (fetch(max_bytes=max_bytes).gives(records=wanted),), records=pairs, paired=False
    )


def _handed_on(kinds: Iterable[int]) -> ClientCase:
    """Records of these kinds between two of a known one."""
    pairs = ((1, b"before"), *((kind, b"x") for kind in kinds), (1, b"behind"))
    wanted = [{"type": kind, "value": encoded(value)} for kind, value in pairs]
    return ClientCase((list_topics(), fetch().safe("fatal", "protocol").gives(records=wanted)),
                      records=pairs, paired=False)  # fmt: skip


def _value(kind: int) -> bytes:
    return VALUES.get(kind, b"some value")


for kind, name in TYPES.items():
    add_case(
        f"rec/sends-{kind:02x}", "8.1/record", f"A record of type {kind:#04x} ({name}) goes out.",
        goes_out((kind, _value(kind))), quick=kind in {0x01, 0x10, 0x80},
    )  # fmt: skip
    add_case(
        f"rec/reads-{kind:02x}", "17.2/decoder", f"A record of type {kind:#04x} ({name}) is read.",
        is_read(((kind, _value(kind)), (1, b"next"))), quick=kind in {0x01, 0x10, 0x80},
    )  # fmt: skip
for slug, (value, words) in SIZES.items():
    add_case(
        f"rec/sends-{slug}", "8.1/record", f"A record of {words} goes out.",
        goes_out((1, value), (1, b"next")),
    )  # fmt: skip
    add_case(
        f"rec/reads-{slug}", "17.2/decoder", f"A record of {words} is read.",
        is_read(((1, value), (1, b"next"))),
    )  # fmt: skip
add_case(
    "rec/sends-mixed", "8.4/batch", "Records of several types share a batch.",
    goes_out((1, b"a"), (2, b"{}"), (0x80, b"c")),
)  # fmt: skip
add_case(
    "rec/reads-mixed", "17.2/decoder", "Records of several types in one answer are read.",
    is_read(((1, b"a"), (2, b"{}"), (0x80, b""), (0x12, VALUES[0x12]))),
)  # fmt: skip
add_case(
    "rec/reads-many", "17.2/decoder", "Five hundred records in one answer are read.",
    is_read(tuple((1, b"%d" % n) for n in range(500))),
)  # fmt: skip
add_case(
    "rec/sends-null", "8.2/null", "A Null record goes out with type 0xFF and length 0.",
    goes_out((0xFF, b"")), dialects=SPECIFIED,
)  # fmt: skip
add_case(
    "rec/reads-null", "8.2/null", "A Null record is read.",
    is_read(((0xFF, b""), (1, b"next"))),
)  # fmt: skip
add_case(
    "rec/reads-undefined-type", "17.2/decoder",
    "A record of a type that nobody has defined is handed on, or refused with an error.",
    _handed_on((0x77,)),
)  # fmt: skip
for slug, kinds, words in (
    ("undefined-low", range(0x06, 0x10), "the types from 0x06 to 0x0F"),
    ("undefined-middle", range(0x13, 0x80), "the types from 0x13 to 0x7F"),
):
    add_case(
        f"rec/reads-{slug}", "17.2/decoder",
        f"Records of {words} are handed on, or refused with an error: none is left out.",
        _handed_on(tuple(kinds)), quick=False,
    )  # fmt: skip
OWN = tuple((kind, b"%d" % kind) for kind in range(0x80, 0xFF))
add_case(
    "rec/sends-application", "8.1/record", "Records of all types from 0x80 to 0xFE go out.",
    goes_out(*OWN), quick=False,
)  # fmt: skip
add_case(
    "rec/reads-application", "17.2/decoder", "Records of all types from 0x80 to 0xFE are read.",
    is_read(OWN), quick=False,
)  # fmt: skip
for slug, op, words in (
    ("type-zero", send((0x00, b"x")), "A record of the reserved type 0x00"),
    ("null-with-value", send((0xFF, b"x")), "A Null record with a value"),
):
    add_case(
        f"rec/refuses-{slug}", "8.2/refused-here", f"{words} does not leave the client.",
        ClientCase((send(b"one"), op.refused()), checks=(Count("ingest", 1, 1),), paired=False),
    )  # fmt: skip
