"""Subscribe, push and commit."""

import struct

from lance_conformance.client.cases.header import NOT_LATE, SOON
from lance_conformance.client.cases.reads import LOG, ONE, VALUES
from lance_conformance.client.cases.registry import SPECIFIED, add_case
from lance_conformance.client.checks import Closes, Reads, Sent
from lance_conformance.client.client_case import ClientCase
from lance_conformance.client.operations import commit, list_topics, poll, send, subscribe
from lance_conformance.client.scripted.received_frame import ReceivedFrame
from lance_conformance.client.scripted.script import Answer, Close, Pause, Push, Refuse, on

END = len(LOG)
BAD = ("protocol", "fatal", "closed")


def _commits(offset: int) -> Sent:
    def holds(received: ReceivedFrame) -> str:
        topic, consumer, told = struct.unpack("<IQQ", received.frame.payload.ljust(20, b"\0")[:20])
        right = (topic, told) == (7, offset) and consumer != 0
        return "" if right else f"topic {topic}, consumer {consumer}, offset {told}"

    return Sent("commit", holds, f"topic 7, a consumer that is not 0, offset {offset}")


def _subscribes(received: ReceivedFrame) -> str:
    topic, _, most, consumer = struct.unpack("<IQIQ", received.frame.payload.ljust(24, b"\0")[:24])
    right = topic == 7 and most and consumer
    return "" if right else f"topic {topic}, at most {most} bytes, consumer {consumer}"


add_case(
    "follow/all", "17.8/offset", "Following a topic gives all its records, in order.",
    ClientCase((subscribe(), poll()), checks=(Reads(VALUES),), paired=False),
)  # fmt: skip
add_case(
    "follow/news", "17.8/offset", "What arrives while a client follows is read, too.",
    ClientCase((subscribe(), poll(), send(b"news"), poll()),
             checks=(Reads((*VALUES, b"news")),), paired=False),
)  # fmt: skip
add_case(
    "follow/request", "5.12/request",
    "A Subscribe has the topic, a size and a consumer that is not 0; Fetch does in its place.",
    ClientCase((subscribe(END), poll()), checks=(
        Sent("subscribe", _subscribes, "topic 7, a size and a consumer", instead="fetch"),),
        paired=False),
    dialects=SPECIFIED,
)  # fmt: skip
add_case(
    "follow/another-topic", "5.12/push",
    "A push of another topic's records is not handed on.",
    ClientCase(
        (list_topics(), subscribe(END), poll().safe(), send(b"news").safe(), poll().safe()),
        (on("subscribe", Answer(), Push(LOG[:ONE], END, topic=99)),),
        (Reads((b"news",)),),
        paired=False,
    ),
    dialects=SPECIFIED,
)  # fmt: skip
for name, words, answer in (
    ("another-consumer", "for another consumer", Answer(payload=struct.pack("<QQ", 4, END))),
    ("short", "of 8 bytes", Answer(payload=bytes(8))),
    ("empty", "without a payload", Answer(payload=b"")),
):
    add_case(
        f"follow/subscribe-ack-{name}", "5.12/ack",
        f"A SubscribeAck {words} is not believed: its connection is closed.",
        ClientCase((list_topics(), subscribe(END).safe(*BAD), poll().safe(*BAD)),
                 (on("subscribe", answer),), (Closes(),), paired=False),
        dialects=SPECIFIED,
    )  # fmt: skip
for how in ("fin", "rst"):
    add_case(
        f"follow/goes-on-after-{how}",
        "17.8/resume",
        f"When the connection is lost ({how.upper()}), following goes on where it stopped.",
        ClientCase(
            (subscribe(), poll(), send(b"news").safe(), poll().safe(), poll().safe()),
            (on("ingest", Answer(), Close(how)),),
            (Reads((*VALUES, b"news")),),
            paired=False,
        ),
    )  # fmt: skip
    add_case(
        f"follow/own-connection-{how}", "17.8/resume",
        f"When the connection that brought the records is lost ({how.upper()}), following goes on "
        "after them.",
        ClientCase(
            (subscribe(), poll(), poll().safe(), send(b"news").safe(), poll().safe(),
             poll().safe()),
            (on("subscribe", Answer(), Pause(SOON), Close(how)),
             on("fetch", Answer(), Pause(SOON), Close(how))),
            (Reads((*VALUES, b"news")),), paired=False,
        ),
        dialects=SPECIFIED, weight=2,
    )  # fmt: skip
add_case(
    "follow/goes-on-after-refusal", "17.8/offset",
    "Where a client follows a topic by Fetch, it goes on after one that is refused for now.",
    ClientCase(
        (list_topics(), subscribe(), poll().safe(), poll().safe(), poll().safe()),
        (on("fetch", Refuse(0x62, "Resource exhausted")),), (Reads(VALUES),), paired=False,
    ),
    dialects=SPECIFIED, weight=2,
)  # fmt: skip

# -- commit ----------------------------------------------------------------------------------------

add_case(
    "follow/commit-request", "5.14/request",
    "A CommitOffset has the topic, a consumer that is not 0, and the offset.",
    ClientCase((subscribe(), poll(), commit(2 * ONE)), checks=(_commits(2 * ONE),), paired=False),
)  # fmt: skip
for name, words, answer in (
    ("another-offset", "of another offset", Answer(payload=struct.pack("<QQ", 1, 999))),
    ("short", "of 8 bytes", Answer(payload=bytes(8))),
    ("empty", "without a payload", Answer(payload=b"")),
):
    add_case(
        f"follow/commit-ack-{name}", "5.14/ack", f"A CommitAck {words} is an error.",
        ClientCase((subscribe(), poll(), commit(ONE).fails(*BAD)), (on("commit", answer, nth=0),)),
    )  # fmt: skip
add_case(
    "follow/commit-by-another", "17.5/unexpected",
    "A CommitOffset that a SubscribeAck answers fails.",
    ClientCase((subscribe(), poll(), commit(ONE).fails()),
             (on("commit", Answer(header={"batch_id": 0x23}), nth=0),)),
)  # fmt: skip
add_case(
    "follow/commit-refused", "17.5/error-ends", "A CommitOffset that is refused fails.",
    ClientCase((subscribe(), poll(), commit(ONE).fails(*NOT_LATE)),
             (on("commit", Refuse(0x52, "Invalid consumer"), nth=0),)),
)  # fmt: skip
