"""The rules again where clients are wrong only sometimes: late, large, wide, many, repeated."""

import struct
from collections.abc import Mapping
from typing import Any

from lance_conformance.client.cases.acks import REFUSAL
from lance_conformance.client.cases.admin import asks
from lance_conformance.client.cases.header import ACK, FETCHED, NOT_LATE, TOPICS, FaultyAnswer
from lance_conformance.client.cases.reads import ALL, BAD
from lance_conformance.client.cases.registry import add_case, more
from lance_conformance.client.cases.variation.widths import told
from lance_conformance.client.checks import Order, Sent
from lance_conformance.client.client_case import ClientCase
from lance_conformance.client.operations import (
    Op,
    create,
    create_limited,
    encoded,
    fetch,
    flush,
    get_topic,
    list_topics,
    send,
    send_alike,
    send_async,
    set_retention,
)
from lance_conformance.client.scripted.received_frame import ReceivedFrame
from lance_conformance.client.scripted.script import Answer, Plus, Xor, on
from lance_conformance.wire.tlv import records

LATE = (1, 8, 64, 128, 256)
"""Right answers of a connection before the wrong one."""
LATER = (*LATE, 2, 3, 16, 40, 100, 250, 1_024)
"""The same of a thorough run, as all names in the plural below."""
SIZES = (130, 300, 1_100, 5_000, 70_000)
"""Bytes of a payload, after the sizes up to which something may be done in another way."""
MORE_SIZES = (
    *SIZES, 1, 255, 256, 257, 1_023, 1_024, 4_095, 4_096, 65_535, 65_536, 65_537, 262_145,
)  # fmt: skip
BEYOND_BUFFERS = (1_300_000, 5_000_000, 9_000_000)
"""Bytes of a payload above limits that are lower than the document's, of 1, 4 and 8 MiB."""
BEYOND_LARGEST = (16 << 20) + 6
NAMES = (65, 129, 255)
"""Bytes of a name."""
NUMBERS = (9, 17, 65, 129, 257, 1_025)
MORE_NUMBERS = (*NUMBERS, 2, 33, 100, 500, 2_049, 4_097)
WIDE = 0x1_0001
"""More records than 16 bits count."""
MOST_TOPICS = 9_999
HANDFULS = (9, 17, 65, 129)
"""The same where each is a request of its own."""
MORE_HANDFULS = (*HANDFULS, 2, 33, 257)

# -- late on a connection --------------------------------------------------------------------------

FaultRow = tuple[str, str, FaultyAnswer, Answer, tuple[str, ...]]
FAULTS: Mapping[str, FaultRow] = {
    "magic": ("11.1/magic", "wrong magic bytes", TOPICS, Answer(header={"magic": b"LANX"}), ()),
    "version": ("17.5/version", "version 2", TOPICS, Answer(header={"version": 2}), ()),
    "header-crc": ("17.3/header-crc", "a wrong header CRC", TOPICS,
                   Answer(header={"header_crc": Xor(1)}), ()),
    "payload-crc": ("9.4/checked", "a wrong payload CRC", TOPICS,
                    Answer(header={"payload_crc": Xor(1)}), ()),
    "length": ("13.1/payload-limit", "4 GiB of payload announced", TOPICS,
               Answer(header={"payload_length": 0xFFFF_FFFF}), NOT_LATE),
    "ack-id": ("4.2/batch-id", "another batch id", ACK, Answer(header={"batch_id": Plus(1)}), ()),
    "fetched-crc": ("9.4/checked", "a wrong payload CRC", FETCHED,
                    Answer(header={"payload_crc": Xor(1)}), ()),
    "fetched-size": ("17.5/invalid-fetch", "a size that is not its own", FETCHED,
                     Answer(fetched={"returned": Plus(1)}), BAD),
    "fetched-next": ("17.5/invalid-fetch", "a next offset inside its data", FETCHED,
                     Answer(fetched={"next_offset": Plus(-1)}), BAD),
}  # fmt: skip
"""Clause, words, carrier, answer and kinds by name."""

for name, (clause, words, faulty, answer, kinds) in FAULTS.items():
    for count in LATER:
        add_case(
            f"late/{name}-{count}",
            clause,
            f"{faulty.beginning} with {words} is not believed after {count} that were right.",
            ClientCase(
                (faulty.op.safe(*kinds),) * (count + 1),
                (on(faulty.trigger, answer, nth=count + 1),),
            ),
            quick=False,
            weight=1 + count // 64,
            **more(count, LATE, f"late/{name}-{LATE[-1]}"),
        )

