"""Fetch: what is asked, what is believed, and where reading goes on."""

import struct
from collections.abc import Mapping

from lance_conformance.client.cases.admin import asks
from lance_conformance.client.cases.registry import SPECIFIED, add_case
from lance_conformance.client.checks import Reads
from lance_conformance.client.client_case import RECORDS, ClientCase
from lance_conformance.client.operations import encoded, fetch, list_topics, poll, subscribe
from lance_conformance.client.scripted.script import Answer, Change, Plus, Say, on
from lance_conformance.wire.control import control
from lance_conformance.wire.tlv import record

LOG = b"".join(record(value, kind) for kind, value in RECORDS)
ALL = [{"type": kind, "value": encoded(value)} for kind, value in RECORDS]
VALUES = tuple(value for _, value in RECORDS)
ONE = len(record(RECORDS[0][1]))
BAD = ("protocol", "fatal", "closed")

add_case(
    "read/request", "5.8/request", "A Fetch has topic, offset and the largest answer.",
    ClientCase((fetch(ONE, 4096),), checks=(
        asks("fetch", struct.pack("<IQI", 7, ONE, 4096), "topic 7, the offset, and 4096",
             some=True),),
        paired=False),
)  # fmt: skip
add_case(
    "read/from-offset", "17.8/seek", "Reading from an offset gives what stands there.",
    ClientCase((fetch(2 * ONE).gives(records=ALL[2:]),), paired=False),
)  # fmt: skip
add_case(
    "read/next-offset", "17.8/offset", "After reading, the next offset is that after the data.",
    ClientCase((fetch().gives(records=ALL, next_offset=len(LOG)),), paired=False),
)  # fmt: skip
add_case(
    "read/at-end", "5.9/empty", "At the end of the log there is nothing, and the offset stays.",
    ClientCase((fetch(len(LOG)).gives(records=[], next_offset=len(LOG)),), paired=False),
)  # fmt: skip
add_case(
    "read/gap", "5.9/gap", "An empty answer may move the offset over a gap.",
    ClientCase((fetch().safe(),), (
        on("fetch", Answer(payload=struct.pack("<QII", ONE, 0, 0), good=True)),)),
)  # fmt: skip

# -- data that is cut ------------------------------------------------------------------------------

for name, extra, words in (
    ("value", ONE - 2, "inside a record's value"),
    ("header", 3, "inside a record's header"),
    ("type", 1, "after a record's type"),
):
    add_case(
        f"read/cut-in-{name}",
        "5.9/cut",
        f"Data that is cut {words} gives the whole records before, and goes on after them.",
        ClientCase(
            (fetch().gives(records=ALL[:2], next_offset=2 * ONE),),
            (on("fetch", Answer(data=LOG[: 2 * ONE + extra], fetched={"count": 2}, good=True)),),
        ),
    )
    add_case(
        f"read/nothing-lost-{name}",
        "5.9/cut",
        f"When answers are cut {words}, nothing is lost and nothing comes twice.",
        ClientCase(
            (subscribe(), poll(), poll()),
            (on("fetch", Answer(data=LOG[: 2 * ONE + extra], fetched={"count": 2}, good=True)),),
            (Reads(VALUES),),
            paired=False,
        ),
    )
add_case(
    "read/large-record", "5.9/large",
    "A record that is larger than what was asked for is fetched all the same.",
    ClientCase((fetch(0, 64).gives(records=[{"type": 1, "value": encoded(b"v" * 500)}]),),
             records=((1, b"v" * 500),), paired=False),
)  # fmt: skip
add_case(
    "read/misaligned", "5.9/misaligned",
    "Data that does not begin at a record is an error, not garbage.",
    ClientCase((fetch().fails(),), (
        on("fetch", Answer(data=record(b"inner") + b"rest", fetched={"count": 0}), nth=0),)),
    dialects=SPECIFIED,
)  # fmt: skip

# -- answers that are wrong ------------------------------------------------------------------------

