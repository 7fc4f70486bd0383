"""What is done again: flushes, subscriptions, commits, equal batches, losses and gaps."""

import struct

from lance_conformance.client.cases.acks import REFUSAL
from lance_conformance.client.cases.reads import LOG, ONE, VALUES
from lance_conformance.client.cases.registry import SPECIFIED, add_case
from lance_conformance.client.cases.variation.widths import told
from lance_conformance.client.checks import ConsumerNumbers, Count, Reads, Sent
from lance_conformance.client.client_case import ClientCase
from lance_conformance.client.operations import (
    commit,
    create,
    delete_topic,
    flush,
    get_topic,
    list_topics,
    poll,
    renew,
    send,
    send_async,
    set_retention,
    subscribe,
)
from lance_conformance.client.scripted.model import fetch_payload
from lance_conformance.client.scripted.received_frame import ReceivedFrame
from lance_conformance.client.scripted.script import Answer, Close, Refuse, on
from lance_conformance.wire.frame import Flag
from lance_conformance.wire.tlv import boundaries, record

HANDFULS = (9, 17)
FAR = 100
"""An offset beyond a gap."""


# -- flushes ---------------------------------------------------------------------------------------

NOTHING = flush().gives(acked=[], failed=[])
add_case(
    "again/flush-nothing", "17.7/acks", "A flush without a batch before it tells of none.",
    ClientCase((NOTHING, send_async(b"one"), flush().gives(failed=[], **{"count:acked": 1}),
                NOTHING), paired=False), quick=False,
)  # fmt: skip
for number in HANDFULS:
    add_case(
        f"again/flushes-{number}", "17.7/acks",
        f"Each of {number} flushes tells of the batches since the one before.",
        ClientCase(
            tuple(op for n in range(number) for op in (
                send_async(b"a%d" % n), send_async(b"b%d" % n),
                flush().gives(failed=[], **{"count:acked": 2}))),
            checks=(Count("ingest", 2 * number, 2 * number),), paired=False),
        quick=False, weight=2,
    )  # fmt: skip
add_case(
    "again/flush-after-refusal", "12.1/batch-errors",
    "A batch that was refused is told by one flush, not by the next.",
    ClientCase(
        (send_async(b"one"), flush().gives(acked=[], **{"count:failed": 1}), NOTHING,
         send_async(b"two"), flush().gives(failed=[], **{"count:acked": 1})),
        (on("ingest", REFUSAL),), paired=False),
    quick=False,
)  # fmt: skip
add_case(
    "again/flush-after-loss", "17.7/acks",
    "A flush whose connection was lost tells each batch since the one before, acknowledged or "
    "failed, and the next one tells of none.",
    ClientCase(
        (send_async(b"one"), flush().gives(failed=[], **{"count:acked": 1}),
         send_async(b"two"), send_async(b"three"), flush(), NOTHING),
        (on("ingest", Close(), nth=2),), paired=False),
    quick=False,
)  # fmt: skip

# -- equal batches ---------------------------------------------------------------------------------


def _own_id(received: ReceivedFrame) -> str:
    before = [each.frame.batch_id for each in received.before if each.frame.flags & Flag.BATCH_MODE]
    twice = received.frame.batch_id in before
    return f"the id {received.frame.batch_id:#x} of the batch before" if twice else ""


for number in (2, 9):
    add_case(
        f"again/same-content-{number}", "10.4/unique",
        f"The same records sent {number} times are as many batches.",
        ClientCase((send(b"same"),) * number, checks=(
            Count("ingest", number, number), Sent("ingest", _own_id, "an id of its own")),
            paired=False),
        quick=False,
    )  # fmt: skip
add_case(
    "again/same-after-refusal", "10.4/unique",
    "Records that were refused and are sent again by the caller are a batch of their own.",
    ClientCase(
        (send(b"same").fails("fatal"), send(b"same")), (on("ingest", REFUSAL),),
        (Count("ingest", 2, 2), Sent("ingest", _own_id, "an id of its own")),
    ),
    quick=False,
)  # fmt: skip

# -- subscriptions and commits ---------------------------------------------------------------------

