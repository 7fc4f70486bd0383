"""What happens to a ring: operations, some of which are faults."""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Final

from tests.simulation.faults import STOPS, Echo
from tests.simulation.plan import Plan, PlanWriter
from tests.simulation.world import Pace

_ERRORS: Final = ("EIO", "EIO", "ENOSPC", "EDQUOT", "EROFS")
_CALLS: Final = (
    "*",
    "*",
    "write",
    "sync",
    "sync",
    "create",
    "rename",
    "remove",
    "sync_dir",
    "punch",
)
_LARGE: Final = 1 << 17


@dataclass(frozen=True, slots=True)
class RingSettings:
    """How the journal of a run is set up.

    Attributes:
        durability: its durability.
        segment_bytes: of its segments.
        background: whether it has threads of its own.
        holes: whether the file system can punch holes.
        pace: how often threads are interrupted.
    """

    durability: str = "flush"
    segment_bytes: int = 4096
    background: bool = True
    holes: bool = True
    pace: Pace = field(default_factory=Pace)

    @property
    def mode(self) -> str:
        """What a planted fault may ask for."""
        return self.durability + ("" if self.holes else ", no holes")


class RingPlan(Plan[RingSettings]):
    """What happens to a ring."""

    WHERE = "ring "


class RingWriter(PlanWriter):
    """Writes down operations, drawn at random."""

    def __init__(self, random: Random, settings: RingSettings) -> None:
        super().__init__(random)
        self.large = settings.segment_bytes == _LARGE

    def append(self, share: float = 0.0) -> None:
        """Add some appends."""
        count = self.random.randint(1, 9) if not share else int(share * 60)
        self.add("append", count=count, size=self.random.choice((1800, 2000)) if self.large else 90)

    def drain(self) -> None:
        """Have some of it sent."""
        self.add("drain", share=self.random.choice((0.3, 0.7, 0.9, 1.0)))

    def fault(self) -> None:
        """Plan an error."""
        random = self.random
        error = random.choice(_ERRORS)
        echoes = tuple(
            Echo(random.choice((0, 0, 1, 2, random.randrange(9))), random.choice((error, *STOPS)))
            for _ in range(random.choice((0, 0, 1, 2)))
        )
        self.add(
            "fault", method=random.choice(_CALLS), place="*", nth=random.choice((0, 0, 1, 2, 5)),
            error=error, after=random.random() < 0.3, times=random.choice((1, 1, 2, 20)),
            echoes=echoes,
        )  # fmt: skip

    def stop_at(self) -> None:
        """Plan the end of the process or the machine."""
        random = self.random
        self.add(
            "fault", method="*", place="*", nth=random.randrange(30), error=random.choice(STOPS),
            after=random.random() < 0.5,
        )  # fmt: skip

    def restart(self) -> None:
        """End the process, perhaps the machine, and open the slot again."""
        for each in self.random.choice(
            (("close",), ("kill",), ("power",), ("kill", "power"), ("close", "power"))
        ):
            self.add(each)
        self.add("open")

    def any(self) -> None:
        """Add anything."""
        chances: dict[Callable[[], None], int] = {
            self.append: 12,
            self.drain: 4,
            lambda: self.add(self.random.choice(("flush", "sync"))): 4,
            lambda: self.add("maintain"): 3,
            lambda: self.add("wait", seconds=self.random.choice((0.01, 2.0))): 2,
            lambda: self.add("second"): 1,
            self.restart: 3,
        }
        self.random.choices(list(chances), list(chances.values()))[0]()


def _any(writer: RingWriter) -> None:
    for _ in range(writer.random.randint(15, 50)):
        if writer.random.random() < 0.1:
            writer.random.choice(
                (
                    writer.fault,
                    writer.stop_at,
                    lambda: writer.add("fill", room=writer.random.randrange(40_000)),
                    lambda: writer.add("heal"),
                )
            )()
        writer.any()


def _fold(writer: RingWriter) -> None:
    """A fold that fails, is tried again, and a reader after it."""
    for _ in range(writer.random.randint(1, 2)):
        writer.append(share=1.0)
        writer.add("sync")
        writer.drain()
        if writer.random.random() < 0.7:
            writer.fault()
        for _ in range(writer.random.randint(1, 3)):
            writer.add("maintain")
        writer.add("heal")
        writer.append()
        writer.add("look")
        writer.restart()


def _doubt(writer: RingWriter) -> None:
    """A sync that fails, another process in the same boot, and a loss of power."""
    for _ in range(writer.random.randint(1, 3)):
        writer.append()
        if writer.random.random() < 0.8:
            writer.fault()
        writer.add(writer.random.choice(("flush", "sync", "maintain")))
        writer.add("heal")
        writer.add(writer.random.choice(("close", "kill")))
        writer.add("open")
        if writer.random.random() < 0.5:
            writer.append()
        writer.add(writer.random.choice(("flush", "sync", "close")))
        writer.add("power")
        writer.add("open")


TEMPLATES: Final[dict[str, Callable[[RingWriter], None]]] = {
    "any": _any, "fold": _fold, "doubt": _doubt,
}  # fmt: skip


def make_plan(seed: int) -> RingPlan:
    """Return the plan of a seed."""
    random = Random(seed)
    template = random.choice(("any", "fold", "doubt"))
    settings = RingSettings(
        random.choice(("append", "flush", "periodic", "memory")),
        _LARGE if template == "fold" or random.random() < 0.1 else random.choice((1024, 4096)),
        random.random() < 0.6,
        random.random() < 0.7,
        Pace(random.choice((0.0, 0.1, 0.3)), 0.2, random.choice((0.01, 0.5))),
    )
    writer = RingWriter(random, settings)
    writer.add("open")
    writer.append()
    TEMPLATES[template](writer)
    return RingPlan(seed, template, settings, tuple(writer.operations))
