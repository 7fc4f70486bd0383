"""Cases about the header: one field of a right frame is wrong."""

from generate.codec.wire import record
from generate.lwp.records.lz4_frames import stored
from generate.server.form import (
    GET_TOPIC,
    KEEPALIVE,
    QUIET,
    Json,
    ack,
    case,
    checks,
    closed,
    duel,
    error,
    flips,
    ingest,
    keepalive,
    sets,
    swaps,
    topic_response,
)

LIMIT = 16 * 1024 * 1024 + 5
INVALID = 0x04
TOO_LARGE = 0x03
PAYLOAD = record(b"one value") + record(b"and another")
BATCH = ingest(PAYLOAD, 2)
LZ4_FRAME = stored(PAYLOAD).encode()


def _keepalive_closes(case_id: str, clause: str, fault: Json, title: str, **facts: bool) -> Json:
    head = case(case_id, clause, title, **facts)
    return duel(head, KEEPALIVE, fault, keepalive(), [closed()])


MAGIC = [
    _keepalive_closes(f"hdr/magic-{name}-closes", "11.1/magic", sets("magic", magic), title)
    for name, magic, title in (
        ("byte-0", b"XANC", "The first byte of the magic is looked at."),
        ("byte-1", b"LXNC", "The second byte of the magic is looked at."),
        ("byte-2", b"LAXC", "The third byte of the magic is looked at."),
        ("lower-case", b"lanc", "The magic in small letters closes the connection."),
        ("reversed", b"CNAL", "The magic in the byte order of big machines closes the connection."),
    )
]
VERSION = [
    _keepalive_closes(f"hdr/version-{n}-closes", "11.2/version", sets("version", n), title)
    for n, title in (
        (17, "Version 17, whose lower half is 1, closes the connection."),
        (129, "Version 129, whose lower seven bits are 1, closes the connection."),
        (255, "Version 255, which is -1 to some, closes the connection."),
    )
]
HEADER_CRC = [
    _keepalive_closes(f"hdr/crc-{name}-closes", "11.3/header-crc", fault, title)
    for name, fault, title in (
        ("byte-1", flips("header_crc", 1 << 8),
         "A header checksum that is wrong in its second byte closes the connection."),
        ("byte-2", flips("header_crc", 1 << 16),
         "A header checksum that is wrong in its third byte closes the connection."),
        ("byte-3", flips("header_crc", 1 << 31),
         "A header checksum that is wrong in its highest bit closes the connection."),
        ("inverted", flips("header_crc", 0xFFFFFFFF),
         "A header checksum with all bits inverted closes the connection."),
        ("all-ones", sets("header_crc", 0xFFFFFFFF),
         "A header checksum of FFFFFFFF is a wrong one, not a missing one."),
        ("big-endian", swaps("header_crc"),
         "A header checksum in the byte order of big machines closes the connection."),
    )
] + [
    _keepalive_closes(
        "hdr/crc-of-whole-header-closes", "9.3/header-crc-covers",
        checks("header_crc", b"LANC\x01\x20\0\0" + bytes(32)),
        "A header checksum over bytes 0 to 39 closes the connection: it covers bytes 0 to 7.",
    ),
    _keepalive_closes(
        "hdr/crc-of-other-version-closes", "9.3/header-crc-covers",
        checks("header_crc", b"LANC\x02\x20\0\0"),
        "A header checksum that would be right for version 2 closes the connection.",
    ),
    _keepalive_closes(
        "hdr/crc-of-magic-alone-closes", "9.3/header-crc-covers",
        checks("header_crc", b"LANC"),
        "A header checksum over the magic alone closes the connection.",
    ),
]  # fmt: skip
RESERVED = [
    duel(
        case(f"hdr/reserved-{name}", "3.2/reserved", title),
        KEEPALIVE, sets("reserved", value), keepalive(),
        {"specified": [closed("AMB-33")], "deployed": [keepalive("AMB-33")]},
    )
    for name, value, title in (
        ("byte-6", 0x0001, "The first reserved byte is looked at."),
        ("both-bytes", 0x0101, "Two reserved bytes that are equal and not zero close as well."),
    )
]  # fmt: skip
BIT_7 = [
    duel(case(f"hdr/bit-7-{name}", "3.3/bit-7", title), right, sets("flags", flags), answer,
         {"specified": [closed("AMB-33")], "deployed": deployed})
    for name, right, flags, answer, deployed, title in (
        ("of-ingest", BATCH, 0x84, ack(), [ack(1, "AMB-33")],
         "Flag bit 7 closes the connection in an Ingest, too."),
        ("of-control", GET_TOPIC, 0xC0, topic_response(), [topic_response("AMB-33")],
         "Flag bit 7 closes the connection in a control frame, too."),
        ("alone", KEEPALIVE, 0x80, keepalive(), [QUIET],
         "Flag bit 7 alone, without a kind, closes the connection."),
    )
]  # fmt: skip

