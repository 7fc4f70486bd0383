"""Connections that end, at every step, and what a client makes of it."""

from lance_conformance.client.cases.header import ACK, FAULTY_ANSWERS, FETCHED, NOT_LATE, TOPICS
from lance_conformance.client.cases.registry import add_case, more
from lance_conformance.client.checks import Count
from lance_conformance.client.client_case import ClientCase
from lance_conformance.client.operations import flush, send_async
from lance_conformance.client.scripted.script import Answer, Close, How, on

WAYS: tuple[How, ...] = ("fin", "rst")
MOST_ATTEMPTS = 12
"""Connections that a client may make while one operation lasts."""

for how in WAYS:
    for faulty in FAULTY_ANSWERS:
        places = {"before": (None, f"instead of {faulty.what}"),
                  "in-header": (20, f"inside the header of {faulty.what}")}  # fmt: skip
        if faulty is not ACK:
            places["in-payload"] = (50, f"inside the payload of {faulty.what}")
        for place, (upto, words) in places.items():
            steps = (Close(how),) if upto is None else (Answer(upto=upto), Close(how))
            add_case(
                f"loss/{how}-{place}-{faulty.name}", "17.5/connection-closed",
                f"When the connection ends ({how.upper()}) {words}, the operation does not wait "
                "until its time is over.",
                ClientCase((faulty.op.safe(*NOT_LATE),), (on(faulty.trigger, *steps),)),
                quick=how == "fin",
            )  # fmt: skip
        add_case(
            f"loss/{how}-then-{faulty.name}", "17.6/reconnect",
            f"After a connection has ended ({how.upper()}), the next operation makes another.",
            ClientCase((faulty.op, faulty.op), (on(faulty.trigger, Answer(), Close(how)),),
                     paired=False),
        )  # fmt: skip
    add_case(
        f"loss/{how}-at-once", "17.6/reconnect",
        f"A server that ends the first connection at once ({how.upper()}) is tried again.",
        ClientCase((ACK.op,), (on("accept", Close(how)),), paired=False),
    )  # fmt: skip
    add_case(
        f"loss/{how}-always", "17.5/connection-closed",
        f"A server that ends every connection at once ({how.upper()}) makes operations fail.",
        ClientCase((TOPICS.op.fails(),), (on("accept", Close(how), nth=0),)),
    )  # fmt: skip
    add_case(
        f"loss/{how}-backoff", "17.6/backoff",
        f"A server that ends every connection at once ({how.upper()}) is not hammered.",
        ClientCase((ACK.op.fails(),), (on("accept", Close(how), nth=0),),
                 (Count("accept", 1, MOST_ATTEMPTS),)),
    )  # fmt: skip
for faulty in (ACK, TOPICS, FETCHED):
    add_case(
        f"loss/nobody-listens-{faulty.name}", "17.5/refused",
        "Where nobody listens, operations fail in time.",
        ClientCase((faulty.op.fails("closed", "timeout", "retriable"),), listens=False),
    )  # fmt: skip
add_case(
    "loss/delivery-goes-on",
    "17.6/delivery",
    "Five connections that end one after the other delay what is sent, and lose nothing.",
    ClientCase(
        (*(send_async(b"%d" % n) for n in range(4)), flush().gives(failed=[])),
        tuple(on("ingest", Close(WAYS[nth % 2]), nth=nth) for nth in (1, 2, 3)),
        paired=False,
    ),
)
for cut in range(1, 44):
    for how in WAYS:
        faulty = FAULTY_ANSWERS[cut % 3]
        add_case(
            f"loss/{how}-after-{cut}-{faulty.name}", "17.5/connection-closed",
            f"When the connection ends ({how.upper()}) after {cut} bytes of {faulty.what}, the "
            "operation does not wait until its time is over.",
            ClientCase((faulty.op.safe(*NOT_LATE),),
                       (on(faulty.trigger, Answer(upto=cut), Close(how)),)),
            quick=False, **more(cut, (), "loss/fin-before-ack"),
        )  # fmt: skip
