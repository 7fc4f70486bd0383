"""What happens in a run: a list of operations, some of which are faults.

A plan is made from a seed. Half of all plans follow a template: a fault inside an operation, the
same operation again, a merge, a restart. Uniform faults do not find what needs two unlikely things
in a row.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from random import Random
from typing import Final

from tests.simulation.faults import CHANGING, ERRORS, READING, STOPS, Echo
from tests.simulation.plan import Plan, PlanWriter
from tests.simulation.world import Pace

_ANY_ERROR: Final = (*ERRORS, "EIO", "EIO", "ENOSPC")
MODES: Final = (
    "fsync", "wal", "os", "fsync, inline", "wal, inline", "wal, mixed", "wal, drawn, inline",
    "wal, drawn, inline",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Settings:
    """How the store of a run is set up.

    Attributes:
        mode: a durability; ``inline``: a lone batch is flushed by the loop's thread; ``mixed``:
            some commits are too large for the write-ahead log; ``drawn``: the way of each topic
            is drawn, and the log is made only when a commit asks for it.
        kind: how the disk commits, see `Mount`.
        segment_size: bytes after which a segment is closed.
        wal_size: bytes of a file of the write-ahead log.
        merge: segments that are merged, at least; 0 for none.
        open_segments: segments kept open for reading.
        pace: how often threads are interrupted.
    """

    mode: str = "fsync"
    kind: str = "dsync"
    segment_size: int = 400
    wal_size: int = 1024
    merge: int = 2
    open_segments: int = 8
    pace: Pace = field(default_factory=Pace)


class StorePlan(Plan[Settings]):
    """What happens to a store."""


class _Writer(PlanWriter):
    """Writes the operations of a plan."""

    # Pieces ----------------------------------------------------------------------------------

    def append(self, topic: int | None = None, count: int | None = None) -> None:
        random = self.random
        for _ in range(count or random.randint(1, 4)):
            self.add(
                "append",
                topic=random.randrange(3) if topic is None else topic,
                records=random.choice((1, 1, 2, 3)),
                size=random.choice((10, 30, 90, 200)),
            )

    def small_segments(self, topic: int) -> None:
        for _ in range(self.random.randint(2, 5)):
            self.append(topic, self.random.randint(1, 2))
            self.add("settle")
            self.add("roll", topic=topic)
            self.add("settle")

    def fault(
        self, methods: tuple[str, ...] = ("*", *CHANGING), reach: int = 12, *, again: bool = False
    ) -> None:
        random = self.random
        method = random.choice(methods)
        nth = random.randrange(reach if method == "*" else 3)
        self._fault(method, "*", nth)
        if not again and random.random() < 0.3:
            self.fault(again=True)

    def fault_at(self, places: tuple[tuple[str, str], ...]) -> None:
        """Plan a fault, or two, at one of some calls."""
        random = self.random
        for _ in range(random.choice((1, 1, 1, 2))):
            method, place = random.choice(places)
            self._fault(method, place, random.choice((0, 0, 0, 1, 1, 2, 3, 5)))

    def _fault(self, method: str, place: str, nth: int) -> None:
        random = self.random
        times = random.choice((1, 1, 1, 2, 4, 30))
        error = random.choice(_ANY_ERROR)
        self.add(
            "fault",
            method=method,
            place=place,
            nth=nth,
            error=error,
            after=random.random() < 0.3,
            times=times,
            echoes=self._echoes(error),
        )

    def _echoes(self, error: str) -> tuple[Echo, ...]:
        """Return what hits the steps that undo the one which failed, perhaps."""
        random = self.random
        count = random.choice((0, 0, 0, 1, 1, 2, 3))
        return tuple(
            Echo(
                random.choice((0, 0, 0, 1, 1, 2, 3, random.randrange(14))),
                random.choice(
                    (error, error, error, random.choice(_ANY_ERROR), random.choice(STOPS))
                ),
                random.random() < 0.3,
            )
            for _ in range(count)
        )

    def stop_at(self) -> None:
        """End the process or the machine at some call to come."""
        random = self.random
        error = random.choice(("kill", "power"))
        after = random.random() < 0.5
        self.add("fault", method="*", place="*", nth=random.randrange(40), error=error, after=after)

    def restart(self) -> None:
        random = self.random
        ways = {
            "stop": 3, "kill": 2, "power": 3, "kill power": 1, "kill start power": 2, "backup": 1,
        }  # fmt: skip
        for word in random.choices(list(ways), list(ways.values()))[0].split():
            self.add(word)
        if random.random() < 0.3:
            self.add(random.choice(("repair", "reindex", "verify", "verify")))
        self.add("start")

    def upkeep(self, topic: int) -> None:
        self.add("upkeep", topic=topic)

    def any(self) -> None:
        """Add something."""
        random = self.random
        topic = random.randrange(3)
        chances: dict[Callable[[], None], int] = {
            self.append: 30,
            lambda: self.add("resend", back=random.randrange(6)): 4,
            lambda: self.add("settle"): 6,
            lambda: self.add("wait", seconds=random.choice((0.01, 1.0, 40.0))): 2,
            lambda: self.add("roll", topic=topic): 6,
            lambda: self.upkeep(topic): 8,
            lambda: self.add("fetch", topic=topic, share=random.random()): 5,
            lambda: self.add("seek", topic=topic, share=random.random()): 2,
            lambda: self.add("commit", topic=topic, consumer=random.randrange(3)): 4,
            lambda: self.add("create", name=random.randrange(4)): 3,
            lambda: self.add("delete", topic=topic): 1,
            lambda: self.add("retention", topic=topic, size=random.choice((0, 0, 2000)), age=0): 2,
            self.restart: 3,
        }
        random.choices(list(chances), list(chances.values()))[0]()


def _begun(random: Random) -> _Writer:
    writer = _Writer(random)
    writer.add("start")
    for name in range(random.randint(1, 3)):
        writer.add("create", name=name)
    writer.add("settle")
    writer.append()
    return writer


def _any(random: Random) -> _Writer:
    writer = _begun(random)
    trouble = random.choice((0.0, 0.02, 0.05, 0.1))
    for _ in range(random.randint(20, 80)):
        if random.random() < trouble:
            random.choice(
                (
                    writer.fault,
                    writer.stop_at,
                    lambda: writer.add("fill", room=random.randrange(3000)),
                    lambda: writer.add("heal"),
                    lambda: writer.add("heal"),
                    lambda: writer.add("read_only"),
                    lambda: writer.fault(READING),
                )
            )()
        writer.any()
    return writer


def _save(writer: _Writer, topic: int) -> None:
    writer.add("retention", topic=topic, size=0, age=writer.random.choice((10**6, 10**7)))


def _roll(writer: _Writer, topic: int) -> None:
    writer.add("roll", topic=topic)
    for _ in range(writer.random.choice((1, 2, 3))):  # each tries to begin a segment
        writer.append(topic, 1)
        writer.add("settle")


def _retire(writer: _Writer, topic: int) -> None:
    writer.add("retention", topic=topic, size=300, age=0)
    writer.upkeep(topic)


def _delete(writer: _Writer, topic: int) -> None:
    writer.append(topic, 2)
    writer.add("delete", topic=topic)


def _merge(writer: _Writer, topic: int) -> None:
    for _ in range(writer.random.choice((1, 1, 2, 3))):
        writer.upkeep(topic)
        writer.add("settle")


def _close(writer: _Writer, topic: int) -> None:
    writer.append(topic, 1)
    writer.add("stop")
    writer.add("start")


def _start(writer: _Writer, topic: int) -> None:
    writer.append(topic, 1)
    writer.add(writer.random.choice(("kill", "power")))
    writer.add("start")


INSIDE: Final[dict[str, Callable[[_Writer, int], None]]] = {
    "append": lambda writer, topic: writer.append(topic, 2),
    "save": _save,
    "roll": _roll,
    "merge": _merge,
    "retire": _retire,
    "create": lambda writer, _: writer.add("create", name=3),
    "delete": _delete,
    "commit": lambda writer, topic: writer.add("commit", topic=topic, consumer=0),
    "recycle": lambda writer, _: writer.append(None, writer.random.randint(3, 12)),
    "close": _close,
    "start": _start,
}
"""Steps of the store that faults are planned inside of."""
_SAVING: Final = (
    ("create", "draft"), ("write", "draft"), ("sync", "draft"), ("rename", "draft"),
    ("sync_dir", "folder"),
)  # fmt: skip
_REMOVING: Final = (("remove", "*"), ("rename", "sidecar"))
_FOCUS: Final[dict[str, tuple[tuple[str, str], ...]]] = {
    "append": (("commit", "data"), ("commit", "sidecar"), ("write", "wal"), ("sync", "wal")),
    "save": _SAVING,
    "roll": (
        ("rename", "data"),
        ("sync_dir", "folder"),
        ("create", "sidecar"),
        ("commit", "data"),
        ("commit", "sidecar"),
        *_SAVING,
    ),
    "merge": (("remove", "*"), ("read_into", "*"), ("sync_dir", "folder"), *_SAVING),
    "retire": (*_REMOVING, *_SAVING),
    "create": (("make_dir", "folder"), *_SAVING),
    "delete": (("close", "*"), ("rename", "folder"), ("remove", "*"), *_SAVING),
    "commit": _SAVING,
    "recycle": (("write", "wal"), ("sync", "wal"), ("sync", "data"), ("sync", "sidecar")),
    "close": (("rename", "data"), ("sync", "*"), ("remove", "clean"), *_SAVING),
    "start": (("*", "*"), ("open", "*"), ("read_into", "*"), ("list_dir", "*"), *_SAVING),
}
"""The calls that these steps stand on."""


def _template(name: str) -> Callable[[Random], _Writer]:
    def write(random: Random) -> _Writer:
        writer = _begun(random)
        topic = random.randrange(3)
        for _ in range(random.randint(1, 2)):
            writer.small_segments(topic)
            if random.random() < 0.5:
                writer.append()
            if random.random() < 0.5:
                writer.fault_at(_FOCUS[name])
            else:
                writer.fault(("*", "*", *CHANGING))
            INSIDE[name](writer, topic)
            writer.add("settle")
            writer.add("heal")
            following = random.choice((_lose_power_soon, _stop_soon, _go_on, _go_on))
            following(writer, name, topic)
        return writer

    return write


def _stop_soon(writer: _Writer, _: str, topic: int) -> None:
    """Stop before anything is written again, or see that everything can be."""
    writer.add(writer.random.choice(("probe", "probe", "kill", "power", "stop")))
    writer.add("start")
    writer.append(topic, 2)


def _lose_power_soon(writer: _Writer, _: str, topic: int) -> None:
    """Store a little more, and lose what is only in memory."""
    writer.append(topic, writer.random.randint(1, 4))
    writer.append()
    writer.add("settle")
    writer.add("power")
    writer.add("start")


def _go_on(writer: _Writer, name: str, topic: int) -> None:
    """Do the same again, merge, and restart."""
    random = writer.random
    if random.random() < 0.8:
        INSIDE[name](writer, topic)
        writer.add("settle")
    writer.append(topic, random.randint(0, 3))
    if random.random() < 0.8:
        writer.small_segments(topic)
        writer.upkeep(topic)
        writer.add("settle")
    writer.append(topic, random.randint(0, 3))
    for _ in range(random.choice((0, 0, 1, 3))):
        writer.add("resend", back=random.randrange(30))
    if random.random() < 0.5:
        writer.add("settle")
    writer.restart()


def _full(random: Random) -> _Writer:
    """A disk that fills up, and frees again, with merging and a restart after it."""
    writer = _begun(random)
    topic = random.randrange(3)
    writer.small_segments(topic)
    for _ in range(random.randint(1, 3)):
        writer.add("fill", room=random.randrange(1500))
        for _ in range(random.randint(1, 4)):
            writer.append(topic)
            writer.any()
            writer.add("settle")
        if random.random() < 0.3:
            writer.restart()
        writer.add("heal")
        writer.small_segments(topic)
        writer.upkeep(topic)
        writer.add("settle")
        writer.restart()
    return writer


def _jump(random: Random) -> _Writer:
    """A wall clock that jumps, with age retention and a restart."""
    writer = _begun(random)
    topic = random.randrange(3)
    writer.add("retention", topic=topic, size=0, age=3600)
    writer.small_segments(topic)
    stopped = random.random() < 0.5
    if stopped:
        writer.add("stop")
    seconds = random.choice((-7200, 7200, 10**6, 3 * 10**8))
    if stopped and seconds == 7200:  # nobody can tell it from a stop of two hours
        seconds = 10**6
    writer.add("jump", seconds=seconds)
    writer.add("start")
    writer.append(topic)
    writer.upkeep(topic)
    writer.add("settle")
    writer.restart()
    return writer


def _burst(random: Random) -> _Writer:
    """Many appends at once, and power that fails."""
    writer = _begun(random)
    for _ in range(random.randint(1, 3)):
        troubled = random.random() < 0.4
        for _ in range(random.randint(5, 40)):
            if troubled and random.random() < 0.1:
                writer.fault_at(_FOCUS["recycle"])
            writer.append(count=1)
            if random.random() < 0.7:
                writer.add("wait", seconds=random.choice((0.001, 0.006, 0.02)))
            elif random.random() < 0.1:
                writer.any()
        if random.random() < 0.2:
            writer.restart()
        else:
            writer.add("power")
            writer.add("start")
        writer.add("heal")
    return writer


def _limit(random: Random) -> _Writer:
    """A topic with a limit in bytes, some of whose files the disk refused to remove once."""
    writer = _begun(random)
    topic = random.randrange(3)
    writer.add("retention", topic=topic, size=random.choice((1500, 3000)), age=0)
    writer.add("settle")
    if random.random() < 0.4:
        writer.small_segments(topic)
        writer.fault_at(_REMOVING)
        writer.upkeep(topic)
        writer.add("settle")
        writer.add("heal")
    often = random.choice((0.0, 0.2))
    for _ in range(random.randint(20, 50)):
        writer.add("append", topic=topic, records=1, size=100)
        writer.add("settle")
        if random.random() < often:
            writer.upkeep(topic)
            writer.add("settle")
    if random.random() < 0.7:
        writer.upkeep(topic)
        writer.add("settle")
        writer.add("weigh", topic=topic)
    writer.restart()
    return writer


def _readers(random: Random) -> _Writer:
    """Readers whose work lasts while segments are merged or dropped."""
    writer = _begun(random)
    topic = random.randrange(3)
    for _ in range(random.randint(1, 3)):
        writer.small_segments(topic)
        if random.random() < 0.3:
            writer.add("retention", topic=topic, size=random.choice((300, 2000)), age=0)
        for _ in range(random.randint(1, 4)):
            for _ in range(random.randint(1, 6)):
                name = random.choice(("seek", "seek", "fetch"))
                writer.add(name, topic=topic, share=random.random())
            writer.upkeep(topic)
        writer.add("settle")
    return writer


def _rot(random: Random) -> _Writer:
    """Bytes that change on the disk while nobody looks."""
    writer = _begun(random)
    topic = random.randrange(3)
    writer.small_segments(topic)
    writer.upkeep(topic)
    writer.append()
    writer.add(random.choice(("stop", "kill")))
    way = random.choice(("flip", "zero", "header", "header", "copy", "cut", "cut"))
    writer.add("rot", topic=topic, share=random.random(), way=way)
    writer.add("start")
    if random.random() < 0.5:
        writer.small_segments(topic)
        _merge(writer, topic)
    for _ in range(random.randint(1, 10)):
        writer.any()
    return writer


TEMPLATES: Final[dict[str, Callable[[Random], _Writer]]] = {
    **{name: _template(name) for name in INSIDE},
    "full": _full,
    "jump": _jump,
    "burst": _burst,
    "limit": _limit,
    "readers": _readers,
    "rot": _rot,
}


_WAL: Final = frozenset({"recycle", "burst"})
"""Templates that are mostly about the write-ahead log."""


def _settings(random: Random) -> Settings:
    pace = Pace(
        random.choice((0.0, 0.02, 0.1, 0.3)),
        random.choice((0.0, 0.05, 0.3)),
        random.choice((0.002, 0.05, 0.5)),
    )
    return Settings(
        random.choice(MODES),
        random.choice(("dsync", "uring")),
        random.choice((150, 400, 2000)),
        random.choice((600, 1500, 4096)),
        random.choice((0, 2, 2, 3)),
        random.choice((1, 4, 64)),
        pace,
    )


def make_plan(seed: int, template: str | None = None) -> StorePlan:
    """Return the plan of a seed.

    Args:
        seed: decides everything.
        template: the one to follow; without it the seed decides, and odd ones follow one.
    """
    random = Random(seed)
    settings = _settings(random)
    chosen = random.choice(list(TEMPLATES)) if seed % 2 else "any"
    template = template or chosen
    if template in _WAL and "wal" not in settings.mode and random.random() < 0.7:
        settings = replace(settings, mode=random.choice(("wal", "wal, inline", *MODES[-2:])))
    if template == "burst" and random.random() < 0.7:
        settings = replace(settings, pace=Pace(0.03, 0.7, 0.05), wal_size=8192)
    if template == "merge":
        settings = replace(settings, merge=2, segment_size=max(settings.segment_size, 400))
    if template == "readers":
        settings = replace(settings, merge=2, pace=Pace(0.2, 0.5, 0.2))
    write = TEMPLATES.get(template, _any)
    return StorePlan(seed, template, settings, tuple(write(random).operations))


def plans(first: int, count: int) -> Iterator[StorePlan]:
    """Yield the plans of some seeds."""
    return map(make_plan, range(first, first + count))
