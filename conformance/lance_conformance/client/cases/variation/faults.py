"""Faults in frames that are not the usual answer: errors, admissions, and what comes in between."""

import struct
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from lance_conformance.client.cases.header import (
    ACK,
    FAULTY_ANSWERS,
    HEADS,
    NOT_LATE,
    PAYLOADS,
    TOPICS,
)
from lance_conformance.client.cases.misc import WITH_TOKEN
from lance_conformance.client.cases.reads import ONE as RECORD
from lance_conformance.client.cases.registry import BOTH, add_case
from lance_conformance.client.cases.variation.kinds import FAULTS, PUSHES
from lance_conformance.client.checks import Count
from lance_conformance.client.client_case import ClientCase
from lance_conformance.client.operations import (
    Op,
    commit,
    fetch,
    get_topic,
    list_topics,
    poll,
    send,
    set_retention,
    subscribe,
)
from lance_conformance.client.scripted.script import (
    BATCH,
    Answer,
    Change,
    Plus,
    Refuse,
    Say,
    Swapped,
    Trigger,
    Xor,
    on,
)
from lance_conformance.wire.control import KEEPALIVE, control
from lance_conformance.wire.frame import Flag, Frame

ONE = send(b"one")
SURPRISED = ("protocol", "closed", "retriable", "fatal", "timeout")
"""Kinds of errors of a client that has not believed an error about credentials."""

# -- errors, admissions, CatchingUp ----------------------------------------------------------------

for name, (clause, words, fault, dialects) in FAULTS.items():
    add_case(
        f"kind/{name}-error", clause, f"An ErrorResponse with {words} is not believed.",
        ClientCase((list_topics(), get_topic().safe(*SURPRISED)),
                   (on("get", Refuse(0x41, "Invalid token", header=fault)),)),
        dialects=dialects, quick=False,
    )  # fmt: skip
    add_case(
        f"kind/{name}-refusal", clause, f"A batch is not refused by an error with {words}.",
        ClientCase((ONE, send(b"two").safe(*SURPRISED)), (
            on("ingest", Refuse(0x42, "Access denied", {"batch_id": BATCH}, header=fault), nth=2),
        )),
        dialects=dialects, quick=False,
    )  # fmt: skip
    add_case(
        f"kind/{name}-authenticated", clause,
        f"An AuthenticateResponse with {words} lets nobody in.",
        ClientCase((ONE.fails(),), (on("auth", Answer(header=fault), nth=0),),
                   (Count("ingest", 0, 0),), options=WITH_TOKEN),
        dialects=dialects, quick=False,
    )  # fmt: skip
    changes: Mapping[str, Any] = PUSHES[name][2]
    behind = replace(control(0x12, struct.pack("<Q", 0)), **changes)
    add_case(
        f"kind/{name}-catching-up", clause, f"A CatchingUp with {words} is not believed.",
        ClientCase((list_topics(), fetch().fails()), (on("fetch", Say(behind), nth=0),)),
        dialects=dialects, quick=False,
    )  # fmt: skip
add_case(
    "kind/length-4g-error", "13.1/payload-limit",
    "An ErrorResponse with 4 GiB of payload announced is given up at once.",
    ClientCase((list_topics(), get_topic().safe(*NOT_LATE)), (
        on("get", Refuse(0x41, "Invalid token", header={"payload_length": 0xFFFF_FFFF})),)),
    quick=False,
)  # fmt: skip
add_case(
    "kind/pieces-error", "17.3/streaming", "An ErrorResponse that comes byte by byte is read.",
    ClientCase((list_topics(), get_topic().fails("auth")),
               (on("get", Refuse(0x41, "Invalid token", cuts=(-1,)), nth=0),)),
    quick=False,
)  # fmt: skip

# -- frames in between -----------------------------------------------------------------------------

STRAYS = {
    "keepalive": ("a Keepalive", KEEPALIVE),
    "backpressure": ("a Backpressure", Frame(flags=Flag.BACKPRESSURE)),
    "old-ack": ("an Ack", Frame(flags=Flag.ACK, batch_id=9)),
}  # fmt: skip
for stray, (what, frame) in STRAYS.items():
    for name in ("magic", "version-2", "crc"):
        clause, words, _, dialects = FAULTS[name]
        add_case(
            f"kind/{name}-{stray}", clause,
            f"A stream is not read on after {what} with {words}, whose length cannot be trusted.",
            ClientCase((list_topics().fails(),), (
                on("list", Say(replace(frame, **PUSHES[name][2])), Answer(), nth=0),)),
            dialects=dialects, quick=False,
        )  # fmt: skip
for flags, words in ((0x00, "of no kind"), (0x60, "of two kinds"), (0x28, "of two other kinds")):
    add_case(
        f"head/flags-{flags:02x}", "17.5/unexpected",
        f"A client does not hang on a frame {words}.",
        ClientCase((list_topics().safe(), list_topics()),
                   (on("list", Say(Frame(flags=flags)), Answer()),), paired=False),
        quick=False, twin_of="head/flags-00",
    )  # fmt: skip

# -- more values of a header -----------------------------------------------------------------------

