"""Ingest and Ack: what counts as acknowledged, what is sent again, and how."""

from lance_conformance.client.cases.header import NOT_LATE
from lance_conformance.client.cases.registry import add_case
from lance_conformance.client.checks import Count, Order, Same, Sent
from lance_conformance.client.client_case import ClientCase
from lance_conformance.client.operations import Op, flush, list_topics, send, send_async
from lance_conformance.client.scripted.received_frame import ReceivedFrame
from lance_conformance.client.scripted.script import (
    BATCH,
    AckOf,
    Answer,
    Close,
    Nothing,
    On,
    Plus,
    Refuse,
    Say,
    Step,
    Xor,
    on,
)
from lance_conformance.wire.frame import Flag, Frame
from lance_conformance.wire.tlv import records

ONE = send(b"one")
THREE = (send_async(b"one"), send_async(b"two"), send_async(b"three"))
WORDS = (b"one", b"two", b"three")
ALL_ACKED = flush().gives(failed=[], **{"count:acked": 3})
ONE_FAILED = flush().gives(**{"count:acked": 2, "count:failed": 1})
REFUSAL = Refuse(0x04, "Invalid payload", {"batch_id": BATCH})
EPOCH_2020, EPOCH_2100 = 1_577_836_800 * 10**9, 4_102_444_800 * 10**9


def _pipeline(*script: On, last: Op = ALL_ACKED) -> ClientCase:
    return ClientCase((*THREE, last), script)


def _one(*steps: Step, nth: int = 1) -> ClientCase:
    return ClientCase((ONE.safe(),), (on("ingest", *steps, nth=nth),))


add_case(
    "ack/awaited", "17.7/acks", "Nothing is delivered before its Ack has come.",
    ClientCase((ONE.fails(),), (on("ingest", Nothing(), nth=0),)),
)  # fmt: skip
for name, words, change in (
    ("next-id", "the id after it", Plus(1)),
    ("id-zero", "id 0", 0),
    ("high-bits", "an id with another high bit", Xor(1 << 63)),
    ("low-bit", "an id with another low bit", Xor(1)),
    ("middle-bit", "an id with another bit in the middle", Xor(1 << 32)),
):
    add_case(
        f"ack/{name}", "4.2/batch-id", f"A batch is not acknowledged by an Ack of {words}.",
        _one(Answer(header={"batch_id": change})),
    )  # fmt: skip
add_case(
    "ack/keepalive-is-none", "4.2/batch-id", "A Keepalive acknowledges nothing.",
    _one(Say(Frame(flags=Flag.KEEPALIVE))),
)  # fmt: skip
add_case(
    "ack/topics-are-none", "4.2/batch-id", "A TopicResponse acknowledges nothing.",
    _one(Say(Frame(flags=Flag.CONTROL, batch_id=0x80, payload=b'{"topics": []}'))),
)  # fmt: skip
add_case(
    "ack/twice",
    "4.2/batch-id",
    "A second Ack of a batch does not acknowledge the next one.",
    ClientCase(
        (ONE, send(b"two").fails()),
        (on("ingest", Answer(), AckOf(1)), on("ingest", Nothing(), nth=0)),
    ),
)
add_case(
    "ack/twice-goes-on", "17.5/unexpected", "A second Ack of a batch breaks nothing.",
    ClientCase((ONE, send(b"two"), send(b"three")), (on("ingest", Answer(), AckOf(1)),),
             paired=False),
)  # fmt: skip
add_case(
    "ack/unknown-id",
    "17.5/unexpected",
    "A client does not hang when a batch is acknowledged that was never sent.",
    ClientCase(
        (ONE.safe(*NOT_LATE), send(b"two").safe(*NOT_LATE)),
        (on("ingest", Say(Frame(flags=Flag.ACK, batch_id=0xDEAD)), Answer()),),
    ),
)
add_case(
    "ack/unknown-id-first",
    "17.5/unexpected",
    "A client does not hang when a server begins with an Ack.",
    ClientCase((ONE.safe(*NOT_LATE),), (on("accept", Say(Frame(flags=Flag.ACK, batch_id=9))),)),
)
add_case(
    "ack/reversed", "10.2/any-order", "Acks in another order than the batches count.",
    _pipeline(on("ingest", Nothing()), on("ingest", Nothing(), nth=2),
              on("ingest", AckOf(3), AckOf(2), AckOf(1), nth=3)),
)  # fmt: skip
add_case(
    "ack/together", "10.2/any-order", "Acks that come together count one by one.",
    _pipeline(on("ingest", Nothing()), on("ingest", Nothing(), nth=2),
              on("ingest", AckOf(1), AckOf(2), AckOf(3), nth=3)),
)  # fmt: skip
for nth, word in enumerate(("first", "second", "third"), 1):
    add_case(
        f"ack/missing-{word}",
        "17.7/acks",
        f"Of three batches in flight the {word} is never acknowledged: only that one fails.",
        _pipeline(on("ingest", Nothing(), nth=nth), last=ONE_FAILED),
    )
    add_case(
        f"ack/refused-{word}",
        "12.1/batch-errors",
        f"Of three batches in flight the {word} is refused: only that one fails.",
        _pipeline(on("ingest", REFUSAL, nth=nth), last=ONE_FAILED),
    )
    add_case(
        f"ack/refused-{word}-is-told",
        "17.7/acks",
        f"Of three batches in flight the {word} is refused: it is not told as acknowledged.",
        _pipeline(on("ingest", REFUSAL, nth=nth), last=flush()),
        quick=False,
        twin_of="ack/refused-first-is-told",
    )
