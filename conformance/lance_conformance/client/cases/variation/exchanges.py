"""Long exchanges: what a client is told to do is drawn, and every request and result is compared.

A client may be wrong for the fifth size after the ninth topic. Nobody thinks of that combination,
so these cases draw theirs. The same seed draws the same exchange everywhere.
"""

import random
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from lance_conformance.client.cases.codes import CODES, RETRIABLE
from lance_conformance.client.cases.disconnect import WAYS
from lance_conformance.client.cases.registry import BOTH, SPECIFIED, add_case
from lance_conformance.client.cases.variation.faults import faults_of
from lance_conformance.client.client_case import ClientCase
from lance_conformance.client.exact import BACK, CHANGES, LAST, NTH
from lance_conformance.client.operations import (
    Op,
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
    subscribe,
)
from lance_conformance.client.scripted.model import TOPIC_NAME
from lance_conformance.client.scripted.script import (
    BATCH,
    AckOf,
    Answer,
    Close,
    Refuse,
    Say,
    Step,
    Trigger,
    on,
)
from lance_conformance.wire.control import KEEPALIVE
from lance_conformance.wire.frame import Flag, Frame

Pairs = tuple[tuple[int, bytes], ...]
LENGTH, SHORT = 160, 100
"""Operations of an exchange; fewer where some of them wait for another connection."""
SEEDS = (1, 2, 3)
TOPIC_IDS = (7, 0x0102_0304, 0x8000_0001, 0xFEDC_BA00)
BASES = (0, 77, (1 << 32) - 300, (1 << 53) - 300, 0x0102_0304_0506_0708)
TYPES = (1, 1, 1, 2, 0x10, 0x10, 0x11, 0x12, 0x80, 0x99, 0xFE)
SIZES = (0, 1, 2, 5, 16, 44, 100, 127, 128, 255, 256, 257, 1_000, 1_460, 4_096, 5_000, 16_384)
LARGEST = max(SIZES) + 100
COUNTS = (1, 1, 1, 2, 3, 9, 40)
LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-"


