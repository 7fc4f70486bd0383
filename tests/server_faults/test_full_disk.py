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
OPTIONS = ("--segment-size", "16KiB", "--upkeep-interval", "0.1", "--storage", "pwritev2")
MERGED = 160 * 1024
"""Bytes of a segment that was merged: the largest batch has less."""
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


def has_merged(data_dir: Path) -> bool:
    """Whether small segments became one."""
    sizes = [path.stat().st_size for path in data_dir.glob("segments/*/*.lnc")]
    return max(sizes) > MERGED


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
    """It is filled twice, the server ends while it is full, and the next one starts on it."""
    options = (*OPTIONS, "--durability", durability)
    with in_memory(SIZE, tmp_path) as disk:
        ballast = Ballast(disk)
        with ServerProcess.running(disk / "data", *options) as server:
            histories = create_topics(server.address, TOPICS)
            with load(server.address, histories) as producers:
                fill_and_free(ballast, producers)
                eventually(lambda: has_merged(disk / "data"))
                ballast.fill()
                meet(producers, 1, Outcome.REFUSED, Outcome.UNKNOWN)
                for each in producers:
                    each.want(1000, Outcome.REFUSED, Outcome.UNKNOWN)
                server.end(end)
        with ServerProcess.running(disk / "data", *options) as server:
            judge_all(server.address, histories, keep=True)
            with load(server.address, histories) as producers:
                ballast.free()
                meet(producers, 25, Outcome.ACKED)
                for each in producers:
                    each.want(1000, Outcome.ACKED)
                server.end(signal.SIGKILL)
        with running(disk / "data") as again:
            judge_all(again.address, histories)
            assert_nothing_is_damaged(again.report)
