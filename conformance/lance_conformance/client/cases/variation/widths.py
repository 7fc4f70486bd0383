"""Wide values again, in each request that has them and in each answer that tells them."""

import struct
from collections.abc import Callable, Mapping

from lance_conformance.client.cases.reads import ALL, LOG, ONE
from lance_conformance.client.cases.registry import add_case, more
from lance_conformance.client.checks import OneOf, Sent
from lance_conformance.client.client_case import ClientCase
from lance_conformance.client.operations import (
    Op,
    commit,
    create_limited,
    delete_topic,
    fetch,
    get_topic,
    list_topics,
    poll,
    send,
    set_retention,
    subscribe,
)
from lance_conformance.client.scripted.model import TOPIC_NAME
from lance_conformance.client.scripted.received_frame import ReceivedFrame
from lance_conformance.client.scripted.script import Answer, Trigger, on

IDS = (0, 1 << 8, 1 << 16, 1 << 24, 1 << 31, 2**32 - 1)
"""Topic ids; 0 is that of the default topic."""
EITHER: tuple[tuple[Trigger, Trigger], ...] = (("subscribe", "fetch"), ("fetch", "subscribe"))
"""What a client does that follows a topic, and what does in its place."""
BITS = (16, 31, 32, 33, 53, 62, 63)
BITS_32 = (8, 16, 20)
MORE_IDS = (*IDS, *(1 << bit for bit in range(1, 32) if 1 << bit not in IDS))
MORE_BITS = (*BITS, *(bit for bit in range(8, 64) if bit not in BITS))
MORE_32 = (*BITS_32, *(bit for bit in range(7, 24) if bit not in BITS_32))
"""The same of a thorough run."""


def has_bytes(at: int, value: bytes) -> Callable[[ReceivedFrame], str]:
    """Look for these bytes at a place of a frame's payload."""

    def holds(received: ReceivedFrame) -> str:
        found = received.frame.payload[at : at + len(value)]
        return "" if found == value else f"{found.hex()} at byte {at}, must be {value.hex()}"

    return holds


def told(what: Trigger, at: int, value: bytes, words: str, instead: Trigger | None = None) -> Sent:
    """A request, or one of several, has these bytes at a place of its payload."""
    return Sent(what, has_bytes(at, value), words, some=True, instead=instead or "")


def _named(topic_id: int) -> Sent:
    def holds(received: ReceivedFrame) -> str:
        found = received.frame.topic_id
        return "" if found == topic_id else f"topic {found}, must be {topic_id}"

    return Sent("ingest", holds, f"topic {topic_id} in the header")


def _about(op: Op, topic_id: int) -> Op:
    """An operation about the topic under another id."""
    topic = {"topic": {"id": topic_id, "name": TOPIC_NAME}}
    whole = {**op.arguments, **(topic if "topic" in op.arguments else {"topic_id": topic_id})}
    return Op(op.name, whole, op.want)


ASKING: Mapping[Trigger, tuple[str, Op]] = {
    "delete": ("5.6/request", delete_topic()),
    "retention": ("5.10/request", set_retention()),
    "fetch": ("5.8/request", fetch()),
}
"""Clause and operation by its request, whose payload begins with the topic id."""

