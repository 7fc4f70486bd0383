"""What happens to a slot with symbols: lives of our sender, and turns of other clients."""

from dataclasses import dataclass
from random import Random
from typing import Final

from tests.simulation.faults import STOPS
from tests.simulation.ring.plan import RingPlan, RingSettings, RingWriter
from tests.simulation.world import Pace

OTHERS: Final = (("go",), ("python",), ("go", "python"))


@dataclass(frozen=True, slots=True)
class SlotSettings(RingSettings):
    """How a run is set up.

    Attributes:
        delta: whether our frames bring only new symbols, beside a dictionary.
        others: the published clients that have their turns, too.
    """

    delta: bool = True
    others: tuple[str, ...] = ()

    @property
    def mode(self) -> str:
        """What a planted fault may ask for."""
        frames = "delta" if self.delta else "whole"
        return " and ".join((f"{self.durability}, {frames} frames", *self.others))


class _Writer(RingWriter):
    def __init__(self, random: Random, settings: SlotSettings) -> None:
        super().__init__(random, settings)
        self.others = settings.others

    def life(self) -> None:
        """Add a life of our sender."""
        random = self.random
        self.add("open")
        for _ in range(random.randint(1, 10)):
            if random.random() < 0.1:
                random.choice((self.fault, self.stop_at))()
            random.choices(
                (self.append, self.drain, lambda: self.add(random.choice(("flush", "sync"))),
                 lambda: self.add("maintain"), lambda: self.add("wait", seconds=2.0)),
                (8, 4, 4, 1, 1),
            )[0]()  # fmt: skip
        self.end()

    def end(self) -> None:
        """End the process, perhaps the machine."""
        ways = (("close",), ("kill",), ("power",), ("kill", "power"), ("close", "power"))
        for each in self.random.choice(ways):
            self.add(each)
        self.add("heal")

    def turn(self) -> None:
        """Add a turn of another client."""
        random = self.random
        stop = random.randrange(80) if random.random() < 0.4 else None
        self.add(
            "pass", client=random.choice(self.others), rows=random.randint(0, 12),
            sent=random.choice((0, 0, 3, 1000)), closes=random.random() < 0.7,
            stop=stop, kind=random.choice(STOPS),
        )  # fmt: skip
        if random.random() < 0.3:
            self.add("power")


def make_plan(seed: int) -> RingPlan:
    """Return the plan of a seed."""
    random = Random(seed)
    template = random.choice(("alone", "passed"))
    settings = SlotSettings(
        durability=random.choice(("append", "flush", "memory")),
        segment_bytes=random.choice((1024, 4096)),
        background=random.random() < 0.6,
        pace=Pace(random.choice((0.0, 0.1, 0.3)), 0.2, random.choice((0.01, 0.5))),
        delta=random.random() < (0.8 if template == "alone" else 0.4),
        others=random.choice(OTHERS) if template == "passed" else (),
    )
    writer = _Writer(random, settings)
    for _ in range(random.randint(2, 5)):
        writer.life()
        for _ in range(random.randint(0, 2) if settings.others else 0):
            writer.turn()
    return RingPlan(seed, template, settings, tuple(writer.operations))