for count in LATER:
    add_case(
        f"late/another-topic-{count}", "17.5/invalid-response",
        f"An answer about another topic is an error after {count} that were right.",
        ClientCase((*(get_topic(),) * count, get_topic().fails(*NOT_LATE)),
                   (on("get", Answer(body={"id": 9}), nth=count + 1),)), quick=False,
        weight=1 + count // 64, **more(count, LATE, f"late/another-topic-{LATE[-1]}"),
    )  # fmt: skip
    add_case(
        f"late/another-command-{count}", "17.5/unexpected",
        f"A Fetch that a TopicResponse answers fails after {count} that were right.",
        ClientCase((fetch().safe(),) * (count + 1),
                   (on("fetch", Answer(header={"batch_id": 0x80}), nth=count + 1),)), quick=False,
        weight=1 + count // 64, **more(count, LATE, f"late/another-command-{LATE[-1]}"),
    )  # fmt: skip

# -- wide numbers of topics ------------------------------------------------------------------------

for number in (2**16, 2**24, 2**31, 2**32 - 1):
    add_case(
        f"wide/told-id-{number:x}", "5.3/answer", f"The topic id {number:#x} is told as such.",
        ClientCase((create().gives(id=number),),
                   (on("create", Answer(body={"id": number}, good=True)),), paired=False),
        quick=False,
    )  # fmt: skip

# -- large payloads --------------------------------------------------------------------------------


def _one_record(size: int) -> tuple[tuple[int, bytes], ...]:
    return ((1, bytes(each % 251 for each in range(size))),)


def _goes_out(*values: bytes) -> Sent:
    payload = records(values)

    def holds(received: ReceivedFrame) -> str:
        frame = received.opened
        right = frame.payload == payload and frame.record_count == len(values)
        return "" if right else f"{frame.record_count} records in {len(frame.payload)} bytes"

    return Sent("ingest", holds, f"{len(values)} records in {len(payload)} bytes, as given")


for size in MORE_SIZES:
    large = _one_record(size)
    value = large[0][1]
    whole = {"type": 1, "value": encoded(value)}
    add_case(
        f"large/topics-crc-{size}", "9.4/checked",
        f"A TopicResponse of more than {size} bytes with a wrong payload CRC is not believed.",
        ClientCase((list_topics().safe(),), (
            on("list", Answer(header={"payload_crc": Xor(1)}, body={"notes": "n" * size})),)),
        quick=False, **more(size, SIZES, "large/topics-crc-70000"),
    )  # fmt: skip
    for fault, clause, words, answer, kinds in (
        ("crc", "9.4/checked", "a wrong payload CRC",
         Answer(header={"payload_crc": Xor(1 << 31)}), ()),
        ("size", "17.5/invalid-fetch", "another size than its own",
         Answer(fetched={"returned": Plus(1)}), BAD),
        ("next", "17.5/invalid-fetch", "a next offset inside its data",
         Answer(fetched={"next_offset": Plus(-1)}), BAD),
    ):  # fmt: skip
        add_case(
            f"large/fetched-{fault}-{size}", clause,
            f"A FetchResponse of more than {size} bytes with {words} is not believed.",
            ClientCase((fetch(max_bytes=1 << 20).safe(*kinds),),
                       (on("fetch", answer, nth=0),), records=large),
            quick=False, **more(size, SIZES, f"large/fetched-{fault}-70000"),
        )  # fmt: skip
    add_case(
        f"large/sends-{size}", "8.4/batch", f"A record of {size} bytes goes out whole.",
        ClientCase((send(value),), checks=(_goes_out(value),), paired=False), quick=False,
        **more(size, SIZES, "large/sends-70000"),
    )  # fmt: skip
    add_case(
        f"large/reads-{size}", "17.2/decoder", f"A record of {size} bytes is read whole.",
        ClientCase((fetch(max_bytes=1 << 20).gives(records=[whole]),), records=large,
                   paired=False), quick=False, **more(size, SIZES, "large/reads-70000"),
    )  # fmt: skip

