"""The rules for answers again, for each kind of answer that a client reads.

A client may have a piece of code for each of them, and a rule in some of these only.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from lance_conformance.client.cases.header import HEADS, NOT_LATE, PAYLOADS, SOON, FaultyAnswer
from lance_conformance.client.cases.reads import LOG, ONE
from lance_conformance.client.cases.registry import SPECIFIED, add_case
from lance_conformance.client.checks import Closes, Reads
from lance_conformance.client.client_case import ClientCase
from lance_conformance.client.operations import (
    commit,
    create,
    create_limited,
    delete_topic,
    get_topic,
    list_topics,
    poll,
    send,
    set_retention,
    subscribe,
    wait,
)
from lance_conformance.client.scripted.model import FETCH_RESPONSE, TOPIC_ID, fetch_payload
from lance_conformance.client.scripted.script import (
    Answer,
    Change,
    Close,
    Nothing,
    Pause,
    Refuse,
    Say,
    Stall,
    on,
)
from lance_conformance.wire.frame import Flag, Frame
from lance_conformance.wire.tlv import RECORD_HEADER

END = len(LOG)
KINDS = (
    FaultyAnswer("create", create(), "create", "the answer to CreateTopic"),
    FaultyAnswer("create-limited", create_limited(), "create-limited",
            "the answer to CreateTopicWithRetention"),
    FaultyAnswer("get", get_topic(), "get", "the answer to GetTopic"),
    FaultyAnswer("delete", delete_topic(), "delete", "the answer to DeleteTopic"),
    FaultyAnswer("retention", set_retention(), "retention", "the answer to SetRetention"),
    FaultyAnswer("commit", commit(ONE), "commit", "a CommitAck"),
)  # fmt: skip
"""Beside those of `FAULTY_ANSWERS`."""
FAULTS: Mapping[str, tuple[str, str, Mapping[str, Change], tuple[str, ...]]] = {
    **{name: HEADS[name] for name in ("magic", "version-2", "crc", "bit-7", "reserved")},
    **{name: ("9.4/checked", *PAYLOADS[name], HEADS["magic"][3])
       for name in ("payload-crc", "payload-crc-zero")},
}  # fmt: skip
"""Clause, words, fault and dialects by name."""


for carrier in KINDS:
    first = (list_topics(), subscribe(), poll()) if carrier.name == "commit" else (list_topics(),)
    op = carrier.op
    for name, (clause, words, fault, dialects) in FAULTS.items():
        add_case(
            f"kind/{name}-{carrier.name}", clause,
            f"{carrier.beginning} with {words} is not believed.",
            ClientCase((*first, op.safe()), (on(carrier.trigger, Answer(header=fault)),)),
            dialects=dialects, quick=False,
        )  # fmt: skip
    add_case(
        f"kind/length-4g-{carrier.name}", "13.1/payload-limit",
        f"{carrier.beginning} with 4 GiB of payload announced is given up at once.",
        ClientCase((*first, op.safe(*NOT_LATE)),
                   (on(carrier.trigger, Answer(header={"payload_length": 0xFFFF_FFFF})),)),
        quick=False,
    )  # fmt: skip
    add_case(
        f"kind/answered-by-data-{carrier.name}", "17.5/unexpected",
        f"{carrier.beginning} is no FetchResponse: the operation fails.",
        ClientCase((*first, op.fails()),
                   (on(carrier.trigger, Answer(header={"batch_id": FETCH_RESPONSE}), nth=0),)),
        quick=False,
    )  # fmt: skip
    add_case(
        f"kind/answered-by-ack-{carrier.name}", "17.5/unexpected",
        f"{carrier.beginning} is no Ack: the operation fails.",
        ClientCase((*first, op.fails()),
                   (on(carrier.trigger, Answer(header={"flags": 0x08}), nth=0),)),
        quick=False,
    )  # fmt: skip
    add_case(
        f"kind/refused-{carrier.name}", "17.5/error-ends",
        f"An ErrorResponse in place of {carrier.what} fails the operation at once.",
        ClientCase((*first, op.fails(*NOT_LATE)),
                   (on(carrier.trigger, Refuse(0x60, "Internal error"), nth=0),)),
        quick=False,
    )  # fmt: skip
    add_case(
        f"kind/unanswered-{carrier.name}", "17.5/timeout",
        f"Without {carrier.what} the operation fails in time, and the next one works.",
        ClientCase((*first, op.fails(), list_topics()), (on(carrier.trigger, Nothing(), nth=0),)),
        quick=False,
    )  # fmt: skip
    add_case(
        f"kind/cut-{carrier.name}", "17.5/timeout",
        f"When {carrier.what} stops inside its header, the operation fails in time.",
        ClientCase((*first, op.fails()), (on(carrier.trigger, Answer(upto=20), Stall(), nth=0),)),
        quick=False,
    )  # fmt: skip
    add_case(
        f"kind/lost-{carrier.name}", "17.5/connection-closed",
        f"A connection that always ends in place of {carrier.what} fails the operation.",
        ClientCase((*first, op.fails()), (on(carrier.trigger, Close(), nth=0),)),
        quick=False,
    )  # fmt: skip
    add_case(
        f"kind/pieces-{carrier.name}", "17.3/streaming",
        f"{carrier.beginning} that comes byte by byte is taken.",
        ClientCase((*first, op), (on(carrier.trigger, Answer(cuts=(-1,))),), paired=False),
        quick=False,
    )  # fmt: skip

for name, (clause, words, fault, _) in FAULTS.items():
    add_case(
        f"kind/{name}-subscribe", clause,
        f"A SubscribeAck with {words} is not believed: its connection is closed.",
        ClientCase((list_topics(), subscribe(END).safe(), poll().safe()),
                   (on("subscribe", Answer(header=fault)),), (Closes(),), paired=False),
        dialects=SPECIFIED, quick=False,
    )  # fmt: skip

# -- what a subscription brings --------------------------------------------------------------------

NEWS = fetch_payload(END, LOG[:ONE])
PUSHED = Frame(flags=Flag.CONTROL, batch_id=FETCH_RESPONSE, topic_id=TOPIC_ID, payload=NEWS)
PUSHES: Mapping[str, tuple[str, str, Mapping[str, Any]]] = {
    "magic": ("11.1/magic", "wrong magic bytes", {"magic": b"LANX"}),
    "version-2": ("17.5/version", "version 2", {"version": 2}),
    "crc": ("17.3/header-crc", "a wrong header CRC", {"header_crc": 0x1234_5678}),
    "payload-crc": ("9.4/checked", "a wrong payload CRC", {"payload_crc": 0x1234_5678}),
    "payload-crc-zero": ("9.4/checked", "payload CRC 0", {"payload_crc": 0}),
    "bit-7": ("3.3/bit-7", "flag bit 7 set", {"flags": Flag.CONTROL | Flag.RESERVED}),
    "reserved": ("3.2/reserved", "reserved bytes that are not 0", {"reserved": 1}),
    "size": ("17.5/invalid-fetch", "another size than its own",
             {"payload": NEWS[:8] + b"\1" + NEWS[9:]}),
    "next": ("17.5/invalid-fetch", "a next offset inside its data",
             {"payload": bytes(8) + NEWS[8:]}),
}  # fmt: skip
for name, (clause, words, changes) in PUSHES.items():
    add_case(
        f"kind/{name}-push", clause, f"What a push with {words} brings is not handed on.",
        ClientCase(
            (list_topics(), subscribe(END), poll().safe(), send(b"news").safe(),
             *(poll().safe(),) * 2),
            (on("subscribe", Answer(), Pause(SOON), Say(replace(PUSHED, **changes))),),
            (Reads((b"news",)),), paired=False,
        ),
        dialects=SPECIFIED, quick=False,
    )  # fmt: skip

AFTER = 65
"""Pushes that were right before one that is not."""
MANY = tuple((1, b"record %02d" % n) for n in range(AFTER))
for name, (clause, words, changes) in PUSHES.items():
    size = RECORD_HEADER + len(MANY[0][1])
    later = fetch_payload(AFTER * size, LOG[:ONE])
    wrong = {"size": later[:8] + b"\1" + later[9:], "next": bytes(8) + later[8:]}.get(name, later)
    add_case(
        f"late/push-{name}", clause,
        f"What a push with {words} brings is not handed on, after {AFTER} that were right.",
        ClientCase(
            (list_topics(), subscribe(0, size), *(poll(AFTER),) * AFTER, wait(2 * SOON),
             send(b"news").safe(), *(poll(AFTER + 1).safe(),) * 3),
            (on("subscribe", Answer(), Pause(SOON),
                Say(replace(PUSHED, **{**changes, "payload": wrong}))),),
            (Reads((*(value for _, value in MANY), b"news")),), records=MANY, paired=False,
        ),
        dialects=SPECIFIED, quick=False, weight=2, twin_of="late/push-magic",
    )  # fmt: skip