KINDS = [
    duel(
        case(f"hdr/kinds-{name}", "3.3/one-kind", f"{title} at once is refused.",
             details=f"The published server {habit}."),
        right, sets("flags", flags), answer,
        {"specified": [error(INVALID, cite="AMB-33")], "deployed": deployed},
    )
    for name, right, flags, answer, deployed, title, habit in (
        ("control-batch", GET_TOPIC, 0x44, topic_response(), [topic_response("AMB-33")],
         "A frame that is Control and BatchMode", "takes it for Control"),
        ("control-keepalive", GET_TOPIC, 0x60, topic_response(), [topic_response("AMB-33")],
         "A frame that is Control and Keepalive", "takes it for Control"),
        ("control-ack", GET_TOPIC, 0x48, topic_response(), [topic_response("AMB-33")],
         "A frame that is Control and Ack", "takes it for Control"),
        ("control-backpressure", GET_TOPIC, 0x50, topic_response(), [topic_response("AMB-33")],
         "A frame that is Control and Backpressure", "takes it for Control"),
        ("batch-keepalive", BATCH, 0x24, ack(), [keepalive("AMB-33")],
         "A frame that is BatchMode and Keepalive", "takes it for a Keepalive"),
        ("batch-ack", BATCH, 0x0C, ack(), [QUIET],
         "A frame that is BatchMode and Ack", "takes it for an Ack, and passes over it"),
        ("batch-backpressure", BATCH, 0x14, ack(), [QUIET],
         "A frame that is BatchMode and Backpressure", "passes over it"),
        ("ack-backpressure", KEEPALIVE, 0x18, keepalive(), [QUIET],
         "A frame that is Ack and Backpressure", "passes over it"),
        ("all", GET_TOPIC, 0x7C, topic_response(), [topic_response("AMB-33")],
         "A frame of every kind", "takes it for Control"),
    )
]  # fmt: skip
OTHER_FLAGS = [
    duel(
        case("hdr/encrypted-control", "3.3/encrypted",
             "A control frame with the Encrypted flag, which nobody defines, is refused."),
        GET_TOPIC, sets("flags", 0x42), topic_response(),
        {"specified": [error(INVALID, cite="AMB-33")], "deployed": [topic_response("AMB-33")]},
    ),
    duel(
        case("hdr/encrypted-keepalive", "3.3/encrypted",
             "A Keepalive with the Encrypted flag, which nobody defines, is refused."),
        KEEPALIVE, sets("flags", 0x22), keepalive(),
        {"specified": [error(INVALID, cite="AMB-33")], "deployed": [keepalive("AMB-33")]},
    ),
    duel(
        case("hdr/no-kind-compressed", "3.3/no-kind",
             "A payload in a frame that is Compressed and nothing else is refused.",
             dialects=["specified"]),
        ingest(LZ4_FRAME, 2, flags=0x05), sets("flags", 0x01), ack(),
        [error(INVALID, cite="AMB-33")],
    ),
]  # fmt: skip


def _payload_crc(name: str, fault: Json, title: str) -> Json:
    head = case(f"hdr/payload-crc-{name}-closes", "11.3/payload-crc", title)
    return duel(head, BATCH, fault, ack(), [closed()], stored=[PAYLOAD.hex()])


PAYLOAD_CRC = [
    _payload_crc("low-bit", flips("payload_crc", 1),
                 "A payload checksum that is wrong in its lowest bit closes the connection."),
    _payload_crc("middle-bit", flips("payload_crc", 1 << 15),
                 "A payload checksum that is wrong in its middle closes the connection."),
    _payload_crc("inverted", flips("payload_crc", 0xFFFFFFFF),
                 "A payload checksum with all bits inverted closes the connection."),
    _payload_crc("all-ones", sets("payload_crc", 0xFFFFFFFF),
                 "A payload checksum of FFFFFFFF is a wrong one, not a missing one."),
    _payload_crc("big-endian", swaps("payload_crc"),
                 "A payload checksum in the byte order of big machines closes the connection."),
    _payload_crc("of-values", checks("payload_crc", b"one value" + b"and another"),
                 "A checksum of the values without their record headers closes the connection."),
    _payload_crc("of-first-record", checks("payload_crc", record(b"one value")),
                 "A checksum of the first record alone closes the connection."),
]  # fmt: skip
OVERSIZE = [
    duel(
        case(f"hdr/oversize-{name}", "8.7/oversize", title),
        right, sets("payload_length", length), answer,
        {"specified": [error(TOO_LARGE, cite="AMB-17"), closed()], "deployed": [closed()]},
        ends=True,
    )
    for name, right, length, answer, title in (
        ("2gib-closes", BATCH, 0x80000000, ack(),
         "A payload length of 2 GiB, negative to some, ends the connection."),
        ("control-closes", GET_TOPIC, LIMIT + 1, topic_response(),
         "The payload limit holds for control frames, too."),
        ("keepalive-closes", KEEPALIVE, LIMIT + 1, keepalive(),
         "The payload limit holds for Keepalives, too."),
    )
]  # fmt: skip

CASES = [
    *MAGIC, *VERSION, *HEADER_CRC, *RESERVED, *BIT_7, *KINDS, *OTHER_FLAGS, *PAYLOAD_CRC, *OVERSIZE
]  # fmt: skip
