"""Cases about batches, their checksums and the order of answers (LWP sections 4, 9 and 10)."""

from generate.codec.wire import POLYNOMIALS, crc, record, u32
from generate.server.form import (
    DIALECTS,
    GET_TOPIC,
    KEEPALIVE,
    LIST_TOPICS,
    UNKNOWN,
    Json,
    ack,
    case,
    closed,
    control,
    duel,
    error,
    exchange,
    fetch,
    fetched,
    ingest,
    keepalive,
    other_polynomial,
    parts,
    sets,
    step,
    topic_response,
)

INVALID, NOT_FOUND = 0x04, 0x10
ALGORITHMS = dict(zip(DIALECTS, ("crc32c", "ieee"), strict=True))
ONE, OTHER = record(b"one value"), record(b"another value")
MASK = 0xFFFFFFFF


def _tail(algorithm: str, head: bytes, wanted: int) -> bytes:
    """Return the four bytes that give ``head`` a certain checksum."""
    register = wanted ^ MASK
    for _ in range(32):
        top = register >> 31
        register = (register ^ (POLYNOMIALS[algorithm] if top else 0)) << 1 & MASK | top
    return u32(register ^ crc(algorithm, head) ^ MASK)


def _summing(wanted: int) -> Json:
    """Return, for each dialect, a record whose checksum is a certain number."""
    head = b"\x01" + u32(10) + b"forged"
    return {name: parts(head + _tail(each, head, wanted)) for name, each in ALGORITHMS.items()}


SIZES = [record(bytes([size]) * size) for size in range(64)]
CHECKSUMS = [
    duel(
        case("crc/payload-of-other-polynomial-closes", "11.3/polynomial",
             "A payload checksum of the other polynomial closes the connection."),
        ingest(ONE), other_polynomial("payload_crc"), ack(), [closed()], stored=parts(ONE),
    ),
    exchange(
        case("crc/of-zero", "9.4/any-value",
             "A payload whose checksum is 0 is as good as any other."),
        step([ingest(_summing(0))], [ack()]), stored=_summing(0),
    ),
    exchange(
        case("crc/of-ones", "9.4/any-value",
             "A payload whose checksum is FFFFFFFF is as good as any other."),
        step([ingest(_summing(MASK))], [ack()]), stored=_summing(MASK),
    ),
    exchange(
        case("crc/every-size", "9.4/every-size",
             "The checksum is right for payloads of 5 to 68 bytes, one after another."),
        step([ingest(payload, 1, n + 1) for n, payload in enumerate(SIZES)],
             [ack(n + 1) for n in range(len(SIZES))]),
        stored=parts(b"".join(SIZES)),
    ),
]  # fmt: skip

KEEPALIVES = [
    exchange(
        case("kal/burst-of-100", "4.3/one-each", "A hundred Keepalives in a burst get as many."),
        step([KEEPALIVE] * 100 + [LIST_TOPICS], [keepalive()] * 100 + [topic_response()]),
    ),
    exchange(
        case("kal/after-refusal", "4.3/answer", "A Keepalive after a refusal is answered."),
        step([control(0x04, UNKNOWN), KEEPALIVE],
             [error(NOT_FOUND, text="not found"), keepalive()]),
    ),
    exchange(
        case("kal/first-frame", "4.3/answer", "A connection may begin with a Keepalive."),
        step([KEEPALIVE], [keepalive()]),
    ),
]  # fmt: skip