add_case(
    "ack/refused-before-ack",
    "12.1/batch-errors",
    "The second batch is refused before the first is acknowledged: only the second fails.",
    _pipeline(
        on("ingest", Nothing()),
        on("ingest", Refuse(0x04, "Invalid payload", {"batch_id": BATCH}), AckOf(1), nth=2),
        last=ONE_FAILED,
    ),
)
add_case(
    "ack/refused-alone", "17.5/error-ends", "A refused batch fails, and is not waited for.",
    ClientCase((ONE.fails("fatal"),), (on("ingest", REFUSAL, nth=0),)),
)  # fmt: skip
add_case(
    "ack/refused-without-id", "12.1/batch-errors",
    "The only batch in flight fails by a refusal that names no batch.",
    ClientCase((ONE.fails("fatal"),), (on("ingest", Refuse(0x04, "Invalid payload"), nth=0),)),
)  # fmt: skip
add_case(
    "ack/goes-on-after-refusal", "17.5/error-ends", "After a refused batch the next is delivered.",
    ClientCase((ONE.fails("fatal"), send(b"two")), (on("ingest", REFUSAL),)),
)  # fmt: skip
add_case(
    "ack/refused-once-is-not-repeated",
    "12.4/fatal",
    "A batch that is refused for good is not sent again.",
    ClientCase(
        (ONE.fails("fatal"), list_topics()), (on("ingest", REFUSAL),), (Count("ingest", 1, 1),)
    ),
)

# -- retries ---------------------------------------------------------------------------------------

add_case(
    "ack/lost-is-retried",
    "10.4/retry",
    "A batch whose Ack is lost with its connection is sent again and delivered.",
    ClientCase((ONE,), (on("ingest", Close()),), (Count("ingest", 2),), paired=False),
)
add_case(
    "ack/retry-identical",
    "10.4/same-batch",
    "A batch that is sent again is the same frame: id, timestamp and content.",
    ClientCase((ONE.safe(),), (on("ingest", Close()),), (Same("ingest", 1),)),
)
add_case(
    "ack/retry-identical-twice",
    "10.4/same-batch",
    "A batch that is sent a third time is still the same frame.",
    ClientCase(
        (ONE.safe(),), (on("ingest", Close("rst")), on("ingest", Close(), nth=2)),
        (Same("ingest", 1),),
    ),
)  # fmt: skip
add_case(
    "ack/pipeline-is-retried",
    "10.4/retry",
    "Batches in flight on a lost connection are all sent again and delivered.",
    ClientCase(
        (*THREE, ALL_ACKED),
        (on("ingest", Nothing()), on("ingest", Nothing(), nth=2), on("ingest", Close(), nth=3)),
        paired=False,
    ),
)
add_case(
    "ack/retry-in-order",
    "17.7/order",
    "Batches that are sent again keep their order.",
    ClientCase(
        (*THREE, flush().safe()),
        (on("ingest", Nothing()), on("ingest", Nothing(), nth=2), on("ingest", Close(), nth=3)),
        (Order((records([b"one"]), records([b"two"]), records([b"three"]))),),
    ),
)
add_case(
    "ack/acked-is-not-repeated",
    "17.7/acks",
    "What is acknowledged is not sent again when the connection is lost.",
    ClientCase(
        (ONE, list_topics().safe(), send(b"two").safe()), (on("ingest", Answer(), Close()),),
        (Count("ingest", 1, 2),),
    ),
)  # fmt: skip
add_case(
    "ack/half-acked",
    "17.7/acks",
    "Of a pipeline that is lost halfway only the rest is sent again.",
    ClientCase(
        (*THREE, flush().safe()),
        (on("ingest", Nothing()), on("ingest", Nothing(), nth=2),
         on("ingest", AckOf(1), AckOf(2), Close(), nth=3)),
        (Count("ingest", 3, 4),),
    ),
)  # fmt: skip

