"""A disk that fills and frees under load, with merging and restarts: nothing acknowledged goes."""

import itertools
import signal
from contextlib import suppress
from pathlib import Path

import pytest
from tests.server_faults.preload import in_memory
from tests.server_faults.recording import (
    LONG,
    Outcome,
    Producer,
    assert_nothing_is_damaged,
    create_topics,
    judge_all,
    load,
    meet,
)

from lance_server import running
from lance_server.storage.backend_selection import DURABILITIES
from lance_server.testing import ServerProcess
from lance_server.testing.process import eventually

SIZE = 48 * 1024 * 1024
OPTIONS = ("--upkeep-interval", "0.1", "--storage", "pwritev2")
SMALL, LARGE = ("--segment-size", "16KiB"), ("--segment-size", "4MiB")
"""Segments of a server whose first life writes many, and whose second merges them."""
TOPICS = 3


class Ballast:
    """A file that takes all the room there is."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "ballast"

    def fill(self) -> None:
        """Leave no room."""
        with suppress(OSError), self._path.open("ab", buffering=0) as file:
            while file.write(bytes(1024 * 1024)):
                pass
        with suppress(OSError), self._path.open("ab", buffering=0) as file:
            while file.write(bytes(512)):
                pass

    def free(self) -> None:
        """Give it all back."""
        self._path.unlink(missing_ok=True)


def segments_in(data_dir: Path) -> set[Path]:
    """Return the data files of all topics."""
    return set(data_dir.glob("segments/*/*.lnc"))


def fill_and_free(ballast: Ballast, producers: list[Producer]) -> None:
    """Have each producer meet a full disk, and then one with room."""
    meet(producers, 25, Outcome.ACKED)
    ballast.fill()
    meet(producers, 3, Outcome.REFUSED, Outcome.UNKNOWN)
    ballast.free()
    meet(producers, 25, Outcome.ACKED)


ENDS = (signal.SIGKILL, signal.SIGTERM)
ROUNDS = list(itertools.product(DURABILITIES, ENDS))
if not LONG:
    ROUNDS = list(zip(DURABILITIES, itertools.cycle(ENDS), strict=False))


@pytest.mark.parametrize(("durability", "end"), ROUNDS)
def test_a_disk_that_fills_and_frees_loses_nothing(
    tmp_path: Path, durability: str, end: signal.Signals
) -> None:
    """The server ends while it is full; the next starts on it and merges once there is room."""
    options = (*OPTIONS, "--durability", durability)
    with in_memory(SIZE, tmp_path) as disk:
        ballast, data = Ballast(disk), disk / "data"
        with ServerProcess.running(data, *options, *SMALL) as server:
            histories = create_topics(server.address, TOPICS)
            with load(server.address, histories) as producers:
                fill_and_free(ballast, producers)
                ballast.fill()
                meet(producers, 1, Outcome.REFUSED, Outcome.UNKNOWN)
                for each in producers:
                    each.want(1000, Outcome.REFUSED, Outcome.UNKNOWN)
                server.end(end)
        small = segments_in(data)
        with ServerProcess.running(data, *options, *LARGE) as server:
            judge_all(server.address, histories, keep=True)
            with load(server.address, histories) as producers:
                ballast.free()
                eventually(lambda: len(small - segments_in(data)) > 3)
                fill_and_free(ballast, producers)
                for each in producers:
                    each.want(1000, Outcome.ACKED)
                server.end(signal.SIGKILL)
        with running(disk / "data") as again:
            judge_all(again.address, histories)
            assert_nothing_is_damaged(again.report)
