"""Several batches in flight: acknowledged out of order or twice, refused, lost, of two topics."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from lance_conformance.client.cases.acks import REFUSAL, THREE
from lance_conformance.client.cases.disconnect import WAYS
from lance_conformance.client.cases.registry import SPECIFIED, add_case
from lance_conformance.client.checks import Order, Same, Sent
from lance_conformance.client.client_case import ClientCase
from lance_conformance.client.operations import (
    TOPIC,
    Op,
    create,
    flush,
    get_topic,
    list_topics,
    send,
    send_async,
)
from lance_conformance.client.scripted.received_frame import ReceivedFrame
from lance_conformance.client.scripted.script import AckOf, Answer, Close, Nothing, Say, on
from lance_conformance.wire.frame import Flag, Frame
from lance_conformance.wire.tlv import RECORD_HEADER, records

HANDFULS = (10, 18, 66)
FEW = (10, 18, 34)
ROUNDS = (2, 9, 33)
EVERY = 4
"""Every fourth batch of a case is refused or lost."""


def _all(count: int) -> tuple[Op, ...]:
    return tuple(send_async(b"%d" % n) for n in range(count))


def _told(acked: int, failed: int = 0) -> Op:
    return flush().gives(**{"count:acked": acked, "count:failed": failed})


# -- acknowledged ----------------------------------------------------------------------------------

add_case(
    "ack/twice-in-flight", "4.2/batch-id",
    "Three Acks of one batch acknowledge one of the three in flight.",
    ClientCase((*THREE, _told(1, 2)),
               (on("ingest", Answer(), AckOf(1, 2)), on("ingest", Nothing(), nth=0))),
    quick=False,
)  # fmt: skip
add_case(
    "ack/unknown-in-flight", "4.2/batch-id",
    "Three Acks of batches that nobody sent acknowledge none of the three in flight.",
    ClientCase((*THREE, _told(0, 3)),
               (on("ingest", Say(Frame(flags=Flag.ACK, batch_id=0xDEAD_BEEF)), nth=0),)),
    quick=False,
)  # fmt: skip
for number in HANDFULS:
    weight = 1 + number // 16
    add_case(
        f"many/swapped-{number}", "10.2/any-order",
        f"{number} batches whose Acks come two by two, the second first, are acknowledged.",
        ClientCase((*_all(number), _told(number)), tuple(
            on("ingest", *((AckOf(nth), AckOf(nth - 1)) if nth % 2 == 0 else (Nothing(),)), nth=nth)
            for nth in range(1, number + 1))),
        quick=False, weight=weight, twin_of="many/swapped-10",
    )  # fmt: skip
    add_case(
        f"many/acked-twice-{number}", "4.2/batch-id",
        f"{number} batches in flight, each acknowledged twice, are acknowledged once each.",
        ClientCase((*_all(number), _told(number)), tuple(
            on("ingest", Answer(), AckOf(nth), nth=nth) for nth in range(1, number + 1)),
            paired=False),
        quick=False, weight=weight, twin_of="many/acked-twice-10",
    )  # fmt: skip
    add_case(
        f"many/refused-in-flight-{number}", "12.1/batch-errors",
        f"Of {number} batches in flight every fourth is refused, and no other fails.",
        ClientCase((*_all(number), _told(number - number // EVERY, number // EVERY)), tuple(
            on("ingest", REFUSAL, nth=nth) for nth in range(EVERY, number + 1, EVERY))),
        dialects=SPECIFIED, quick=False, weight=weight, twin_of="many/refused-in-flight-10",
    )  # fmt: skip

# -- lost ------------------------------------------------------------------------------------------

for number in FEW:
    add_case(
        f"many/lost-in-flight-{number}", "17.6/delivery",
        f"Connections that end with every fourth of {number} batches lose nothing.",
        ClientCase((*_all(number), _told(number)), tuple(
            on("ingest", Close(WAYS[nth // EVERY % 2]), nth=nth)
            for nth in range(EVERY, number, EVERY)),
            (Order(tuple(records([b"%d" % n]) for n in range(number))),), paired=False),
        quick=False, weight=2 + number // 4, twin_of="many/lost-in-flight-10",
    )  # fmt: skip
for name, words, op in (
    ("large", "of 70,000 bytes", send(b"v" * 70_000)),
    ("many", "of 300 records", send(*(b"%d" % n for n in range(300)))),
    ("mixed", "of several types", send((2, b"{}"), (0x80, b""), (0x12, bytes(12)))),
):
    add_case(
        f"ack/retry-identical-{name}", "10.4/same-batch",
        f"A batch {words} that is sent again is the same frame.",
        ClientCase((op.safe(),), (on("ingest", Close()),), (Same("ingest", 1),)), quick=False,
        twin_of="ack/retry-identical",
    )  # fmt: skip
add_case(
    "again/ids-after-loss", "10.4/unique",
    "A batch that is sent again over a new connection, and those after it, have ids of their own.",
    ClientCase((send(b"first"), *(send(b"%d" % n).safe() for n in range(9))),
               (on("ingest", Close(), nth=3),), rule="batch-id-unique", paired=False),
    quick=False, weight=2,
)  # fmt: skip

# -- of two topics ---------------------------------------------------------------------------------

OTHER = {"id": 8, "name": "kit-new"}


def _names_its_topic(received: ReceivedFrame) -> str:
    found, value = received.frame.topic_id, received.opened.payload[RECORD_HEADER:]
    right = value.startswith(b"%d:" % found)
    return "" if right else f"topic {found} with the record {value[:20]!r}"


def _to(topic: Mapping[str, Any], number: int) -> Op:
    op = send_async(b"%d: %d" % (topic["id"], number))
    return replace(op, arguments={**op.arguments, "topic": topic})


for count in ROUNDS:
    add_case(
        f"between/two-topics-{count}", "3.2/topic-id",
        f"{count} batches for each of two topics, in turn, have their own topics.",
        ClientCase(
            (create(), *(_to(topic, n) for n in range(count) for topic in (TOPIC, OTHER)),
             flush().gives(failed=[])),
            checks=(Sent("ingest", _names_its_topic, "the topic that its record is for"),),
            paired=False),
        quick=False, weight=1 + count // 8, twin_of="between/two-topics-2",
    )  # fmt: skip
    add_case(
        f"between/asked-in-turn-{count}", "17.5/invalid-response",
        f"Questions about two topics, {count} times in turn, have their own answers.",
        ClientCase((create(), list_topics(),
                    *(get_topic(8).gives(**OTHER), get_topic().gives(**TOPIC)) * count),
                   paired=False),
        quick=False, weight=1 + count // 8, twin_of="between/asked-in-turn-2",
    )  # fmt: skip