# -- what goes out ---------------------------------------------------------------------------------


def _is(right: object, found: object) -> str:
    return "" if found == right else f"it is {found!r:.100}, must be {right!r:.100}"


def _plain(received: ReceivedFrame) -> str:
    flags = int(received.frame.flags)
    compressed = flags == (Flag.BATCH_MODE | Flag.COMPRESSED) and not received.closed
    return "" if compressed else _is(0x04, flags)


def _topic(received: ReceivedFrame) -> str:
    return _is(7, received.frame.topic_id)


def _now(received: ReceivedFrame) -> str:
    stamp = received.frame.timestamp_ns
    return "" if EPOCH_2020 < stamp < EPOCH_2100 else f"timestamp {stamp} is not a time of this age"


def _rises(received: ReceivedFrame) -> str:
    ids = [each.frame.batch_id for each in received.before if each.frame.flags & Flag.BATCH_MODE]
    mine = received.frame.batch_id
    return f"id {mine} comes after {max(ids)}" if ids and mine <= max(ids) else ""


def _sends(*values: bytes) -> Sent:
    payload = records(values)

    def holds(received: ReceivedFrame) -> str:
        wrong = received.frame.record_count != len(values)
        return (
            f"{received.frame.record_count} records"
            if wrong
            else _is(payload, received.opened.payload)
        )

    return Sent("ingest", holds, f"one batch of {len(values)} records, as they were given")


add_case(
    "ack/flags", "4.1/flags", "An Ingest without compression has the flags 0x04.",
    ClientCase((ONE,), checks=(Sent("ingest", _plain, "flags 0x04"),), paired=False),
)  # fmt: skip
add_case(
    "ack/topic", "3.2/topic-id", "An Ingest names its topic in the header.",
    ClientCase((ONE,), checks=(Sent("ingest", _topic, "topic 7"),), paired=False),
)  # fmt: skip
add_case(
    "ack/timestamp", "4.1/timestamp", "The timestamp of an Ingest is nanoseconds since 1970.",
    ClientCase((ONE,), checks=(Sent("ingest", _now, "a time of this century"),), paired=False),
)  # fmt: skip
add_case(
    "ack/ids-rise", "10.4/rising", "Batch ids rise.",
    ClientCase(tuple(send(b"%d" % n) for n in range(6)),
             checks=(Sent("ingest", _rises, "a higher id than before"),), paired=False),
)  # fmt: skip
add_case(
    "ack/one-batch", "8.4/batch", "Records that are sent together are one batch.",
    ClientCase((send(*WORDS),), checks=(_sends(*WORDS),), paired=False),
)  # fmt: skip
add_case(
    "ack/hundred-records", "8.4/batch", "A hundred records in one batch arrive as they were given.",
    ClientCase((send(*(b"%d" % n for n in range(100))),),
             checks=(_sends(*(b"%d" % n for n in range(100))),), paired=False),
)  # fmt: skip
add_case(
    "ack/in-order",
    "17.7/order",
    "Batches arrive in the order in which they were sent.",
    ClientCase(
        (*(send_async(b"%d" % n) for n in range(30)), flush().gives(failed=[])),
        checks=(Order(tuple(records([b"%d" % n]) for n in range(30))),),
        paired=False,
    ),
)