FIELDS: Mapping[str, tuple[str, Mapping[str, Change]]] = {
    "size-more": ("announces one byte more than it has", {"returned": Plus(1)}),
    "size-less": ("announces one byte less than it has", {"returned": Plus(-1)}),
    "size-zero": ("announces no data and has some", {"returned": 0}),
    "size-4g": ("announces 4 GiB", {"returned": 0xFFFF_FFFF}),
    "next-behind": ("goes on before its own data ends", {"next_offset": Plus(-1)}),
    "next-zero": ("has data and goes on at 0", {"next_offset": 0}),
}
for name, (words, fields) in FIELDS.items():
    add_case(
        f"read/wrong-{name}", "17.5/invalid-fetch",
        f"A FetchResponse that {words} is an error.",
        ClientCase((fetch().fails(*BAD),), (on("fetch", Answer(fetched=fields), nth=0),)),
    )  # fmt: skip
for size in (0, 8, 15):
    add_case(
        f"read/wrong-payload-{size}", "17.5/invalid-fetch",
        f"A FetchResponse with a payload of {size} bytes is an error.",
        ClientCase((fetch().fails(*BAD),), (on("fetch", Answer(payload=bytes(size)), nth=0),)),
    )  # fmt: skip
add_case(
    "read/wrong-extended-header", "17.5/invalid-fetch",
    "A FetchResponse with the 24-byte header of section 5.9.1 is not read as one of 16 bytes.",
    ClientCase((fetch().fails(*BAD),), (
        on("fetch", Answer(payload=struct.pack("<QQQ", 0, len(LOG), len(LOG)) + LOG), nth=0),)),
)  # fmt: skip
for name, length, words in (
    ("beyond", 1000, "a length beyond the end of the data"),
    ("4g", 0xFFFF_FFFF, "a length of 4 GiB"),
):
    broken = record(b"whole") + struct.pack("<BI", 1, length) + b"rest"
    add_case(
        f"read/record-{name}", "8.5/truncated",
        f"A record with {words} is not a record: what stands before it may be read, nothing else.",
        ClientCase((fetch().safe(*BAD, "timeout").gives(
            records=[{"type": 1, "value": encoded(b"whole")}]),),
            (on("fetch", Answer(data=broken, fetched={"count": 1}, good=True)),),
            records=((1, b"whole"),)),
    )  # fmt: skip

# -- other answers ---------------------------------------------------------------------------------

CATCHING_UP = Say(control(0x12, struct.pack("<Q", 9000)))
add_case(
    "read/catching-up", "5.9/catching-up",
    "CatchingUp brings no records and does not move the offset.",
    ClientCase(
        (list_topics(), fetch(9000).safe().gives(records=[], next_offset=9000)), paired=False
    ),
)  # fmt: skip
add_case(
    "read/catching-up-then-data", "5.9/catching-up",
    "After a CatchingUp the same offset is read, and nothing is lost.",
    ClientCase(
        (list_topics(), subscribe(), poll().safe(), poll().safe()),
        (on("fetch", Say(control(0x12, struct.pack("<Q", 0)))),),
        (Reads(VALUES),),
        paired=False,
    ),
)  # fmt: skip
for size in (0, 7):
    add_case(
        f"read/catching-up-of-{size}", "17.5/invalid-fetch",
        f"A CatchingUp of {size} bytes is not data.",
        ClientCase((list_topics(), fetch().safe(*BAD, "retriable").gives(records=[])),
                 (on("fetch", Say(control(0x12, bytes(size))), nth=0),), paired=False),
    )  # fmt: skip
for name, words, command in (
    ("topics", "a TopicResponse", 0x80), ("commit-ack", "a CommitAck", 0x24),
):  # fmt: skip
    add_case(
        f"read/answered-by-{name}", "17.5/unexpected", f"A Fetch that {words} answers fails.",
        ClientCase((fetch().fails(),), (on("fetch", Answer(header={"batch_id": command}), nth=0),)),
    )  # fmt: skip
add_case(
    "read/goes-on", "17.8/offset", "Polling goes on where it stopped: nothing lost, nothing twice.",
    ClientCase((subscribe(max_bytes=2 * ONE), poll(), poll(), poll()),
             checks=(Reads(VALUES),), paired=False),
)  # fmt: skip
add_case(
    "read/from-the-middle", "17.8/seek", "Polling from an offset gives what stands there.",
    ClientCase((subscribe(3 * ONE), poll(), poll()), checks=(Reads(VALUES[3:]),), paired=False),
)  # fmt: skip
