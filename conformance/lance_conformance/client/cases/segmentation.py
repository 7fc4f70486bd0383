"""Right answers, cut and glued in every way that TCP may."""

from lance_conformance.client.cases.header import ACK, FAULTY_ANSWERS, FETCHED, TOPICS
from lance_conformance.client.cases.registry import add_case, more
from lance_conformance.client.checks import StaysOn
from lance_conformance.client.client_case import RECORDS, ClientCase
from lance_conformance.client.operations import encoded, fetch, list_topics, send
from lance_conformance.client.scripted.script import Answer, Say, on
from lance_conformance.wire.control import KEEPALIVE
from lance_conformance.wire.frame import Flag, Frame

EVERY_FIVE = (-5,)
"""No field of a frame is five bytes long, so each of them is cut somewhere."""
CLAUSE = "17.3/streaming"
ALL = [{"type": kind, "value": encoded(value)} for kind, value in RECORDS]
PLACES = {
    1: "inside the magic bytes", 4: "before the version", 6: "before the reserved bytes",
    8: "before the header CRC", 12: "after the header CRC", 20: "after the batch id",
    32: "before the payload length", 34: "inside the payload length", 36: "before the payload CRC",
    43: "before the last byte of the header", 44: "between header and payload",
    45: "after the first byte of the payload", 60: "between FetchResponse header and data",
    62: "inside a record's length",
}  # fmt: skip
LAST = 150
"""The last byte of a FetchResponse with the records of a case, roughly."""

for place in range(1, LAST):
    words = PLACES.get(place, f"after byte {place}")
    add_case(
        f"piece/cut-at-{place}",
        CLAUSE,
        f"A FetchResponse that arrives in two pieces, cut {words}, is read like a whole one.",
        ClientCase(
            (fetch().gives(records=ALL),),
            (on("fetch", Answer(cuts=(place,))),),
            paired=False,
        ),
        quick=place in {1, 44, 60},
        **more(place, PLACES, "piece/cut-at-1"),
    )

for faulty in FAULTY_ANSWERS:
    stays = () if faulty is FETCHED else (StaysOn(),)  # a reader may end with what it has read
    add_case(
        f"piece/dribble-{faulty.name}",
        CLAUSE,
        f"{faulty.beginning} that arrives five bytes at a time is read like a whole one.",
        ClientCase(
            (faulty.op,), (on(faulty.trigger, Answer(cuts=EVERY_FIVE)),), stays, paired=False
        ),
    )
    add_case(
        f"piece/glued-behind-keepalive-{faulty.name}",
        CLAUSE,
        f"{faulty.beginning} in one piece with a Keepalive before it is read.",
        ClientCase(
            (faulty.op,),
            (on(faulty.trigger, Say(KEEPALIVE), Answer()),),
            stays,
            paired=False,
        ),
    )

add_case(
    "piece/glued-and-cut",
    CLAUSE,
    "A Keepalive and half a TopicResponse in one piece, and the other half, are two frames.",
    ClientCase(
        (TOPICS.op, TOPICS.op),
        (on("list", Answer(cuts=(30,))), on("list", Say(KEEPALIVE), Answer(cuts=(60,)), nth=2)),
        (StaysOn(),),
        paired=False,
    ),
)
add_case(
    "piece/three-in-one",
    CLAUSE,
    "Keepalive, Backpressure and Ack in one piece are three frames.",
    ClientCase(
        (ACK.op, send(b"two")),
        (on("ingest", Say(KEEPALIVE), Say(Frame(flags=Flag.BACKPRESSURE)), Answer()),),
        (StaysOn(),),
        paired=False,
    ),
)
add_case(
    "piece/next-request-after-dribble",
    CLAUSE,
    "After an answer that came five bytes at a time the next one is read, too.",
    ClientCase(
        (list_topics(), fetch().gives(records=ALL), send(b"one")),
        (on("list", Answer(cuts=EVERY_FIVE)), on("fetch", Answer(cuts=EVERY_FIVE))),
        paired=False,
    ),
)
for size in (1, 2, 3, 7, 11, 44, 45):
    for faulty in FAULTY_ANSWERS:
        add_case(
            f"piece/dribble-{size}-{faulty.name}", CLAUSE,
            f"{faulty.beginning} that arrives {size} bytes at a time is read like a whole one.",
            ClientCase((faulty.op, faulty.op), (on(faulty.trigger, Answer(cuts=(-size,)), nth=0),),
                       paired=False),
            quick=False, **more(size, (), "piece/dribble-ack"),
        )  # fmt: skip