HIGH, HIGHEST = 2**63, 2**64 - 1
BATCHES = [
    exchange(
        case("ing/batch-id-2-63", "4.1/any-batch-id", "A batch id with its highest bit is echoed."),
        step([ingest(ONE, batch=HIGH)], [ack(HIGH)]), stored=parts(ONE),
    ),
    exchange(
        case("ing/batch-id-highest", "4.1/any-batch-id", "The highest batch id is echoed."),
        step([ingest(ONE, batch=HIGHEST)], [ack(HIGHEST)]), stored=parts(ONE),
    ),
    exchange(
        case("ing/falling-batch-ids", "10.4/falling",
             "Batch ids may fall: a later batch with a lower id is stored after the earlier one."),
        step([ingest(ONE, batch=9), ingest(OTHER, batch=5)], [ack(9), ack(5)]),
        stored=parts(ONE + OTHER),
    ),
    exchange(
        case("ing/same-id-on-two-connections", "10.4/per-connection",
             "Batch ids are unique on a connection: two connections may use the same one."),
        step([ingest(ONE, batch=7)], [ack(7)], on=1),
        step([ingest(OTHER, batch=7)], [ack(7)], on=2),
        stored=parts(ONE + OTHER),
    ),
    exchange(
        case("ing/falling-timestamps", "4.1/timestamp",
             "A batch may have an earlier timestamp than the one before; it is stored after it."),
        step([ingest(ONE, batch=1, timestamp_ns=2_000), ingest(OTHER, batch=2, timestamp_ns=1_000)],
             [ack(1), ack(2)]),
        stored=parts(ONE + OTHER),
    ),
    duel(
        case("ing/topic-ffffffff", "6.4/unknown-topic",
             "The topic id FFFFFFFF is an unknown topic, not a default."),
        ingest(ONE), sets("topic_id", 0xFFFFFFFF), ack(), [error(NOT_FOUND, text="unknown topic")],
        stored=parts(ONE),
    ),
    exchange(
        case("ing/refused-batch-keeps-connection", "4.1/refusal", dialects=["specified"],
             title="After a batch of broken records the connection goes on."),
        step([ingest(ONE[:-1], batch=1)], [error(INVALID, cite="AMB-27")]),
        step([ingest(ONE, batch=2)], [ack(2)]), stored=parts(ONE),
    ),
    exchange(
        case("ing/refused-batch-not-acked", "4.1/refusal", dialects=["specified"],
             title="A refused batch is answered once, by its error."),
        step([ingest(ONE[:-1], batch=1)], [error(INVALID, cite="AMB-27")], quiet=True),
        stored=parts(b""),
    ),
    exchange(
        case("ing/refused-id-free-again", "4.1/refusal", dialects=["specified"],
             title="The batch id of a refused batch may be used again for the right content."),
        step([ingest(ONE[:-1], batch=1)], [error(INVALID, cite="AMB-27")]),
        step([ingest(ONE, batch=1)], [ack(1)]), stored=parts(ONE),
    ),
]  # fmt: skip

ORDER = [
    exchange(
        case("ord/ingest-and-keepalive", "10.2/answers-in-order", dialects=["specified"],
             title="A Keepalive between batches is answered between their Acks."),
        step([ingest(ONE, batch=1), KEEPALIVE, ingest(OTHER, batch=2), KEEPALIVE],
             [ack(1), keepalive(), ack(2), keepalive()]),
        stored=parts(ONE + OTHER),
    ),
    exchange(
        case("ord/fetch-between-batches", "10.2/answers-in-order", dialects=["specified"],
             title="A Fetch between two batches sees the one before it and not the one after it."),
        step([ingest(ONE, batch=1), fetch(), ingest(OTHER, batch=2), fetch()],
             [ack(1), fetched(ONE), ack(2), fetched(ONE + OTHER)]),
    ),
    exchange(
        case("ord/refusal-between-commands", "10.2/answers-in-order",
             "The refusal of a command stands between the answers of its neighbours."),
        step([GET_TOPIC, control(0x04, UNKNOWN), LIST_TOPICS, GET_TOPIC],
             [topic_response(), error(NOT_FOUND, text="not found"),
              topic_response(), topic_response()]),
    ),
    exchange(
        case("ord/command-behind-batches", "10.2/answers-in-order", dialects=["specified"],
             title="A command after several batches is answered after all their Acks."),
        step([ingest(ONE, batch=1), ingest(OTHER, batch=2), GET_TOPIC],
             [ack(1), ack(2), topic_response()]),
    ),
]  # fmt: skip

PIECES = [
    exchange(
        case("seg/last-byte-late", "3.4/stream", "A frame that lacks its last byte is waited for."),
        step([ingest(ONE)], [ack()], pieces=[44 + len(ONE) - 1]), stored=parts(ONE),
    ),
    exchange(
        case("seg/first-byte-alone", "3.4/stream", "One byte of a header is waited upon."),
        step([ingest(ONE)], [ack()], pieces=[1]), stored=parts(ONE),
    ),
    exchange(
        case("seg/cut-at-44", "3.4/stream", "A header that comes alone announces its payload."),
        step([ingest(ONE), ingest(OTHER, batch=2)], [ack(), ack(2)], pieces=[44]),
        stored=parts(ONE + OTHER),
    ),
    exchange(
        case("seg/cut-in-second-header", "3.4/stream",
             "A read may end in the header of its second frame."),
        step([ingest(ONE), ingest(OTHER, batch=2)], [ack(), ack(2)], pieces=[44 + len(ONE) + 30]),
        stored=parts(ONE + OTHER),
    ),
    exchange(
        case("seg/64-kib-in-pieces", "3.4/stream",
             "A payload of 64 KiB in sixteen pieces is put together."),
        step([ingest(parts(b"\x01" + u32(65536), b"\x5a" * 65536))], [ack()], pieces=[4096] * 15),
        stored=parts(b"\x01" + u32(65536), b"\x5a" * 65536),
    ),
]  # fmt: skip

CASES = [*CHECKSUMS, *KEEPALIVES, *BATCHES, *ORDER, *PIECES]