for number in MORE_IDS:
    for trigger, (clause, op) in ASKING.items():
        add_case(
            f"wide/topic-of-{trigger}-{number:x}", clause,
            f"A request to {trigger} names topic {number:#x} as it is.",
            ClientCase((list_topics(), _about(op, number)),
                       checks=(told(trigger, 0, struct.pack("<I", number), f"topic {number:#x}"),),
                       topic_id=number, paired=False),
            quick=False, **more(number, IDS, f"wide/topic-of-{trigger}-80000000"),
        )  # fmt: skip
    add_case(
        f"wide/topic-of-send-{number:x}", "3.2/topic-id",
        f"A batch for topic {number:#x} has it in its header.",
        ClientCase((_about(send(b"one"), number),), checks=(_named(number),), topic_id=number,
                   paired=False),
        quick=False, **more(number, IDS, "wide/topic-of-send-80000000"),
    )  # fmt: skip
    add_case(
        f"wide/topic-of-subscribe-{number:x}", "5.12/request",
        f"A Subscribe names topic {number:#x} as it is; Fetch does in its place.",
        ClientCase(
            (list_topics(), _about(subscribe(), number), poll()),
            checks=tuple(
                told(one, 0, struct.pack("<I", number), f"topic {number:#x}", other)
                for one, other in EITHER
            ),
            topic_id=number, paired=False,
        ),
        quick=False, **more(number, IDS, "wide/topic-of-subscribe-80000000"),
    )  # fmt: skip
    add_case(
        f"wide/listed-id-{number:x}", "5.3/answer", f"A list tells the topic id {number:#x}.",
        ClientCase((list_topics().gives(topics=[{"id": number, "name": "it"}]),), (
            on("list", Answer(body={"topics": [{"id": number, "name": "it", "created_at": 1}]},
                              good=True)),)),
        quick=False, **more(number, IDS, "wide/listed-id-80000000"),
    )  # fmt: skip

add_case(
    "wide/topic-of-get-0", "5.5/request", "A request to get names topic 0 as it is.",
    ClientCase((list_topics(), get_topic(0).safe()),
               checks=(told("get", 0, bytes(4), "topic 0"),), paired=False),
    quick=False,
)  # fmt: skip

# -- offsets, sizes and limits ---------------------------------------------------------------------

for bit in sorted(set(MORE_BITS) - {63}):  # a commit beyond 2^63 may be refused before it is sent
    base = 1 << bit
    add_case(
        f"wide/commit-{bit}", "5.14/request", f"A CommitOffset after 2^{bit} has that offset.",
        ClientCase((subscribe(base), poll(), commit(base + ONE)),
                   checks=(told("commit", 12, struct.pack("<Q", base + ONE), f"2^{bit} + {ONE}"),),
                   base=base, paired=False),
        quick=False, **more(bit, BITS, "wide/commit-62"),
    )  # fmt: skip
for bit in MORE_BITS:
    base = 1 << bit
    add_case(
        f"wide/subscribe-{bit}", "5.12/request",
        f"A subscription from 2^{bit} begins there; Fetch asks for it in its place.",
        ClientCase(
            (list_topics(), subscribe(base), poll()),
            checks=(OneOf(("subscribe", "fetch"), has_bytes(4, struct.pack("<Q", base)),
                          f"2^{bit}"),),
            base=base, paired=False,
        ),
        quick=False, **more(bit, BITS, "wide/subscribe-63"),
    )  # fmt: skip
    add_case(
        f"wide/next-offset-{bit}", "17.8/offset",
        f"After records at 2^{bit} the next offset is that after them.",
        ClientCase((fetch(base).gives(records=ALL, next_offset=base + len(LOG)),), base=base,
                   paired=False),
        quick=False, **more(bit, BITS, "wide/next-offset-63"),
    )  # fmt: skip
LIMIT_BITS = (31, 32, 53, 62)
for bit in range(63):
    age, size = (1 << bit) + 1, (1 << bit) + 3
    limited = Op("create_topic", {**create_limited().arguments, "max_age_secs": age,
                                  "max_bytes": size})  # fmt: skip
    add_case(
        f"wide/created-limits-{bit}", "5.11/request",
        f"A topic is created with limits of 2^{bit} + 1 seconds and 2^{bit} + 3 bytes.",
        ClientCase((limited,), checks=(
            told("create-limited", 9, struct.pack("<QQ", age, size), "both limits"),),
            paired=False),
        quick=False, **more(bit, LIMIT_BITS, "wide/created-limits-62"),
    )  # fmt: skip
for bit in MORE_32:
    most = (1 << bit) + 1
    add_case(
        f"wide/fetch-size-{bit}", "5.8/request", f"A Fetch for 2^{bit} + 1 bytes asks for as many.",
        ClientCase((fetch(0, most),),
                   checks=(told("fetch", 12, struct.pack("<I", most), f"2^{bit} + 1 bytes"),),
                   paired=False),
        quick=False, **more(bit, BITS_32, "wide/fetch-size-16"),
    )  # fmt: skip
