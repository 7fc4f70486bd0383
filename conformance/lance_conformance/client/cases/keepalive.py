"""Keepalives: answered, never in a storm, and never in the way."""

from lance_conformance.client.cases.header import FAULTY_ANSWERS, NOT_LATE
from lance_conformance.client.cases.registry import add_case
from lance_conformance.client.checks import After, KeptAlive, Settles
from lance_conformance.client.client_case import ClientCase
from lance_conformance.client.operations import (
    flush,
    list_topics,
    poll,
    send,
    send_async,
    subscribe,
    wait,
)
from lance_conformance.client.scripted.script import Answer, Pause, Say, Stall, on
from lance_conformance.wire.control import KEEPALIVE

MANY = tuple(send(b"%d" % number) for number in range(8))
MOST = 6
"""Keepalives on one connection: some of the client's own, and one answer a second."""

add_case(
    "beat/answers",
    "17.3/answers-keepalive",
    "A Keepalive that answers none of the client's own is answered with a Keepalive.",
    ClientCase(
        (send(b"one"),),
        (on("ingest", Answer(), Say(KEEPALIVE)),),
        (After("keepalive", "ingest"),),
    ),
)
add_case(
    "beat/answers-before-ack",
    "17.3/answers-keepalive",
    "A Keepalive that comes before an Ack is answered.",
    ClientCase(
        (send(b"one"),),
        (on("ingest", Say(KEEPALIVE), Answer()),),
        (After("keepalive", "ingest"),),
    ),
)
add_case(
    "beat/answers-again",
    "17.3/answers-keepalive",
    "A second Keepalive that comes some seconds later is answered, too.",
    ClientCase(
        (send(b"one"),),
        (on("ingest", Answer(), Say(KEEPALIVE), Pause(0.9), Say(KEEPALIVE)),),
        (After("keepalive", "ingest", at_least=2),),
        paired=False,
    ),
    quick=False,
    weight=4,
)
add_case(
    "beat/no-ping-pong",
    "4.3/no-ping-pong",
    "A server that answers every Keepalive and a client that answers every Keepalive do not keep "
    "each other busy.",
    ClientCase(MANY, (on("ingest", Say(KEEPALIVE), Answer()),), (Settles("keepalive", MOST),)),
)
add_case(
    "beat/burst",
    "4.3/no-ping-pong",
    "A hundred Keepalives at once are not answered by a hundred.",
    ClientCase(MANY, (on("ingest", Say(KEEPALIVE, 100), Answer()),), (Settles("keepalive", MOST),)),
)
for faulty in FAULTY_ANSWERS:
    add_case(
        f"beat/silence-{faulty.name}",
        "17.5/timeout",
        f"When {faulty.what} does not come and nothing else does, the operation fails in time.",
        ClientCase((faulty.op.fails(),), (on(faulty.trigger, Stall(), nth=0),)),
    )
add_case(
    "beat/between-acks",
    "4.3/apart",
    "Keepalives between Acks do not disturb them.",
    ClientCase(
        (send_async(b"one"), send_async(b"two"), send_async(b"three"), flush().gives(failed=[])),
        (on("ingest", Say(KEEPALIVE), Answer(), Say(KEEPALIVE), nth=0),),
        paired=False,
    ),
)
add_case(
    "beat/first-bytes",
    "4.3/apart",
    "A server that begins with a Keepalive is served like any other.",
    ClientCase(
        (send(b"one").safe(*NOT_LATE), list_topics()), (on("accept", Say(KEEPALIVE)),),
        paired=False,
    ),
)  # fmt: skip
add_case(
    "beat/own-beats", "2.3/client-keepalive",
    "A client that sends and follows keeps each connection alive that it has open.",
    ClientCase((send(b"one"), subscribe(), poll(), list_topics(), wait()),
               checks=(KeptAlive(),), options={"keepalive": 0.05}, paired=False),
    quick=False,
)  # fmt: skip
add_case(
    "beat/own-beat",
    "2.3/client-keepalive",
    "A client that has nothing to say sends a Keepalive now and then.",
    ClientCase(
        (send(b"one"), wait()),
        checks=(After("keepalive", "ingest", at_least=2),),
        options={"keepalive": 0.05},
        paired=False,
    ),
)
