"""What each connection must have again: tokens, TLS, Keepalives, and times that go on."""

from dataclasses import dataclass, replace

from lance_conformance.client.cases.misc import WITH_TOKEN
from lance_conformance.client.cases.push import END
from lance_conformance.client.cases.reads import ALL, VALUES
from lance_conformance.client.cases.registry import SPECIFIED, add_case
from lance_conformance.client.checks import After, Count, First, Reads
from lance_conformance.client.client_case import ClientCase
from lance_conformance.client.operations import (
    encoded,
    fetch,
    get_topic,
    list_topics,
    poll,
    send,
    subscribe,
    wait,
)
from lance_conformance.client.scripted.script import Answer, Close, Pause, Say, on
from lance_conformance.client.scripted.server import ScriptedServer
from lance_conformance.engine.failures import Failure
from lance_conformance.wire.control import KEEPALIVE
from lance_conformance.wire.frame import Flag, Frame

NEWS = replace(poll(), if_news=True)
SIZES = (16_500, 70_000, 1_300_000)

# -- tokens ----------------------------------------------------------------------------------------

add_case(
    "pass/follows", "5.2/token-first", "A token comes first on the connection that follows, too.",
    ClientCase((send(b"one"), subscribe(END), send(b"two"), poll(), fetch()),
               checks=(First("auth"), Count("auth", 1)), options=WITH_TOKEN, paired=False),
    dialects=SPECIFIED, quick=False,
)  # fmt: skip
for name, words, steps in (
    ("pieces", "that comes byte by byte", (Answer(cuts=(-1,)),)),
    ("text", "with a sentence after it",
     (Answer(payload=b"\x01Welcome, kit", good=True),)),
    ("after-keepalive", "after a Keepalive", (Say(KEEPALIVE), Answer())),
    ("after-backpressure", "after a Backpressure", (Say(Frame(flags=Flag.BACKPRESSURE)), Answer())),
    ("slow", "that takes its time", (Pause(0.3), Answer())),
):  # fmt: skip
    add_case(
        f"pass/admitted-{name}", "5.2/token-payload", f"An admission {words} lets in.",
        ClientCase((send(b"one"), list_topics()), (on("auth", *steps, nth=0),), (First("auth"),),
                   options=WITH_TOKEN, paired=False),
        quick=False, twin_of="pass/payload",
    )  # fmt: skip
add_case(
    "pass/nine-connections", "5.2/token-first", "Each of nine connections presents the token.",
    ClientCase((send(b"one"), *(get_topic().safe(),) * 9),
               (on("get", Answer(), Close(), nth=0),), (First("auth"),), options=WITH_TOKEN,
               paired=False),
    quick=False, weight=2, twin_of="pass/every-connection",
)  # fmt: skip

# -- TLS -------------------------------------------------------------------------------------------

for size in SIZES:
    value = bytes(n % 251 for n in range(size))
    add_case(
        f"cert/large-{size}", "7.3/works", f"A record of {size} bytes goes and comes over TLS.",
        ClientCase(
            (list_topics(), send(value),
             fetch(0, size + 64).gives(records=[{"type": 1, "value": encoded(value)}])),
            records=(), tls="right", paired=False, exact=True),
        quick=False, weight=4 if size > 1 << 20 else 2, twin_of="cert/works",
    )  # fmt: skip
add_case(
    "cert/follows", "7.3/works", "Following works over TLS as without.",
    ClientCase((subscribe(), poll(), send(b"news"), NEWS, NEWS), tls="right", paired=False,
               checks=(Reads((*VALUES, b"news")),), exact=True),
    quick=False, weight=2, twin_of="cert/works",
)  # fmt: skip
add_case(
    "cert/pieces", "7.3/works", "An answer in many TLS records is one answer.",
    ClientCase((list_topics(), fetch().gives(records=ALL), get_topic()),
               (on("fetch", Answer(cuts=(-3,)), nth=0), on("get", Answer(cuts=(-1,)))),
               tls="right", paired=False),
    quick=False, weight=2, twin_of="cert/works",
)  # fmt: skip
add_case(
    "cert/goes-on", "17.6/reconnect", "Connections over TLS that end are made again.",
    ClientCase((list_topics(), list_topics(), send(b"one")), (on("list", Answer(), Close()),),
               tls="right", paired=False),
    quick=False, weight=2, twin_of="cert/works",
)  # fmt: skip

# -- Keepalives and times --------------------------------------------------------------------------

for number in (5, 9):
    add_case(
        f"beat/own-beats-{number}", "2.3/client-keepalive",
        f"A client that has nothing to say sends {number} Keepalives, one after the other.",
        ClientCase((send(b"one"), wait()), checks=(After("keepalive", "ingest", number),),
                   options={"keepalive": 0.05}, paired=False),
        quick=False, weight=2, twin_of="beat/own-beat",
    )  # fmt: skip
APART = 0.5
"""Parts of the time of an operation between two batches."""


@dataclass(frozen=True, slots=True)
class TimesGoOn:
    """The timestamps of batches are as far apart as the batches were."""

    async def judge(self, server: ScriptedServer, _deadline: float) -> None:
        """Compare the first with the last."""
        stamps = [each.frame.timestamp_ns for each in server.frames("ingest")]
        apart = (stamps[-1] - stamps[0]) / 1e9 if stamps else 0.0
        least = APART / 2 * server.operation
        if apart < least:
            raise Failure(
                "field:timestamp", f"timestamps are {apart:.3f} s apart, must be {least:.3f} s",
                expected=(f"{least:.3f} s or more",), received=f"{apart:.3f} s",
            )  # fmt: skip


add_case(
    "ack/timestamps-go-on", "4.1/timestamp", "Each batch says when it was made itself.",
    ClientCase((send(b"one"), wait(APART), send(b"two")), checks=(TimesGoOn(),), paired=False),
    dialects=SPECIFIED, quick=False,
)  # fmt: skip
