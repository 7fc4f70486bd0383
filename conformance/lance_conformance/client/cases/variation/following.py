"""Subscriptions again: their own connection, large and many pushes, bits of numbers, losses."""

import struct
from dataclasses import replace

from lance_conformance.client.cases.header import SOON
from lance_conformance.client.cases.push import BAD, END
from lance_conformance.client.cases.reads import LOG, ONE, VALUES
from lance_conformance.client.cases.registry import SPECIFIED, add_case
from lance_conformance.client.cases.variation.interleaving import bystanders
from lance_conformance.client.cases.variation.widths import has_bytes, told
from lance_conformance.client.checks import Closes, Count, KeptAlive, OneOf, Reads
from lance_conformance.client.client_case import ClientCase
from lance_conformance.client.operations import commit, list_topics, poll, send, subscribe, wait
from lance_conformance.client.scripted.model import TOPIC_ID, push
from lance_conformance.client.scripted.script import Answer, Close, Pause, Push, Say, on
from lance_conformance.wire.control import KEEPALIVE
from lance_conformance.wire.tlv import record

FOLLOWS = ("subscribe", "fetch")
NEWS = (send(b"news").safe(), poll().safe())
BITS = (0, 8, 31, 32, 53, 63)
PUSHES = (17, 65, 257)
LARGE = (300, 5_000, 70_000, 1_300_000)
LOSSES = (2, 3)

# -- what a push is, and what it is not ------------------------------------------------------------

add_case(
    "follow/pushed-again", "17.8/offset", "Records that are pushed a second time come once.",
    ClientCase(
        (list_topics(), subscribe(), poll().safe(), wait(2 * SOON), *NEWS,
         poll(len(VALUES) + 1).safe()),
        (on("subscribe", Answer(), Pause(SOON), Push(LOG, 0, TOPIC_ID)),),
        (Reads((*VALUES, b"news")),), paired=False),
    dialects=SPECIFIED, quick=False, weight=2,
)  # fmt: skip
for bit in (8, 16, 24, 31):
    add_case(
        f"wide/push-topic-{bit}", "5.12/push",
        f"A push of a topic whose id differs in bit {bit} is not handed on.",
        ClientCase(
            (list_topics(), subscribe(END), wait(SOON), *NEWS, poll(1).safe()),
            (on("subscribe", Answer(), Push(LOG[:ONE], END, topic=TOPIC_ID ^ 1 << bit)),),
            (Reads((b"news",)),), paired=False),
        dialects=SPECIFIED, quick=False, twin_of="follow/another-topic",
    )  # fmt: skip
for bit in BITS:
    for what, at in (("consumer", 0), ("offset", 64)):
        add_case(
            f"wide/commit-ack-{what}-{bit}", "5.14/ack",
            f"A CommitAck whose {what} differs in bit {bit} is an error.",
            ClientCase((subscribe(), poll(), commit(ONE).fails(*BAD)),
                       (on("commit", Answer(flipped=(at + bit,)), nth=0),)),
            quick=False, twin_of="follow/commit-ack-another-offset",
        )  # fmt: skip
    add_case(
        f"wide/subscribe-ack-{bit}", "5.12/ack",
        f"A SubscribeAck whose consumer differs in bit {bit} is not believed.",
        ClientCase((list_topics(), subscribe(END).safe(*BAD), poll().safe(*BAD)),
                   (on("subscribe", Answer(flipped=(bit,))),), (Closes(),), paired=False),
        dialects=SPECIFIED, quick=False, twin_of="follow/subscribe-ack-another-consumer",
    )  # fmt: skip

# -- large and many --------------------------------------------------------------------------------

for number in PUSHES:
    values = tuple(b"record %04d" % n for n in range(number))
    add_case(
        f"many/pushes-{number}", "17.8/offset",
        f"{number} records that come one by one to who follows are all read, in order.",
        ClientCase(
            (subscribe(max_bytes=len(record(values[0]))), *(poll(enough=number),) * number),
            checks=(Reads(values),), records=tuple((1, value) for value in values), paired=False),
        quick=False, weight=1 + number // 16, twin_of="many/pushes-17",
    )  # fmt: skip
for number in (129, 1_025):
    values = tuple(b"record %04d" % n for n in range(number))
    add_case(
        f"many/follows-{number}", "17.8/offset",
        f"{number} records that come at once to who follows are all read, in order.",
        ClientCase((subscribe(), *(poll(enough=number),) * 4), checks=(Reads(values),),
                   records=tuple((1, value) for value in values), paired=False, exact=True),
        quick=False, weight=2, twin_of="many/reads-1025",
    )  # fmt: skip
for number in (2, 9):
    same, news = (b"same", b"same", b""), replace(poll(), if_news=True)
    add_case(
        f"again/follows-same-{number}", "17.8/offset",
        f"{number} batches of the same records are read as often, by who follows.",
        ClientCase(
            (list_topics(), subscribe(END), *(send(*same), news) * number, *(news,) * number),
            checks=(Reads(same * number),), paired=False, exact=True),
        quick=False, weight=2, twin_of="again/polls-9",
    )  # fmt: skip
