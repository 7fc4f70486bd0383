"""Interleaving: what comes between a request and its answer, and requests in turn."""

from collections.abc import Mapping

from lance_conformance.client.cases.acks import REFUSAL
from lance_conformance.client.cases.header import ACK, FAULTY_ANSWERS
from lance_conformance.client.cases.reads import ALL
from lance_conformance.client.cases.registry import add_case, more
from lance_conformance.client.checks import Order
from lance_conformance.client.client_case import ClientCase
from lance_conformance.client.operations import (
    TOPIC,
    Op,
    fetch,
    flush,
    get_topic,
    list_topics,
    send,
    send_async,
)
from lance_conformance.client.scripted.script import AckOf, Answer, Say, Step, on
from lance_conformance.wire.control import KEEPALIVE
from lance_conformance.wire.frame import Flag, Frame
from lance_conformance.wire.tlv import records

NUMBERS = (1, 9, 65)
MORE_NUMBERS = (*NUMBERS, 2, 33, 257)
ROUNDS = (2, 9, 33)
TIMES = 3
"""Requests whose answers have something before them."""

Bystander = tuple[str, str, Step]


def bystanders(number: int) -> Mapping[str, Bystander]:
    """Clause, words and step of what may come before an answer, by name."""
    return {
        "keepalive": ("4.3/apart", f"{number} Keepalives", Say(KEEPALIVE, number)),
        "backpressure": (
            "4.4/no-error", f"{number} times Backpressure",
            Say(Frame(flags=Flag.BACKPRESSURE), number),
        ),
        "old-ack": (
            "10.2/any-order", f"{number} Acks of a batch that is acknowledged", AckOf(1, number),
        ),
    }  # fmt: skip


for number in MORE_NUMBERS:
    for name, (clause, words, step) in bystanders(number).items():
        for faulty in FAULTY_ANSWERS:
            add_case(
                f"between/{name}-{number}-{faulty.name}", clause,
                f"{words} before {faulty.what} are not taken for it.",
                ClientCase(
                    (send(b"first"), *(faulty.op,) * TIMES),
                    tuple(
                        on(faulty.trigger, step, Answer(), nth=n + 1 + (faulty is ACK))
                        for n in range(TIMES)
                    ),
                    paired=False,
                ),
                quick=False, **more(number, NUMBERS, f"between/{name}-65-{faulty.name}"),
            )  # fmt: skip

LISTED = list_topics().gives(topics=[TOPIC])
FOUND = get_topic().gives(**TOPIC)
READ = fetch().gives(records=ALL)
BESIDE: Mapping[str, tuple[str, Op]] = {
    "list": ("a list", LISTED), "get": ("a question about a topic", FOUND),
    "fetch": ("a Fetch", fetch()),
}  # fmt: skip

for count in ROUNDS:
    weight = 1 + count // 8
    add_case(
        f"between/in-turn-{count}", "17.5/invalid-response",
        f"List, Fetch and GetTopic in turn, {count} times, have their own answers.",
        ClientCase((LISTED, READ, FOUND) * count, paired=False), quick=False, weight=weight,
    )  # fmt: skip
    for name, (words, beside) in BESIDE.items():
        payloads = [b"%d" % n for n in range(count)]
        add_case(
            f"between/in-flight-beside-{name}-{count}", "17.7/order",
            f"{count} batches, each with {words} after it, are acknowledged in order.",
            ClientCase(
                (*(op for value in payloads for op in (send_async(value), beside)),
                 flush().gives(failed=[], **{"count:acked": count})),
                checks=(Order(tuple(records([value]) for value in payloads)),), paired=False,
            ),
            quick=False, weight=weight,
        )  # fmt: skip
    add_case(
        f"between/refused-beside-{count}", "12.1/batch-errors",
        f"{count} refused batches, each before a list and a batch that is taken, fail alone.",
        ClientCase(
            (ACK.op.fails("fatal"), LISTED, send(b"taken")) * count,
            tuple(on("ingest", REFUSAL, nth=2 * n + 1) for n in range(count)),
        ),
        quick=False, weight=weight,
    )  # fmt: skip