for size in BEYOND_BUFFERS:
    large = _one_record(size)
    value = large[0][1]
    whole = {"type": 1, "value": encoded(value)}
    add_case(
        f"large/sends-{size}", "8.4/batch", f"A record of {size} bytes goes out whole.",
        ClientCase((send(value),), checks=(_goes_out(value),), paired=False),
        quick=False, weight=4, **more(size, BEYOND_BUFFERS[:2], "large/sends-1300000"),
    )  # fmt: skip
    add_case(
        f"large/reads-{size}", "17.2/decoder", f"A record of {size} bytes is read whole.",
        ClientCase((fetch(max_bytes=size + 64).gives(records=[whole]),), records=large,
                   paired=False),
        quick=False, weight=4, **more(size, BEYOND_BUFFERS[:2], "large/reads-1300000"),
    )  # fmt: skip
for size in BEYOND_BUFFERS[:1]:
    add_case(
        f"large/topics-crc-{size}", "9.4/checked",
        f"A TopicResponse of more than {size} bytes with a wrong payload CRC is not believed.",
        ClientCase((list_topics().safe(),), (
            on("list", Answer(header={"payload_crc": Xor(1)}, body={"notes": "n" * size})),)),
        quick=False, weight=2, twin_of="large/topics-crc-70000",
    )  # fmt: skip
    add_case(
        f"large/fetched-crc-{size}", "9.4/checked",
        f"A FetchResponse of more than {size} bytes with a wrong payload CRC is not believed.",
        ClientCase((fetch(max_bytes=2 << 20).safe(),),
                   (on("fetch", Answer(header={"payload_crc": Xor(1)}), nth=0),),
                   records=_one_record(size)),
        quick=False, weight=2, twin_of="large/fetched-crc-70000",
    )  # fmt: skip
    add_case(
        f"large/topics-{size}", "5.3/lenient",
        f"A TopicResponse with a field of {size} bytes that nobody knows is read.",
        ClientCase((list_topics().gives(topics=[{"id": 7, "name": "kit-topic"}]),), (
            on("list", Answer(body={"notes": "n" * size}, good=True)),), paired=False),
        quick=False, weight=2,
    )  # fmt: skip
add_case(
    "large/beyond-the-largest", "8.7/largest",
    "A record of more than 16 MiB is refused by the client itself.",
    ClientCase((send(b"small"), send(bytes(BEYOND_LARGEST)).refused())),
    quick=False, thorough=True, weight=4,
)  # fmt: skip

# -- wide values -----------------------------------------------------------------------------------


def _limits(age: int, size: int) -> Op:
    return Op("set_retention", {**set_retention().arguments, "max_age_secs": age,
                                "max_bytes": size})  # fmt: skip


ACK_BITS, ID_BITS = (8, 16, 24, 31, 33, 48, 56), (8, 16, 24, 31)
for bit in range(64):
    add_case(
        f"wide/ack-bit-{bit}", "4.2/batch-id",
        f"A batch is not acknowledged by an Ack whose id differs in bit {bit}.",
        ClientCase((ACK.op.safe(),), (on("ingest", Answer(header={"batch_id": Xor(1 << bit)})),)),
        quick=False, **more(bit, ACK_BITS, "wide/ack-bit-56"),
    )  # fmt: skip
for bit in range(4, 32):
    add_case(
        f"wide/topic-id-{bit}", "5.5/request",
        f"A topic whose id is 2^{bit} + 7 is asked for as it is.",
        ClientCase((get_topic(), get_topic((1 << bit) + 7).fails()),
                   checks=(asks("get", struct.pack("<I", (1 << bit) + 7), f"2^{bit} + 7",
                                some=True),), paired=False), quick=False,
        **more(bit, ID_BITS, "wide/topic-id-31"),
    )  # fmt: skip
    add_case(
        f"wide/another-topic-{bit}", "17.5/invalid-response",
        f"An answer about a topic whose id differs in bit {bit} is an error.",
        ClientCase((get_topic().fails(*NOT_LATE),),
                   (on("get", Answer(body={"id": 7 ^ 1 << bit}), nth=0),)), quick=False,
        **more(bit, ID_BITS, "wide/another-topic-31"),
    )  # fmt: skip
OFFSET_BITS, AGE_BITS = (16, 31, 32, 33, 53, 62, 63), (8, 16, 24, 31, 32, 33, 53, 62)
SIZE_BITS = (8, 16, 24, 31, 32, 33, 53, 62, 63)
for bit in range(7, 64):
    add_case(
        f"wide/offset-{bit}", "5.8/request", f"A Fetch from 2^{bit} + 1 asks for that offset.",
        ClientCase((list_topics(), fetch((1 << bit) + 1).safe()),
                   checks=(told("fetch", 4, struct.pack("<Q", (1 << bit) + 1),
                                f"2^{bit} + 1"),), paired=False), quick=False,
        **more(bit, OFFSET_BITS, "wide/offset-63"),
    )  # fmt: skip
