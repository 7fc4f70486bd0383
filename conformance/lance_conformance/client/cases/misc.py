"""Backpressure, limits, time, tokens, TLS, and the rules for every frame."""

import json
from dataclasses import replace

from lance_conformance.client.cases.header import FAULTY_ANSWERS, NOT_LATE, TOPICS
from lance_conformance.client.cases.registry import BOTH, SPECIFIED, add_case
from lance_conformance.client.checks import Count, First, Same, Secret, Sent, StaysOn
from lance_conformance.client.client_case import ClientCase
from lance_conformance.client.operations import (
    commit,
    create,
    create_limited,
    delete_topic,
    fetch,
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
from lance_conformance.client.scripted.model import TOKEN
from lance_conformance.client.scripted.received_frame import ReceivedFrame
from lance_conformance.client.scripted.rules import rules
from lance_conformance.client.scripted.script import (
    BATCH,
    Answer,
    Close,
    Nothing,
    Refuse,
    Say,
    Stall,
    on,
)
from lance_conformance.wire.control import KEEPALIVE
from lance_conformance.wire.frame import Flag, Frame

ONE = send(b"one")
PRESSURE = Say(Frame(flags=Flag.BACKPRESSURE))
FIVE = tuple(send(b"%d" % n) for n in range(5))

# -- backpressure ----------------------------------------------------------------------------------

for name, steps, words in (
    ("before-ack", (PRESSURE, Answer()), "before an Ack"),
    ("behind-ack", (Answer(), PRESSURE), "after an Ack"),
    ("many", (Say(PRESSURE.frame, 500), Answer()), "five hundred times"),
):
    add_case(
        f"slow/{name}", "4.4/no-error",
        f"Backpressure that comes {words} is not an error, and sending goes on.",
        ClientCase(FIVE, (on("ingest", *steps),), (StaysOn(),), paired=False),
    )  # fmt: skip
add_case(
    "slow/every-ack", "4.4/no-error", "Backpressure with every Ack never stops a client for good.",
    ClientCase(FIVE, (on("ingest", PRESSURE, Answer(), nth=0),), (StaysOn(),), paired=False),
)  # fmt: skip
add_case(
    "slow/pipeline", "4.4/no-error",
    "A pipeline that meets Backpressure is delivered all the same.",
    ClientCase((*(send_async(b"%d" % n) for n in range(10)), flush().gives(failed=[])),
             (on("ingest", PRESSURE, Answer(), nth=3), on("ingest", PRESSURE, Answer(), nth=6)),
             (StaysOn(),), paired=False),
)  # fmt: skip
for faulty in FAULTY_ANSWERS[1:]:
    add_case(
        f"slow/before-{faulty.name}", "4.4/no-error",
        f"Backpressure before {faulty.what} is not its answer.",
        ClientCase((faulty.op,), (on(faulty.trigger, PRESSURE, Answer()),), paired=False),
    )  # fmt: skip
add_case(
    "slow/is-no-ack", "4.2/batch-id", "Backpressure acknowledges nothing.",
    ClientCase((ONE.safe(),), (on("ingest", PRESSURE),)),
)  # fmt: skip
add_case(
    "slow/refused-then-taken", "12.4/retriable",
    "A batch that is refused with Backpressure (0x31) three times is sent until it is taken.",
    ClientCase((ONE.safe("retriable", "timeout"),), tuple(
        on("ingest", Refuse(0x31, "Backpressure", {"batch_id": BATCH}), nth=n) for n in (1, 2, 3)),
        (Same("ingest", 1),)),
    dialects=SPECIFIED,
)  # fmt: skip

# -- limits and time -------------------------------------------------------------------------------

for faulty in FAULTY_ANSWERS:
    for place, upto in (("header", 20), ("payload", 50)):
        if upto == 20 or faulty.name != "ack":
            add_case(
                f"stall/in-{place}-{faulty.name}", "17.5/timeout",
                f"When {faulty.what} stops inside its {place}, the operation fails in time.",
                ClientCase((faulty.op.fails(),),
                         (on(faulty.trigger, Answer(upto=upto), Stall(), nth=0),)),
            )  # fmt: skip
    add_case(
        f"stall/at-once-{faulty.name}", "17.5/timeout",
        f"A server that accepts and says nothing makes an operation for {faulty.what} fail in "
        "time.",
        ClientCase((faulty.op.fails(),), (on("accept", Stall(), nth=0),)),
    )  # fmt: skip
for name, step, words in (
    ("keepalives", Say(KEEPALIVE, 500), "five hundred Keepalives"),
    ("acks", Say(Frame(flags=Flag.ACK, batch_id=0xDEAD), 500), "five hundred Acks of nothing"),
):
    add_case(
        f"stall/flood-of-{name}", "17.5/unexpected",
        f"{words[0].upper()}{words[1:]} before an answer neither stop nor hang an operation.",
        ClientCase((TOPICS.op.safe(*NOT_LATE), TOPICS.op), (on("list", step, Answer()),)),
    )  # fmt: skip
TOPICS_1000 = [{"id": n, "name": f"topic-{n}", "created_at": 1} for n in range(1, 1001)]
add_case(
    "stall/thousand-topics", "5.3/lenient", "A list of a thousand topics is read.",
    ClientCase((list_topics().gives(**{"count:topics": 1000}),), (on("list", Answer(
        payload=json.dumps({"topics": TOPICS_1000}).encode(), good=True)),), paired=False),
)  # fmt: skip
add_case(
    "stall/recovers", "17.5/timeout", "After an operation that ran out of time the next one works.",
    ClientCase((get_topic().fails(), list_topics()), (on("get", Nothing(), nth=0),)),
)  # fmt: skip
add_case(
    "stall/late-answer", "17.5/invalid-response",
    "An answer that comes too late is not taken for that of the next request.",
    ClientCase((list_topics(), create("kit-first").safe(),
              create("kit-second").safe().gives(name="kit-second")),
             (on("create", Answer(hold=True)),), paired=False),
)  # fmt: skip

# -- tokens ----------------------------------------------------------------------------------------

WITH_TOKEN = {"token": TOKEN}


def _presents(received: ReceivedFrame) -> str:
    right = received.frame.payload == TOKEN.encode()
    return "" if right else f"{len(received.frame.payload)} other bytes"


add_case(
    "pass/first", "5.2/token-first", "With a token, nothing comes before it is presented.",
    ClientCase((ONE, list_topics()), checks=(First("auth"), Count("auth", 1)), options=WITH_TOKEN,
             paired=False),
)  # fmt: skip
add_case(
    "pass/payload", "5.2/token-payload", "A token is presented as its bytes and nothing else.",
    ClientCase((ONE,), checks=(Sent("auth", _presents, "the token's bytes"),), options=WITH_TOKEN,
             paired=False),
)  # fmt: skip
add_case(
    "pass/waits", "5.2/token-first", "Nothing is sent until the token is accepted.",
    ClientCase((ONE.fails(),), (on("auth", Nothing(), nth=0),), (Count("ingest", 0, 0),),
             options=WITH_TOKEN),
)  # fmt: skip
REFUSED = Answer(payload=b"\x00Invalid token")
add_case(
    "pass/refused", "12.4/auth", "A token that is refused is told as auth.",
    ClientCase((ONE.fails("auth"),), (on("auth", REFUSED, nth=0),), (Count("ingest", 0, 0),),
             options=WITH_TOKEN),
)  # fmt: skip
add_case(
    "pass/error", "12.4/auth", "A token that an ErrorResponse refuses is told as auth.",
    ClientCase((ONE.fails("auth"),), (on("auth", Refuse(0x41, "Invalid token"), nth=0),),
             (Count("ingest", 0, 0),), options=WITH_TOKEN),
)  # fmt: skip
add_case(
    "pass/empty-answer", "5.2/token-payload",
    "An AuthenticateResponse without a payload lets nobody in.",
    ClientCase((ONE.fails(),), (on("auth", Answer(payload=b""), nth=0),), (Count("ingest", 0, 0),),
             options=WITH_TOKEN),
)  # fmt: skip
add_case(
    "pass/every-connection", "5.2/token-first", "Every connection presents the token again.",
    ClientCase((ONE, ONE.safe(), ONE.safe()), (on("ingest", Answer(), Close()),), (First("auth"),),
             options=WITH_TOKEN),
)  # fmt: skip
add_case(
    "pass/none", "5.2/token-payload", "Without a token nothing is presented.",
    ClientCase((ONE,), checks=(Count("auth", 0, 0),), paired=False),
)  # fmt: skip
add_case(
    "pass/secret", "5.2/token-secret", "An error never shows the token.",
    ClientCase((get_topic().fails(),),
               (on("get", Refuse(0x42, f"Access denied to {TOKEN}"), nth=0),),
               (Secret(TOKEN),), options=WITH_TOKEN),
)  # fmt: skip

# -- TLS -------------------------------------------------------------------------------------------

add_case(
    "cert/works", "7.3/works", "Over TLS everything works as without.",
    ClientCase((ONE, list_topics(), fetch()), tls="right", paired=False),
)  # fmt: skip
for name, words in (
    ("stranger", "that no trusted authority has issued"), ("other-name", "of another name"),
):  # fmt: skip
    add_case(
        f"cert/{name}", "7.3/verified", f"A server with a certificate {words} gets no frame.",
        ClientCase((list_topics().fails(),), checks=(Count("any", 0, 0),), tls=name),
    )  # fmt: skip

# -- rules for every frame -------------------------------------------------------------------------

EVERYTHING = (
    create(), create_limited("kit-limited"), list_topics(), get_topic(), send(b"one"),
    send(b"two", b"three"), send((0x80, b"four")), send_async(b"five"), send_async(b"six"),
    flush(), fetch(), subscribe(), poll(), commit(13), set_retention(), delete_topic(),
)  # fmt: skip
"""Everything that a client can be told, once."""
AS_FAR_AS_IT_GOES = tuple(replace(op, optional=op.name != "send") for op in EVERYTHING)
PROVOKED = (on("ingest", Answer(), Say(KEEPALIVE)),)
ONCE_MORE = (renew(), list_topics())
"""What the first client says at its end has come when the second one is answered."""
for rule in rules().values():
    add_case(
        f"wire/{rule.name}", rule.clause, rule.title,
        ClientCase(AS_FAR_AS_IT_GOES + ONCE_MORE * (rule.name == "unsubscribe"),
                 PROVOKED if rule.name == "keepalive-zero" else (),
                 rule=rule.name, paired=False),
        dialects=SPECIFIED if rule.name == "unsubscribe" else BOTH,
    )  # fmt: skip