for size in LARGE:
    value = bytes(n % 251 for n in range(size))
    weight = 4 if size == max(LARGE) else 1
    add_case(
        f"large/follows-{size}", "17.2/decoder",
        f"A record of {size} bytes is read whole by who follows.",
        ClientCase((list_topics(), subscribe(END, size + 64), send(value), poll()),
                   checks=(Reads((value,)),), paired=False),
        quick=False, weight=weight,
    )  # fmt: skip
    if size != max(LARGE):
        pushed = push(END, record(value), TOPIC_ID)
        add_case(
            f"large/push-crc-{size}", "9.4/checked",
            f"What a push of more than {size} bytes with a wrong payload CRC brings is not handed "
            "on.",
            ClientCase(
                (list_topics(), subscribe(END), wait(2 * SOON), *NEWS, poll(1).safe()),
                (on("subscribe", Answer(), Pause(SOON),
                    Say(replace(pushed, payload_crc=0x1234_5678))),),
                (Reads((b"news",)),), paired=False),
            dialects=SPECIFIED, quick=False, weight=2, twin_of="large/push-crc-300",
        )  # fmt: skip
for bit in (8, 16, 20):
    most = (1 << bit) + 1
    add_case(
        f"wide/subscribe-size-{bit}", "5.12/request",
        f"Who follows by 2^{bit} + 1 bytes asks for as many.",
        ClientCase((list_topics(), subscribe(0, most), poll()),
                   checks=(OneOf(FOLLOWS, has_bytes(12, struct.pack("<I", most)),
                                 f"2^{bit} + 1 bytes"),), paired=False),
        quick=False,
    )  # fmt: skip

# -- what comes in between -------------------------------------------------------------------------

for number in (1, 9, 65):
    for name, (clause, words, step) in bystanders(number).items():
        if name != "old-ack":
            add_case(
                f"between/{name}-{number}-push", clause,
                f"{words} before a push end no subscription.",
                ClientCase(
                    (list_topics(), subscribe(END), wait(2 * SOON), *NEWS, poll(1).safe()),
                    (on("subscribe", Answer(), Pause(SOON), step),),
                    (Reads((b"news",)),), paired=False),
                dialects=SPECIFIED, quick=False, weight=2,
            )  # fmt: skip
add_case(
    "beat/answers-everywhere", "17.3/answers-keepalive",
    "A Keepalive is answered on each connection, on that of a subscription, too.",
    ClientCase((send(b"one"), subscribe(), poll(), list_topics()), (on("accept", Say(KEEPALIVE),
               nth=0),), (KeptAlive(1),), paired=False),
    quick=False,
)  # fmt: skip

# -- pieces ----------------------------------------------------------------------------------------

for size in (1, 7, 44, 59):
    add_case(
        f"piece/follows-{size}", "17.3/streaming",
        f"What comes {size} bytes at a time to who follows is read, in order.",
        ClientCase(
            (list_topics(), subscribe(0, 2 * ONE), *(poll(len(VALUES)),) * 4),
            (on("subscribe", Answer(cuts=(-size,)), nth=0),
             on("fetch", Answer(cuts=(-size,)), nth=0)),
            (Reads(VALUES),), paired=False),
        quick=False, weight=2, twin_of="piece/dribble-ack",
    )  # fmt: skip

# -- losses ----------------------------------------------------------------------------------------

for number in LOSSES:
    ends = (Answer(), Pause(SOON), Close())
    add_case(
        f"again/follow-losses-{number}", "17.8/resume",
        f"When {number} connections of a subscription end, one after the other, it goes on.",
        ClientCase(
            (list_topics(), subscribe(), poll(),
             *(op for n in range(number)
               for op in (wait(4 * SOON), send(b"%d" % n).safe(), poll().safe()))),
            tuple(on("subscribe", *ends, nth=nth) for nth in range(1, number + 1)),
            (Reads((*VALUES, *(b"%d" % n for n in range(number)))),), paired=False),
        dialects=SPECIFIED, quick=False, weight=2 + number,
    )  # fmt: skip
add_case(
    "follow/goes-on-after-commit", "17.8/resume",
    "A subscription goes on where it stopped, not where its consumer committed.",
    ClientCase(
        (list_topics(), subscribe(), poll(), commit(ONE), wait(0.6), *NEWS,
         poll(len(VALUES) + 1).safe()),
        (on("subscribe", Answer(), Pause(0.5), Close()),),
        (Reads((*VALUES, b"news")),), paired=False),
    dialects=SPECIFIED, quick=False, weight=2, twin_of="follow/own-connection-fin",
)  # fmt: skip
for bit in (16, 31, 32, 53, 62):
    base = 1 << bit
    add_case(
        f"wide/resume-{bit}", "17.8/resume",
        f"A subscription that was lost after 2^{bit} goes on there.",
        ClientCase(
            (list_topics(), subscribe(base), poll(), wait(2 * SOON), *NEWS,
             poll(len(VALUES) + 1).safe()),
            (on("subscribe", Answer(), Pause(SOON), Close()),),
            (Reads((*VALUES, b"news")),), base=base, paired=False),
        dialects=SPECIFIED, quick=False, weight=2, twin_of="wide/resume-16",
    )  # fmt: skip

# -- commits ---------------------------------------------------------------------------------------

for name, words, offsets in (
    ("nothing", "offset 0", (0,)), ("back", "an offset before the one before", (2 * ONE, ONE)),
):  # fmt: skip
    add_case(
        f"follow/commits-{name}", "5.14/request", f"A commit of {words} goes out as it is.",
        ClientCase(
            (subscribe(), poll(), *(commit(offset) for offset in offsets)),
            checks=(told("commit", 12, struct.pack("<Q", offsets[-1]), f"offset {offsets[-1]}"),
                    Count("commit", len(offsets), len(offsets))),
            paired=False),
        quick=False,
    )  # fmt: skip