for bit in range(64):
    add_case(
        f"wide/max-bytes-{bit}", "5.10/request", f"A limit of 2^{bit} + 1 bytes has that size.",
        ClientCase((_limits(1, (1 << bit) + 1),),
                   checks=(asks("retention", struct.pack("<IQQ", 7, 1, (1 << bit) + 1),
                                f"2^{bit} + 1 bytes"),), paired=False), quick=False,
        **more(bit, SIZE_BITS, "wide/max-bytes-62", alike=True),
    )  # fmt: skip
for bit in range(63):
    add_case(
        f"wide/max-age-{bit}", "5.10/request", f"A limit of 2^{bit} seconds has that age.",
        ClientCase((_limits(1 << bit, 1 << 20),),
                   checks=(asks("retention", struct.pack("<IQQ", 7, 1 << bit, 1 << 20),
                                f"2^{bit} seconds"),), paired=False), quick=False,
        **more(bit, AGE_BITS, "wide/max-age-31", alike=True),
    )  # fmt: skip

for size in NAMES:
    name = "n" * size
    for trigger, op, at in (
        ("create", create(name), 0),
        ("create-limited", create_limited(name), 2),
    ):
        request: Any = trigger
        add_case(
            f"large/{trigger}-of-{size}", f"5.{'3' if trigger == 'create' else '11'}/request",
            f"A topic is created under a name of {size} bytes, whole.",
            ClientCase((op.gives(id=8, name=name),),
                       checks=(told(request, at, name.encode(), f"a name of {size} bytes"),),
                       paired=False),
            quick=False,
        )  # fmt: skip
    named = [{"id": 1, "name": "n" * (size - 1) + "1"}, {"id": 2, "name": "n" * size}]
    add_case(
        f"large/names-{size}", "5.3/answer", f"A list has names of {size} bytes, too, whole.",
        ClientCase((list_topics().gives(topics=named),), (
            on("list", Answer(body={"topics": [{**each, "created_at": 1} for each in named]},
                              good=True)),)), quick=False,
    )  # fmt: skip

# -- many ------------------------------------------------------------------------------------------


def _topics(count: int, **more: int) -> list[dict[str, Any]]:
    return [{"id": n + 1, "name": f"topic-{n:04}", **more} for n in range(count)]


for number in MORE_NUMBERS:
    values = tuple(b"%d" % n for n in range(number))
    add_case(
        f"many/topics-{number}", "5.3/answer", f"A list of {number} topics has all of them.",
        ClientCase((list_topics().gives(topics=_topics(number)),), (
            on("list", Answer(body={"topics": _topics(number, created_at=1)}, good=True)),)),
        quick=False, **more(number, NUMBERS, "many/topics-1025"),
    )  # fmt: skip
    add_case(
        f"many/sends-{number}", "8.4/batch", f"{number} records in one batch go out as given.",
        ClientCase((send(*values),), checks=(_goes_out(*values),), paired=False), quick=False,
        **more(number, NUMBERS, "many/sends-1025"),
    )  # fmt: skip
    add_case(
        f"many/reads-{number}", "17.2/decoder", f"{number} records in one answer are read.",
        ClientCase((fetch().gives(
            records=[{"type": 1, "value": encoded(value)} for value in values]),),
            records=tuple((1, value) for value in values), paired=False), quick=False,
        **more(number, NUMBERS, "many/reads-1025"),
    )  # fmt: skip