@dataclass(slots=True)
class Draft:
    """What is drawn for one exchange, and what is known of the server at its end.

    Args:
        draw: The source of chance.
        topic_id: The id of the topic whose log it is.
        base: Where the log begins.

    Attributes:
        topics: Names by id.
        drawn: Names that were drawn.
        records: Records that were sent.
    """

    draw: random.Random
    topic_id: int
    base: int
    topics: dict[int, str] = field(default_factory=dict)
    drawn: int = 0
    records: int = 0

    def __post_init__(self) -> None:
        """Know of the topic that there is."""
        self.topics[self.topic_id] = TOPIC_NAME

    @property
    def topic(self) -> dict[str, Any]:
        """The topic that has the log."""
        return {"id": self.topic_id, "name": TOPIC_NAME}

    # -- topics ------------------------------------------------------------------------------------

    def creates(self) -> Iterator[Op]:
        """Create a topic, limited or not."""
        self.drawn += 1
        size = self.draw.choice((4, 9, 17, 33, 64, 100, 200, 255))
        name = f"{self.drawn}-"
        name += "".join(self.draw.choice(LETTERS) for _ in range(size - len(name)))
        self.topics[max(self.topics) + 1] = name
        if self.draw.random() < 0.5:
            yield create(name)
            return
        limits = {"max_age_secs": self._wide(63), "max_bytes": self._wide(63)}
        yield Op("create_topic", {**create_limited(name).arguments, **limits})

    def lists(self) -> Iterator[Op]:
        """List the topics."""
        yield list_topics()

    def gets(self) -> Iterator[Op]:
        """Ask about a topic."""
        yield get_topic(self.draw.choice([*self.topics]))

    def misses(self) -> Iterator[Op]:
        """Ask about a topic that is not there."""
        number = self._wide(32)
        if number not in self.topics:
            yield get_topic(number).fails("fatal")

    def limits(self) -> Iterator[Op]:
        """Limit a topic."""
        chosen = self.draw.choice([*self.topics])
        limits = {"max_age_secs": self._wide(63), "max_bytes": self._wide(63)}
        yield Op("set_retention", {"topic_id": chosen, **limits})

    def deletes(self) -> Iterator[Op]:
        """Delete a topic, but not the one with the log, nor the newest one."""
        others = sorted(self.topics.keys() - {self.topic_id, max(self.topics)})
        if others:
            chosen = self.draw.choice(others)
            del self.topics[chosen]
            yield Op(delete_topic().name, {"topic_id": chosen})

    def _wide(self, bits: int) -> int:
        return self.draw.getrandbits(self.draw.randrange(2, bits + 1))

    # -- records -----------------------------------------------------------------------------------

    def batch(self) -> Pairs:
        """Records that nobody has sent before."""
        count = self.draw.choice(COUNTS)
        sizes = SIZES if count < 10 else SIZES[:9]
        pairs = [self._record(self.draw.choice(TYPES), self.draw.choice(sizes))
                 for _ in range(count)]  # fmt: skip
        pairs[0] = 1, b"%d:" % self.records + pairs[0][1]
        self.records += count
        return tuple(pairs)

    def _record(self, kind: int, size: int) -> tuple[int, bytes]:
        """A record whose value has the form of its type."""
        text, value = f'{{"n": {self.draw.getrandbits(16)}}}', self._value(size)
        time, key = self._value(8), b"key-%d" % self.draw.getrandbits(16)
        keyed = struct.pack("<H", len(key)) + key + value
        forms = {0x02: text.encode(), 0x10: keyed, 0x11: time + value, 0x12: time + keyed}
        return kind, forms.get(kind, value)

    def _value(self, size: int) -> bytes:
        return self.draw.getrandbits(8 * size).to_bytes(size, "little") if size else b""

    def sends(self) -> Iterator[Op]:
        """Send a batch, and wait."""
        yield self._about(send(*self.batch()))

    def pipelines(self) -> Iterator[Op]:
        """Send batches, and wait for all of them."""
        count = self.draw.randrange(2, 8)
        for _ in range(count):
            yield self._about(send_async(*self.batch()))
        yield flush().gives(failed=[], **{"count:acked": count})

    def fetches(self) -> Iterator[Op]:
        """Fetch from where a record begins."""
        most = LARGEST + self.draw.getrandbits(self.draw.randrange(1, 18))
        yield self._about(fetch(NTH - self.draw.randrange(self.records + 1), most))

    def _about(self, op: Op) -> Op:
        return replace(op, arguments={**op.arguments, "topic": self.topic})

    # -- a subscription ----------------------------------------------------------------------------

    def polls(self) -> Iterator[Op]:
        """Read what the subscription has not read yet."""
        yield replace(poll(), if_news=True)

    def commits(self) -> Iterator[Op]:
        """Commit the end of a record that was read: the last one, or one of those before."""
        yield commit(BACK - self.draw.choice((0, 0, 0, 1, 2, 9)))

    def subscribes(self) -> Iterator[Op]:
        """Begin to follow, from the end of a record on."""
        most = LARGEST + self.draw.getrandbits(16)
        yield self._about(subscribe(LAST, most, f"c-{self.records}"))

    def begins_again(self) -> Iterator[Op]:
        """Go on with another client, which follows, too."""
        yield renew()
        yield from self.subscribes()


