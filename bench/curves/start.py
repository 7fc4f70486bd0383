"""How long a server takes until it serves."""

import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.curves.bed import Bed, filled
from bench.curves.connections import drive
from bench.curves.curve import Curve, Run, Sample
from bench.curves.frames import ACK, LARGE, small
from bench.peers import data_directory, served
from bench.usage import cpu_seconds, memory

_SMALL_SEGMENTS = ("--segment-size", "64KiB")
"""So that each frame of 64 KiB is a segment, if none is flushed together with another."""


def _start(folder: Path, *options: str, kill: bool) -> Sample:
    began = time.perf_counter()
    with served(*options, data=folder, kill=kill) as server:
        seconds = time.perf_counter() - began
        return Sample(seconds, cpu_seconds(server.pid), memory(server.pid).private)


@contextmanager
def _stopped(point: int, bed: Bed) -> Iterator[Run]:
    folder = bed.log(point).folder
    yield lambda: _start(folder, kill=False)


@contextmanager
def _killed(point: int, bed: Bed) -> Iterator[Run]:
    del bed  # its logs stay as they are
    with data_directory() as folder:
        with served(data=folder, kill=True) as server:
            filled(server.address, point)
        yield lambda: _start(folder, kill=True)


@contextmanager
def _segments(point: int, bed: Bed) -> Iterator[Run]:
    del bed
    with data_directory() as folder:
        with served(*_SMALL_SEGMENTS, data=folder, kill=True) as server:
            filled(server.address, point * len(LARGE), window=1)
        yield lambda: _start(folder, *_SMALL_SEGMENTS, kill=True)


@contextmanager
def _topics(point: int, bed: Bed) -> Iterator[Run]:
    folder = bed.topics(point).folder
    yield lambda: _start(folder, kill=False)


def _stop(folder: Path, numbers: list[int]) -> Sample:
    """Store a batch in each topic, and measure how long the server takes to end."""
    with served(data=folder) as server:
        drive(server.address, [small(number) for number in numbers], ACK)
        most, earlier = memory(server.pid).private, _children() + cpu_seconds(server.pid)
        began = time.perf_counter()
    return Sample(time.perf_counter() - began, _children() - earlier, most)


def _children() -> float:
    """Return the processor time of all processes that this one has started and that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@contextmanager
def _stopping(point: int, bed: Bed) -> Iterator[Run]:
    topics = bed.topics(point)
    yield lambda: _stop(topics.folder, topics.numbers)


CURVES = (
    Curve(
        name="start/log-size",
        axis="bytes in the log, cleanly closed",
        unit="start",
        process="server",
        points=(10**7, 10**8, 10**9),
        large=(10**10,),
        steepest=1.0,
        open=_stopped,
    ),
    Curve(
        name="start-killed/log-size",
        axis="bytes in the log of a server that was killed",
        unit="start",
        process="server",
        points=(10**7, 10**8, 10**9),
        large=(10**10,),
        steepest=1.0,
        open=_killed,
    ),
    Curve(
        name="start-killed/segments",
        axis="segments in the log of a server that was killed",
        unit="start",
        process="server",
        points=(10, 100, 1_000),
        large=(10_000,),
        steepest=1.0,
        open=_segments,
    ),
    Curve(
        name="start/topics",
        axis="topics",
        unit="start",
        process="server",
        points=(1, 10, 100, 1_000),
        steepest=1.0,
        open=_topics,
    ),
    Curve(
        name="stop/topics",
        axis="topics that were written to",
        unit="stop",
        process="server",
        points=(1, 10, 100, 1_000),
        steepest=1.0,
        open=_stopping,
    ),
)
