"""``python -m bench.profiles.timeline [--save]``: where the time of one acknowledgement goes.

One batch is in flight at a time. The server runs in a process of its own and notes when a batch
passes some places; both processes read the same clock. Each step is the median over all batches.
"""

import csv
import json
import os
import statistics
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bench.peers import READY, data_directory, environment
from bench.scenarios.latency import acknowledged
from lance_server import running
from lance_server.log.flusher import Flusher
from lance_server.log.partition import Partition
from lance_server.lwp.connection import Connection
from lance_server.runtime.disk_monitor import WatchedStorage

if TYPE_CHECKING:
    from collections.abc import Callable

_FILE: Final = Path(__file__).parents[1] / "results" / "timeline.csv"
_WAYS: Final[dict[str, dict[str, Any]]] = {
    "two syncs, by a worker": {"durability": "fsync", "inline_commits": False},
    "one sync, by a worker": {"durability": "auto", "inline_commits": False},
    "one sync, where it was read (default)": {},
}
_STEPS: Final = (
    "sent, until the server has read it",
    "split, judged, appended",
    "handed to the thread that commits it",
    "written and synced",
    "handed back",
    "visible, acknowledged, given to the socket",
    "received",
)
_PLACES: Final = len(_STEPS) - 1
_WARM_UP: Final = 200
_Marks = list[tuple[int, float]]


def _noted(cls: type, method: str, marks: _Marks, *, before: int = 0, after: int = 0) -> None:
    """Have a method note when it begins, or ends, as the place of a number."""
    inner: Callable[..., Any] = getattr(cls, method)

    def outer(*args: Any, **options: Any) -> Any:
        if before:
            marks.append((before, time.perf_counter()))
        try:
            return inner(*args, **options)
        finally:
            if after:
                marks.append((after, time.perf_counter()))

    setattr(cls, method, outer)


def _serve(folder: Path, way: str) -> None:
    """Serve until a line is read; then print what was noted."""
    marks: _Marks = []
    _noted(Connection, "buffer_updated", marks, before=1)
    _noted(Partition, "append", marks, after=2)
    _noted(Partition, "append_run", marks, after=2)
    _noted(WatchedStorage, "commit", marks, before=3, after=4)
    _noted(Flusher, "_finish", marks, before=5)
    _noted(Connection, "_write", marks, after=6)
    with running(folder, **_WAYS[way]) as server:
        host, port = server.address
        print(f"{host}:{port}", flush=True)
        sys.stdin.readline()
        print(json.dumps(marks), flush=True)


def _measure(way: str) -> list[float]:
    """Return the median seconds of each step."""
    with data_directory() as folder:
        process = subprocess.Popen(
            [sys.executable, "-m", "bench.profiles.timeline", "--serve", str(folder), way],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment(pure=False),
        )
        try:
            assert process.stdout is not None
            assert process.stdin is not None
            found = READY.search(process.stdout.readline())
            assert found is not None, "the server says where it listens"
            sent = [each for _ in range(3) for each in acknowledged(found.group())]
            process.stdin.write("\n")
            process.stdin.flush()
            return _medians(sent[_WARM_UP:], json.loads(process.stdout.readline()))
        finally:
            process.kill()
            process.wait(30)


def _medians(sent: list[tuple[float, float]], marks: list[tuple[int, float]]) -> list[float]:
    """Return the median of each step, of the batches that passed every place in its turn."""
    steps: list[list[float]] = [[] for _ in _STEPS]
    place = 0
    for begun, ended in sent:
        while place < len(marks) and marks[place][1] < begun:
            place += 1
        passed: list[float] = []
        while place < len(marks) and marks[place][1] <= ended:
            number, at = marks[place]
            if number == len(passed) + 1:
                passed.append(at)
            place += 1
        if len(passed) == _PLACES:
            times = [begun, *passed, ended]
            for step, (one, two) in zip(steps, pairwise(times), strict=True):
                step.append(two - one)
    return [statistics.median(step) for step in steps]


def main(arguments: list[str]) -> None:
    """Measure all ways, print them, and write them down where that is asked for."""
    if arguments[:1] == ["--serve"]:
        _serve(Path(arguments[1]), arguments[2])
        return
    medians = {way: _measure(way) for way in _WAYS}
    rows = [["µs (median)", *medians]]
    for number, step in enumerate(_STEPS):
        rows.append([step, *(f"{1e6 * each[number]:.0f}" for each in medians.values())])
    rows.append(["together", *(f"{1e6 * sum(each):.0f}" for each in medians.values())])
    for row in rows:
        print("; ".join(row))
    if "--save" in arguments:
        with _FILE.open("w", newline="") as file:
            csv.writer(file, lineterminator=os.linesep).writerows(rows)


if __name__ == "__main__":
    main(sys.argv[1:])
