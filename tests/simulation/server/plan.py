"""What happens to a server: what its peers do, and what goes wrong with them and with its disk."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from random import Random
from typing import Final

from tests.simulation.faults import CHANGING
from tests.simulation.plan import Plan, PlanWriter
from tests.simulation.store.plan import Settings
from tests.simulation.world import Pace

FLOODS: Final = (
    "fetch", "waiting", "append", "keepalive", "get", "list", "commit", "seek", "token", "create",
    "part", "nonsense", "subscribe",
)  # fmt: skip
"""What an attacker sends without an end."""
_FATES: Final = ("reset", "leave", "vanish", "shut", "shut")
_ERRORS: Final = ("EIO", "EIO", "ENOSPC", "EDQUOT")
OTHERS: Final = ("rustlog", "fluvio-sc", "fluvio-spu", "qwp", "qwp")
"""The other listeners."""
_OTHERS_EACH: Final = 12
"""Of so many seeds one has other listeners."""
_LATE: Final = 259
"""Keepalives of which some are answered late, one a second."""
_GOOD: Final = 3
"""Peers that behave."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What the server of a run allows.

    Attributes:
        memory: bytes that all connections together may make it hold.
        unacked: bytes of unanswered requests of one connection.
        connections: at once.
        rate: bytes a second that one connection may read; 0 for any number.
        room: bytes that the network holds to the server and to a peer.
    """

    memory: int = 1 << 18
    unacked: int = 1 << 16
    connections: int = 64
    rate: int = 0
    room: tuple[int, int] = (1 << 16, 1 << 14)


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """How the server of a run is set up.

    Attributes:
        store: its log.
        limits: what it allows.
        others: whether it serves other protocols, too.
    """

    store: Settings = field(default_factory=Settings)
    limits: Limits = field(default_factory=Limits)
    others: bool = False

    @property
    def pace(self) -> Pace:
        """How often threads are interrupted."""
        return self.store.pace

    @property
    def mode(self) -> str:
        """What a planted fault may ask for."""
        return self.store.mode


class ServerPlan(Plan[ServerSettings]):
    """What happens to a server."""

    WHERE = "server "


class _Writer(PlanWriter):
    """Writes the operations of a plan."""

    # Pieces ----------------------------------------------------------------------------------

    def good(self, count: int | None = None) -> None:
        """Let peers that behave do something."""
        random = self.random
        for _ in range(count or random.randint(1, 3)):
            peer = random.randrange(_GOOD)
            what = random.choice(("append", "append", "append", "fetch", "fetch", "request"))
            if what == "append":
                count = random.choice((1, 1, 2, 5))
                self.add(what, peer=peer, count=count, size=random.choice((10, 90, 300)))
            elif what == "fetch":
                self.add(what, peer=peer, share=random.random(), size=random.choice((100, 5000)))
            else:
                kind = random.choice(("get", "list", "commit", "seek", "keepalive", "token"))
                self.add(what, peer=peer, kind=kind)

    def readers(self) -> None:
        """Let someone read who does not always do so."""
        random = self.random
        self.add("subscribe", size=random.choice((50, 1000)), topic=random.randrange(_GOOD))

    def flood(self, kind: str | None = None, *, reads: bool | None = None, many: int = 1) -> None:
        random = self.random
        for _ in range(many):
            self.add(
                "flood",
                kind=kind or random.choice(FLOODS),
                count=random.choice((3, 20, 60, 150)),
                reads=random.random() < 0.4 if reads is None else reads,
                shut=random.random() < 0.15,
            )

    def fate(self) -> None:
        self.add("fate", back=self.random.randrange(4), fate=self.random.choice(_FATES))

    def fault(self) -> None:
        random = self.random
        method = random.choice(("*", *CHANGING))
        self.add(
            "fault",
            method=method,
            place="*",
            nth=random.randrange(10 if method == "*" else 3),
            error=random.choice(_ERRORS),
            after=random.random() < 0.3,
            times=random.choice((1, 1, 2)),
        )

    def restart(self) -> None:
        self.add(self.random.choice(("kill", "kill", "power", "stop")))
        self.add("start")

    def pause(self) -> None:
        self.add("wait", seconds=self.random.choice((0.001, 0.01, 0.2, 1.0)))

    def some(self) -> None:
        """Add one of anything."""
        random = self.random
        pieces: tuple[tuple[Callable[[], None], int], ...] = (
            (self.good, 10), (self.flood, 4), (self.fate, 3), (self.readers, 2), (self.pause, 3),
            (self.fault, 1), (self.restart, 1), (lambda: self.add("settle"), 1),
            (lambda: self.add("reader", back=random.randrange(4), reads=random.random() < 0.5), 2),
            (lambda: self.add("crowd", count=random.choice((3, 8))), 1),
            (lambda: self.add("roll", topic=random.randrange(_GOOD)), 1),
            (lambda: self.add("heal"), 1),
        )  # fmt: skip
        random.choices([each for each, _ in pieces], [weight for _, weight in pieces])[0]()


def _any(write: _Writer) -> None:
    for _ in range(write.random.randint(8, 22)):
        write.some()


def _siege(write: _Writer) -> None:
    """Several peers pipeline one kind of request and do not read; the others go on."""
    write.good(3)
    write.add("wait", seconds=0.1)
    kind = write.random.choice(("fetch", "waiting", "waiting", "append", *FLOODS))
    write.flood(kind, reads=False, many=write.random.randint(2, 4))
    write.good()
    if write.random.random() < 0.5:
        write.flood()
    for _ in range(write.random.randrange(3)):
        write.fate()
    write.pause()
    write.good()
    write.add("settle")


def _unread(write: _Writer) -> None:
    """Peers end their side, take nothing of what they are owed, and are gone."""
    for _ in range(write.random.randint(1, 3)):
        write.good(1)
        kind = write.random.choice(("create", "create", "seek", "commit", *FLOODS))
        count = write.random.choice((20, 60))
        write.add("flood", kind=kind, count=count, reads=False, shut=True)
        write.pause()
        write.add("fate", back=0, fate=write.random.choice(("vanish", "vanish", "stay")))


def _pipeline(write: _Writer) -> None:
    """One peer sends a great many small requests at once, and reads all answers."""
    write.good(2)
    kind = write.random.choice(("fetch", "keepalive", "get", "list", "append"))
    count = _LATE if kind == "keepalive" else 1100
    write.add("flood", kind=kind, count=count, reads=True, shut=False)
    write.good(2)


def _producers(write: _Writer) -> None:
    """Nobody attacks; those who behave send so much that what is known of it takes memory."""
    for number in range(write.random.randint(3, 5)):
        write.add("append", peer=number % _GOOD, count=100, size=20)
        write.add("wait", seconds=0.3)
        write.good(1)
    write.add("settle", soon=True)


def _kills(write: _Writer) -> None:
    """The server ends in the middle of what peers do, and comes back."""
    for _ in range(write.random.randint(2, 4)):
        write.good(4)
        for _ in range(write.random.randrange(3)):
            write.some()
        write.restart()
    write.good()


def _refused(write: _Writer) -> None:
    """The disk refuses in the middle of what peers do."""
    for _ in range(write.random.randint(1, 3)):
        write.good(2)
        write.fault()
        write.good(4)
        if write.random.random() < 0.3:
            write.flood()
        write.add("heal")
        write.add("settle")


def _readers(write: _Writer) -> None:
    """Subscribers that stop reading, and read again."""
    for _ in range(write.random.randint(1, 3)):
        write.readers()
    for _ in range(write.random.randint(3, 8)):
        write.good()
        write.random.choice((write.readers, write.pause, write.fate, write.some))()
        write.add("reader", back=write.random.randrange(3), reads=write.random.random() < 0.5)


def _others(write: _Writer) -> None:
    """Peers of the other listeners pipeline, and do not read; those of LWP are served."""
    write.good(2)
    for _ in range(write.random.randint(1, 3)):
        listener = write.random.choice(OTHERS)
        if listener == "fluvio-spu":  # it writes to what the SC has created
            write.add("pipeline", listener="fluvio-sc", count=2, reads=True)
            write.add("wait", seconds=0.1)
        write.add(
            "pipeline",
            listener=listener,
            count=write.random.choice((5, 60, 1100)),
            reads=write.random.random() < 0.7,
        )
        if write.random.random() < 0.3:  # in the middle of it
            write.add("wait", seconds=write.random.uniform(0.002, 0.03))
            write.restart()
        write.good(1)
        write.random.choice((write.pause, write.fate, write.good))()
    write.add("settle", soon=True)


_TEMPLATES: Final[dict[str, Callable[[_Writer], None]]] = {
    "any": _any, "siege": _siege, "kills": _kills, "refused": _refused, "readers": _readers,
    "pipeline": _pipeline, "producers": _producers, "unread": _unread,
}  # fmt: skip
_WEIGHTS: Final = (8, 6, 4, 3, 3, 1, 1, 1)


def _settings(random: Random) -> ServerSettings:
    store = Settings(
        mode=random.choice(("fsync", "fsync, inline", "wal", "wal, inline", "wal, drawn, inline")),
        segment_size=random.choice((400, 2000, 10_000)),
        wal_size=random.choice((1024, 8192)),
        pace=Pace(random.choice((0.02, 0.1)), 0.1, random.choice((0.01, 0.2))),
    )
    limits = Limits(
        memory=random.choice((24 << 10, 64 << 10, 1 << 20)),
        unacked=random.choice((4 << 10, 32 << 10, 1 << 20)),
        connections=random.choice((6, 12, 64)),
        rate=random.choice((0, 0, 0, 3000)),
        room=random.choice(((1 << 10, 1 << 10), (1 << 17, 1 << 14), (1 << 17, 1 << 11))),
    )
    return ServerSettings(store, limits)


def make_plan(seed: int) -> ServerPlan:
    """Return the plan of a seed."""
    random = Random(seed)
    [template] = random.choices(list(_TEMPLATES), _WEIGHTS)
    settings = _settings(random)
    limits = settings.limits
    if template == "pipeline":
        limits = Limits(1 << 22, 1 << 20, 64, 0, (1 << 17, 1 << 14))
    elif template == "producers":
        limits = Limits(96 << 10, 1 << 20, 64, 0, (1 << 17, 1 << 14))
    settings = replace(settings, limits=limits)
    write = _Writer(random)
    write.add("start")
    if seed % _OTHERS_EACH == _OTHERS_EACH - 1:
        template, settings = "others", replace(settings, others=True)
        _others(write)
    else:
        _TEMPLATES[template](write)
    return ServerPlan(seed, template, settings, tuple(write.operations))
