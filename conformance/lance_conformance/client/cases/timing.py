"""Time: answers that are slow within an operation's time or over it, and connections at rest."""

from lance_conformance.client.cases.header import CARRIERS, Carrier
from lance_conformance.client.cases.reads import ALL
from lance_conformance.client.cases.registry import add_case
from lance_conformance.client.client_case import ClientCase
from lance_conformance.client.operations import TOPIC, Op, fetch, get_topic, list_topics, send, wait
from lance_conformance.client.scripted.script import Answer, Nothing, Pause, Say, Step, on
from lance_conformance.wire.control import KEEPALIVE

WITHIN, OVER = 0.4, 1.2
"""Parts of the time that an operation is given."""
EVERY_TEN = (-10,)
SEVERAL = 3
"""Operations that are slow one after the other: together they take longer than one may."""

RIGHT: dict[str, Op] = {
    "ack": send(b"one"), "topics": list_topics().gives(**{"count:topics": 1}),
    "fetched": fetch().gives(records=ALL),
}  # fmt: skip

NEXT: dict[str, Op] = {
    "ack": send(b"two"), "topics": get_topic().gives(**TOPIC),
    "fetched": fetch(13).gives(records=ALL[1:]),
}  # fmt: skip
"""What has an answer of the same kind, and another one."""
EACH = tuple(carrier.op for carrier in CARRIERS)


def _slow(carrier: Carrier, name: str, clause: str, title: str, *steps: Step, times: int) -> None:
    add_case(
        f"pace/{name}-{carrier.name}", clause, title,
        ClientCase((RIGHT[carrier.name],) * times, (on(carrier.trigger, *steps, nth=0),),
                   paired=False),
        quick=False,
    )  # fmt: skip


for carrier in CARRIERS:
    _slow(carrier, "late-within", "17.5/timeout",
          f"{carrier.beginning} that comes late, and in time, is taken.",
          Pause(WITHIN), Answer(), times=1)  # fmt: skip
    _slow(carrier, "several-late", "17.5/timeout",
          f"Each operation has its own time: {SEVERAL} in a row wait for {carrier.what}.",
          Pause(WITHIN), Answer(), times=SEVERAL)  # fmt: skip
    _slow(carrier, "in-pieces", "17.3/streaming",
          f"{carrier.beginning} that takes its time, piece by piece, is taken.",
          Answer(cuts=EVERY_TEN, spread=WITHIN), times=1)  # fmt: skip
    add_case(
        f"pace/too-late-{carrier.name}", "17.5/invalid-response",
        f"{carrier.beginning} that comes after its time is not taken for the next answer.",
        ClientCase(
            (carrier.op.safe(), NEXT[carrier.name]),
            (on(carrier.trigger, Pause(OVER), Answer()),),
        ),
        quick=False,
    )  # fmt: skip
    add_case(
        f"pace/keepalives-only-{carrier.name}", "17.5/timeout",
        f"Keepalives that come instead of {carrier.what} give it no more time.",
        ClientCase(
            (carrier.op.fails(),),
            (on(carrier.trigger, *(Say(KEEPALIVE), Pause(WITHIN)) * 12, Nothing(), nth=0),),
        ),
        quick=False,
    )  # fmt: skip
    add_case(
        f"pace/idle-{carrier.name}", "17.5/timeout",
        f"After a rest that is longer than an operation may take, {carrier.what} is asked for and "
        "taken.",
        ClientCase(
            (*EACH, wait(OVER), carrier.op),
            paired=False,
        ),
        quick=False,
    )  # fmt: skip