add_case(
    f"many/sends-{WIDE}", "8.4/batch", f"{WIDE} records in one batch go out as given.",
    ClientCase((send_alike(b"", WIDE),), checks=(_goes_out(*(b"",) * WIDE),), paired=False),
    quick=False, weight=16,
)  # fmt: skip
add_case(
    f"many/topics-{MOST_TOPICS}", "5.3/answer", f"A list of {MOST_TOPICS} topics has all of them.",
    ClientCase((list_topics().gives(topics=_topics(MOST_TOPICS)),), (
        on("list", Answer(body={"topics": _topics(MOST_TOPICS, created_at=1)}, good=True)),),
        paired=False),
    quick=False, weight=4, twin_of="many/topics-1025",
)  # fmt: skip
ALIKE = (b"same",) * 3 + (b"other",) + (b"same",) * 2 + (b"",) * 3
add_case(
    "rec/reads-alike", "17.2/decoder", "Records that are like the one before are read, too.",
    ClientCase((fetch().gives(records=[{"type": 1, "value": encoded(value)} for value in ALIKE]),),
               records=tuple((1, value) for value in ALIKE), paired=False),
    quick=False,
)  # fmt: skip
add_case(
    "rec/sends-alike", "8.4/batch", "Records that are like the one before go out, too.",
    ClientCase((send(*ALIKE),), checks=(_goes_out(*ALIKE),), paired=False), quick=False,
)  # fmt: skip
add_case(
    f"many/reads-{WIDE}", "17.2/decoder", f"{WIDE} records in one answer are read.",
    ClientCase((list_topics(), fetch(0, 1 << 20).gives(**{"count:records": WIDE})),
               records=((1, b""),) * WIDE, paired=False),
    quick=False, weight=4, twin_of="many/reads-1025",
)  # fmt: skip
for number in MORE_HANDFULS:
    add_case(
        f"many/in-flight-{number}", "17.7/order",
        f"{number} batches that are sent at once arrive in order and are acknowledged.",
        ClientCase(
            (*(send_async(b"%d" % n) for n in range(number)),
             flush().gives(failed=[], **{"count:acked": number})),
            checks=(Order(tuple(records([b"%d" % n]) for n in range(number))),), paired=False),
        quick=False, weight=1 + number // 16, **more(number, HANDFULS, "many/in-flight-129"),
    )  # fmt: skip
    add_case(
        f"many/refused-{number}", "12.1/batch-errors",
        f"After {number} refused batches the next one is delivered.",
        ClientCase((*(ACK.op.fails("fatal"),) * number, send(b"last")),
                   tuple(on("ingest", REFUSAL, nth=n + 1) for n in range(number))),
        quick=False, weight=1 + number // 16, **more(number, HANDFULS, "many/refused-129"),
    )  # fmt: skip
    add_case(
        f"many/fetches-{number}", "17.8/offset", f"{number} Fetches bring what is there.",
        ClientCase((fetch().gives(records=ALL),) * number, paired=False), quick=False,
        weight=1 + number // 64, **more(number, HANDFULS, "many/fetches-129"),
    )  # fmt: skip

for number, size in ((65, 20_000), (17, 100_000)):
    large_ones = tuple(b"%03d" % n + bytes(size) for n in range(number))
    add_case(
        f"many/in-flight-{number}-of-{size}", "17.7/order",
        f"{number} batches of {size} bytes that are sent at once arrive and are acknowledged.",
        ClientCase(
            (*(send_async(value) for value in large_ones),
             flush().gives(failed=[], **{"count:acked": number})),
            checks=(Order(tuple(records([value]) for value in large_ones)),), paired=False,
            exact=True),
        quick=False, weight=4, twin_of="many/in-flight-129",
    )  # fmt: skip

for number in (129, 257, 513, 1_025):
    add_case(
        f"many/batches-{number}", "10.4/unique",
        f"{number} batches that are sent one after the other have ids of their own.",
        ClientCase(tuple(send(b"%d" % n) for n in range(number)), rule="batch-id-unique",
                   paired=False),
        quick=False, weight=1 + number // 16, **more(number, (129, 257), "many/batches-257"),
    )  # fmt: skip

# -- again -----------------------------------------------------------------------------------------

FIRST = {"id": 7, "name": "kit-topic"}
CHANGES: Mapping[str, tuple[str, Op, Op, Answer]] = {
    "list": ("5.3/answer", list_topics().gives(topics=[FIRST]),
             list_topics().gives(topics=_topics(2)),
             Answer(body={"topics": _topics(2, created_at=1)}, good=True)),
    "get": ("5.3/answer", get_topic().gives(**FIRST), get_topic().gives(id=7, name="another"),
            Answer(body={"name": "another"}, good=True)),
}  # fmt: skip
for trigger, (clause, first, then, answer) in CHANGES.items():
    what: Any = trigger
    add_case(
        f"again/{trigger}-changes", clause,
        f"The answer to {trigger} that is told is the one that came, not the one before.",
        ClientCase((first, then), (on(what, answer, nth=2),)), quick=False,
    )  # fmt: skip
    add_case(
        f"again/{trigger}-again", clause,
        f"The same answer to {trigger} is told in the same way five times.",
        ClientCase((first,) * 5, paired=False), quick=False,
    )  # fmt: skip
add_case(
    "again/fetch-again", "17.8/seek", "The same Fetch brings the same records five times.",
    ClientCase((fetch().gives(records=ALL),) * 5, paired=False), quick=False,
)  # fmt: skip
