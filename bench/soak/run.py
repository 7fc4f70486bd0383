"""One soak, from the start to its figures."""

from dataclasses import dataclass

from bench.soak import bed
from bench.soak.growth import SETTLED, Figures, Samples, figures
from bench.soak.memory import Resident


@dataclass(frozen=True, slots=True)
class Soak:
    """What a soak found.

    Attributes:
        seconds: how long it was at full rate.
        processes: what became of each process, by its name.
        sent: records that were sent and acknowledged, those between the rests included.
        read: records that were read.
        disk: the most bytes that were on the disk.
    """

    seconds: float
    processes: dict[str, Figures]
    sent: int
    read: int
    disk: int


def soak(seconds: float, rest: float = 2.0, rests: int = 9) -> Soak:
    """Run server, producer and consumer at full rate for so many seconds.

    Args:
        seconds: how long, without the rests.
        rest: for how many seconds they are looked at while they rest.
        rests: how many rests there are at either end.

    Raises:
        RuntimeError: a process ended before its time, or the disk was not kept bounded.
    """
    with bed.made() as three:
        three.watch(seconds * SETTLED)
        settled = _rests(three, rest, rests)
        load = three.watch(seconds * (1 - SETTLED))
        end = _rests(three, rest, rests)
        sent, read = three.stop()
    found = {name: figures(Samples(load[name], settled[name], end[name])) for name in load}
    return Soak(seconds, found, sent, read, three.disk)


def _rests(three: bed.Bed, seconds: float, times: int) -> dict[str, list[Resident]]:
    """Have all rest some times, with work in between; return all looks at them."""
    looks = three.rest(seconds)
    for _ in range(times - 1):
        three.watch(2 * seconds)
        for name, more in three.rest(seconds).items():
            looks[name] += more
    return looks