Action = Callable[[Draft], Iterator[Op]]
TOPICS: tuple[Action, ...] = (
    Draft.creates, Draft.creates, Draft.lists, Draft.gets, Draft.gets, Draft.misses, Draft.limits,
    Draft.deletes,
)  # fmt: skip
DATA: tuple[Action, ...] = (Draft.sends, Draft.sends, Draft.pipelines, Draft.fetches)
FOLLOW: tuple[Action, ...] = (
    Draft.sends, Draft.polls, Draft.polls, Draft.polls, Draft.commits, Draft.pipelines,
)  # fmt: skip
ABOUT: Mapping[str, tuple[str, tuple[Action, ...]]] = {
    "topics": ("topics", TOPICS), "data": ("batches and Fetches", DATA),
    "follow": ("a subscription", FOLLOW),
    "all": ("everything", (*TOPICS, *DATA, *FOLLOW, *FOLLOW, Draft.begins_again)),
}  # fmt: skip
DRAINS = 200
"""Polls at the end, for what was not read until then."""


def drawn(name: str, seed: int, length: int = LENGTH) -> tuple[Draft, list[Op]]:
    """The operations of an exchange, and what is known of the server."""
    draw = random.Random(f"{name} {seed}")  # noqa: S311 - drawn, not secret
    draft = Draft(draw, draw.choice(TOPIC_IDS), draw.choice(BASES))
    actions = ABOUT[name][1]
    ops = [list_topics(), *draft.sends()]
    follows = Draft.polls in actions
    if follows:
        ops += draft.subscribes()
    while len(ops) < length:
        ops += draw.choice(actions)(draft)
    if follows:
        ops += [*draft.polls()] * DRAINS
    return draft, ops


# -- with a server that does everything right ------------------------------------------------------


def _add(
    name: str, clause: str, title: str, drawn: tuple[Draft, list[Op]], dialects: tuple[str, ...]
) -> None:  # fmt: skip
    draft, ops = drawn
    case_id = f"drawn/{name}"
    whole = tuple(replace(op, optional=op.name not in {"send", "list_topics"}) for op in ops)
    add_case(
        case_id, clause, title,
        ClientCase(whole, records=(), topic_id=draft.topic_id, base=draft.base, paired=False,
                   exact=True),
        dialects=dialects, quick=False, weight=3, thorough=not name.endswith(f"-{SEEDS[0]}"),
        twin_of=None if case_id == FIRST else FIRST,
    )  # fmt: skip


FIRST = "drawn/topics-1"
"""All of them are one family: each is failed by most clients that are wrong in what it is about."""
for name, (words, _) in ABOUT.items():
    for seed in SEEDS:
        _add(f"{name}-{seed}", "17.8/offset" if name != "topics" else "5.3/answer",
             f"A long exchange about {words} goes as it must: each request, result and record.",
             drawn(name, seed), BOTH)  # fmt: skip

# -- with what a client must bear ------------------------------------------------------------------

TRIGGERS: Mapping[str, Trigger] = {
    "list_topics": "list", "get_topic": "get", "delete_topic": "delete",
    "set_retention": "retention", "send": "ingest", "send_async": "ingest", "fetch": "fetch",
    "commit": "commit",
}  # fmt: skip


def _trigger(op: Op) -> Trigger | None:
    if op.name == "create_topic":
        return "create-limited" if "max_bytes" in op.arguments else "create"
    return TRIGGERS.get(op.name)


def _bystanders(draw: random.Random) -> Iterator[Step]:
    """What may come before an answer."""
    for _ in range(draw.randrange(3)):
        yield draw.choice((
            Say(KEEPALIVE, draw.choice((1, 2, 5, 93))), AckOf(1),
            Say(Frame(flags=Flag.BACKPRESSURE), draw.choice((1, 2, 5))),
        ))  # fmt: skip


def _disturbed(op: Op, draw: random.Random) -> list[Op]:
    """Its answer comes in pieces, after other frames, or with fields that nobody knows."""
    what = _trigger(op)
    if what is None:
        return [op]
    short = ((-44,), (-100,)) if what not in {"fetch", "list"} else ()
    cuts = draw.choice(((), (draw.randrange(1, 60),), (-1_000,), (-1_460,), *short))
    body: dict[str, Any] | None = None
    if what in {"list", "get", "create", "create-limited"} and draw.random() < 0.5:
        body = {f"x-{draw.randrange(9)}": draw.choice((None, 2**63, "n" * 500, [{"id": 9}], 1.5)),
                "created_at": draw.getrandbits(40)}  # fmt: skip
    answer = Answer(cuts=cuts, body=body, good=body is not None)
    return [op.during(on(what, *_bystanders(draw), answer, nth=0))]


