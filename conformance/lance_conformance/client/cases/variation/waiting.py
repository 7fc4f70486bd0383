"""Time: answers that are slow within an operation's time or over it, and connections at rest."""

from lance_conformance.client.cases.header import FAULTY_ANSWERS, FaultyAnswer
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
EACH = tuple(faulty.op for faulty in FAULTY_ANSWERS)


def _slow(
    faulty: FaultyAnswer, name: str, clause: str, title: str, *steps: Step, times: int
) -> None:
    add_case(
        f"pace/{name}-{faulty.name}", clause, title,
        ClientCase((RIGHT[faulty.name],) * times, (on(faulty.trigger, *steps, nth=0),),
                   paired=False),
        quick=False,
    )  # fmt: skip


for faulty in FAULTY_ANSWERS:
    _slow(faulty, "late-within", "17.5/timeout",
          f"{faulty.beginning} that comes late, and in time, is taken.",
          Pause(WITHIN), Answer(), times=1)  # fmt: skip
    _slow(faulty, "several-late", "17.5/timeout",
          f"Each operation has its own time: {SEVERAL} in a row wait for {faulty.what}.",
          Pause(WITHIN), Answer(), times=SEVERAL)  # fmt: skip
    _slow(faulty, "in-pieces", "17.3/streaming",
          f"{faulty.beginning} that takes its time, piece by piece, is taken.",
          Answer(cuts=EVERY_TEN, spread=WITHIN), times=1)  # fmt: skip
    add_case(
        f"pace/too-late-{faulty.name}", "17.5/invalid-response",
        f"{faulty.beginning} that comes after its time is not taken for the next answer.",
        ClientCase(
            (faulty.op.safe(), NEXT[faulty.name]),
            (on(faulty.trigger, Pause(OVER), Answer()),),
        ),
        quick=False,
    )  # fmt: skip
    add_case(
        f"pace/keepalives-only-{faulty.name}", "17.5/timeout",
        f"Keepalives that come instead of {faulty.what} give it no more time.",
        ClientCase(
            (faulty.op.fails(),),
            (on(faulty.trigger, *(Say(KEEPALIVE), Pause(WITHIN)) * 12, Nothing(), nth=0),),
        ),
        quick=False,
    )  # fmt: skip
    add_case(
        f"pace/idle-{faulty.name}", "17.5/timeout",
        f"After a rest that is longer than an operation may take, {faulty.what} is asked for and "
        "taken.",
        ClientCase(
            (*EACH, wait(OVER), faulty.op),
            paired=False,
        ),
        quick=False,
    )  # fmt: skip