Values = Mapping[str, tuple[str, Change]]
MAGICS: Values = {
    "first": ("another first magic byte", b"XANC"), "second": ("another second one", b"LXNC"),
    "third": ("another third one", b"LAXC"), "small": ("magic bytes in small letters", b"lanc"),
    "reversed": ("reversed magic bytes", b"CNAL"),
}  # fmt: skip
VERSIONS: Values = {f"{n}": (f"version {n}", n) for n in (3, 17, 129, 255)}
CHECKSUMS: Values = {
    "byte-1": ("another second byte of its {} CRC", Xor(1 << 8)),
    "byte-2": ("another third byte of its {} CRC", Xor(1 << 16)),
    "byte-3": ("another fourth byte of its {} CRC", Xor(1 << 24)),
    "inverted": ("its {} CRC inverted", Xor(0xFFFF_FFFF)),
    "ones": ("a {} CRC of ones", 0xFFFF_FFFF), "swapped": ("its {} CRC big-endian", Swapped()),
}  # fmt: skip
MORE: tuple[tuple[str, str, str, Values, str], ...] = (
    ("magic", "magic", "11.1/magic", MAGICS, "head/magic-ack"),
    ("version", "version", "17.5/version", VERSIONS, "head/version-2-ack"),
    ("crc", "header_crc", "17.3/header-crc", CHECKSUMS, "head/crc-ack"),
    ("payload-crc", "payload_crc", "9.4/checked", CHECKSUMS, "head/payload-crc-topics"),
)  # fmt: skip
"""Name, field, clause, values, and the case that asks with another value."""
for name, field, clause, values, first in MORE:
    for value, (words, wrong) in values.items():
        for faulty in FAULTY_ANSWERS:
            if field == "payload_crc" and faulty is ACK:
                continue
            told = words.format("payload" if field == "payload_crc" else "header")
            add_case(
                f"head/{name}-{value}-{faulty.name}", clause,
                f"{faulty.beginning} with {told} is not believed.",
                ClientCase((faulty.op.safe(),), (on(faulty.trigger, Answer(header={field: wrong})),)
                           ),
                quick=False, twin_of=first, thorough=faulty is not TOPICS,
            )  # fmt: skip

# -- every fault of an answer, late ----------------------------------------------------------------

EACH: tuple[Answer, ...] = (
    *(Answer(header=row[2]) for row in HEADS.values() if row[3] == BOTH),
    Answer(header={"version": 3}), Answer(header={"header_crc": Swapped()}),
    Answer(header={"magic": b"LANX"}), Answer(header={"payload_length": 0xFFFF_FFFF}),
)  # fmt: skip
OF_PAYLOADS: tuple[Answer, ...] = (
    *(Answer(header=row[1]) for row in PAYLOADS.values()),
    Answer(header={"payload_crc": Xor(1 << 31)}), Answer(header={"batch_id": 0x7E}),
)  # fmt: skip
OWN: Mapping[str, tuple[Answer, ...]] = {
    "get": (Answer(body={"id": 9}), Answer(body={"id": None}), Answer(payload=b"{}")),
    "list": (Answer(body={"topics": None}), Answer(payload=b"[]")),
    "create": (Answer(body={"id": None}), Answer(body={"name": None})),
    "retention": (Answer(body={"topic_id": 9}),), "delete": (Answer(body={"deleted": 9}),),
    "fetch": (Answer(fetched={"returned": Plus(1)}), Answer(fetched={"next_offset": 0}),
              Answer(fetched={"returned": 0}), Answer(payload=bytes(15))),
    "commit": (*(Answer(flipped=(bit,)) for bit in (0, 31, 63, 64, 96, 127)),
               Answer(payload=bytes(8))),
}  # fmt: skip
"""Faults that an answer of one kind may have, by its request."""
BETWEEN = 7
"""Right answers between two faults."""


def faults_of(what: Trigger) -> tuple[Answer, ...]:
    """Every fault that shows at once in an answer to a request."""
    return EACH if what == "ingest" else (*EACH, *OF_PAYLOADS, *OWN.get(what, ()))


LATE: Mapping[Trigger, tuple[tuple[Op, ...], Op]] = {
    "ingest": ((), ONE), "list": ((), list_topics()), "get": ((), get_topic()),
    "fetch": ((), fetch()), "retention": ((), set_retention()),
    "commit": ((subscribe(), poll()), commit(RECORD)),
}  # fmt: skip
"""What comes before, and the operation, by its request."""
for what, (before, op) in LATE.items():
    add_case(
        f"late/each-fault-{what}", "17.5/invalid-response",
        f"Each fault of an answer to {what} is found, after many that were right.",
        ClientCase(
            (list_topics(), *before, *(op.safe(),) * BETWEEN,
             *(each for fault in faults_of(what)
               for each in (op.safe().during(on(what, fault)), *(op.safe(),) * BETWEEN))),
            paired=False, exact=True),
        quick=False, weight=2, twin_of="late/each-fault-ingest",
    )  # fmt: skip

# -- and then --------------------------------------------------------------------------------------

for faulty in FAULTY_ANSWERS:
    for name in ("magic", "version-2", "crc", "payload-crc", "length-4g"):
        if name == "payload-crc" and faulty is ACK:
            continue
        header = {"payload_length": 0xFFFF_FFFF} if name == "length-4g" else FAULTS[name][2]
        words = "4 GiB of payload announced" if name == "length-4g" else FAULTS[name][1]
        add_case(
            f"head/goes-on-after-{name}-{faulty.name}", "17.6/reconnect",
            f"After {faulty.what} with {words} the next operation works.",
            ClientCase((faulty.op.safe(), faulty.op), (on(faulty.trigger, Answer(header=header)),),
                       paired=False),
            quick=False, twin_of="head/goes-on-after-magic-ack",
        )  # fmt: skip