add_case(
    "again/poll-nothing", "17.8/offset", "After polls that brought nothing, news are read.",
    ClientCase((subscribe(), poll(), poll().gives(records=[]), send(b"news"), poll(),
                poll().gives(records=[])),
               checks=(Reads((*VALUES, b"news")),), paired=False),
    quick=False, weight=2,
)  # fmt: skip
for number in HANDFULS:
    given = tuple((1, b"record %d" % n) for n in range(number))
    ends = boundaries(b"".join(record(value) for _, value in given))[1:]
    add_case(
        f"again/commits-{number}", "5.14/request", f"Each of {number} commits goes out as it is.",
        ClientCase(
            (subscribe(), poll(), *(commit(end) for end in ends)),
            checks=(*(told("commit", 12, struct.pack("<Q", end), f"offset {end}")
                      for end in (ends[0], ends[1], ends[-1])), Count("commit", number, number)),
            records=given, paired=False),
        quick=False, weight=2,
    )  # fmt: skip
    add_case(
        f"again/polls-{number}", "17.8/offset",
        f"What is stored between {number} polls is read, each once.",
        ClientCase((subscribe(len(LOG)), *(op for n in range(number)
                                           for op in (send(b"%d" % n), poll()))),
                   checks=(Reads(tuple(b"%d" % n for n in range(number))),), paired=False),
        quick=False, weight=2,
    )  # fmt: skip
for how, names in (
    ("again", ("first", "second", "first")),
    ("nine", tuple(f"consumer-{n}" for n in range(9))),
):
    add_case(
        f"again/consumers-{how}", "5.12/consumer",
        f"{len(set(names))} consumers of clients that follow each other have numbers of their own.",
        ClientCase(
            tuple(op for name in names
                  for op in (subscribe(consumer=name), poll(), commit(ONE), renew())),
            checks=(ConsumerNumbers(names),), paired=False),
        quick=False, weight=2,
    )  # fmt: skip
for place, words in ((0, "at the beginning"), (1, "after records")):
    before = fetch_payload(0, LOG[: place * ONE])
    after = fetch_payload(FAR, LOG[:ONE])
    gap = Answer(payload=struct.pack("<QII", FAR, 0, 0), good=True)
    answers = (*((Answer(payload=before, good=True),) * place), gap,
               Answer(payload=after, good=True))  # fmt: skip
    add_case(
        f"follow/over-a-gap-{place}", "5.9/gap",
        f"A client that follows by Fetch goes on after a gap {words}.",
        ClientCase(
            (list_topics(), subscribe(), *(poll().safe(),) * (3 + place)),
            tuple(on("fetch", answer, nth=n) for n, answer in enumerate(answers, 1)),
            (told("fetch", 4, struct.pack("<Q", FAR), f"offset {FAR}", "subscribe"),),
            paired=False,
        ),
        weight=2, quick=False,
    )  # fmt: skip

# -- losses ----------------------------------------------------------------------------------------

for number in HANDFULS:
    add_case(
        f"again/losses-{number}", "17.6/reconnect",
        f"The server ends {number} connections after their answer; a new one is made each time.",
        ClientCase((list_topics(),) * number, (on("list", Answer(), Close(), nth=0),),
                   paired=False),
        quick=False, weight=2,
    )  # fmt: skip

# -- one topic, done again -------------------------------------------------------------------------

add_case(
    "again/get-after-delete", "17.5/error-ends",
    "A topic that was told before and is deleted is not found.",
    ClientCase((get_topic(), delete_topic(), get_topic().fails()), paired=False), quick=False,
)  # fmt: skip
add_case(
    "again/create-taken", "17.5/error-ends", "A name that is taken fails the second time.",
    ClientCase((create(), create().fails(), list_topics()), paired=False),
    dialects=SPECIFIED, quick=False,
)  # fmt: skip
add_case(
    "again/retention", "5.10/request", "The same limits are set as often as they are asked for.",
    ClientCase((set_retention(),) * 3, checks=(Count("retention", 3, 3),), paired=False),
    quick=False,
)  # fmt: skip
add_case(
    "again/delete-refused", "17.5/error-ends",
    "A topic whose deletion was refused is deleted when it is asked for again.",
    ClientCase((delete_topic().fails(), delete_topic()),
               (on("delete", Refuse(0x60, "Internal error")),), paired=False),
    quick=False,
)  # fmt: skip