# -- refusals --------------------------------------------------------------------------------------

FEW, SOME, MANY = 0.07, 0.18, 0.3
"""The part of operations that something is done to."""
FOR_GOOD = tuple(code for code, (_, kinds) in CODES.items() if kinds != RETRIABLE)


def _refused(op: Op, draw: random.Random) -> list[Op]:
    """The server refuses it, for now or for good; what changes something is done afterwards."""
    what = _trigger(op)
    if what is None or op.want.error or op.name == "send_async" or draw.random() > MANY:
        return [op]
    changes = what in CHANGES - {"ingest"}
    code = draw.choice(FOR_GOOD if changes else [*CODES])
    name, kinds = CODES[code]
    details = {"batch_id": BATCH} if what == "ingest" else {"unknown": [1, {"x": None}]}
    refusal = Refuse(code, f"{name} of {draw.getrandbits(30)}", details)
    if kinds == RETRIABLE:
        return [op.safe(*kinds).during(on(what, refusal))]
    again = changes or what == "ingest"
    return [op.fails(*kinds).during(on(what, refusal, nth=0)), *[op] * again]


# -- losses and faults -----------------------------------------------------------------------------


def _lost(op: Op, draw: random.Random) -> list[Op]:
    """The connection ends in place of an answer, inside it, or after it."""
    what, end = _trigger(op), Close(draw.choice(WAYS))
    lost = replace(op, want=replace(op.want, error=True, kinds=(), result={}))
    if what is None or draw.random() > FEW:
        return [lost]
    steps: tuple[Step, ...] = draw.choice((
        (end,), (Answer(upto=draw.randrange(1, 44)), end), (Answer(), end),
        (Say(KEEPALIVE), end),
    ))  # fmt: skip
    return [lost.during(*(on(what, *steps, nth=nth) for nth in range(1, draw.randrange(2, 4))))]


def _faulty(op: Op, draw: random.Random) -> list[Op]:
    """Its answer has a fault, and is not believed."""
    what = _trigger(op)
    doubted = replace(op, want=replace(op.want, error=True, kinds=(), result={}))
    if what is None or draw.random() > SOME:
        return [doubted]
    return [doubted.during(on(what, draw.choice(faults_of(what))))]


Trouble = Callable[[Op, random.Random], list[Op]]
TROUBLES: Mapping[str, tuple[str, str, Trouble, tuple[str, ...]]] = {
    "disturbed": ("4.3/apart", "in pieces and beside other frames", _disturbed, BOTH),
    "refused": ("12.4/data", "with refusals of every code in between", _refused, SPECIFIED),
    "lost": ("17.8/offset", "over connections that end", _lost, BOTH),
    "faulty": ("17.5/invalid-response", "with answers in between that are wrong", _faulty, BOTH),
}  # fmt: skip
"""Clause, words, what is done to an operation, and dialects, by name."""

for trouble, (clause, words, change, dialects) in TROUBLES.items():
    for name, (about, _) in ABOUT.items():
        for seed in SEEDS:
            length = LENGTH if change in {_disturbed, _refused} else SHORT
            draft, ops = drawn(name, 100 + seed, length)
            draw = random.Random(f"{trouble} {name} {seed}")  # noqa: S311 - drawn, not secret
            changed = [ops[0], *(each for op in ops[1:] for each in change(op, draw))]
            _add(f"{trouble}-{name}-{seed}", clause,
                 f"A long exchange about {about}, {words}, goes as it must.",
                 (draft, changed), dialects)  # fmt: skip
