"""What handing stored batches out costs the server."""

import random
from collections.abc import Iterator
from contextlib import contextmanager

from bench.curves.bed import Bed, batches
from bench.curves.connections import PATIENT, Connections, drive
from bench.curves.curve import Curve, Run, Sample
from bench.curves.frames import ACK, LARGE, SMALL, answer, fetch, small
from bench.peers import Server, served
from bench.usage import used

_BYTES = 48 << 20
_FETCHES = 4_000
_BATCHES = 8_192
_AHEAD = 8


@contextmanager
def _fetching(
    server: Server, size: int, requests: list[list[bytes]], unit: int | None = None
) -> Iterator[Run]:
    """Fetch over as many connections as there are lists of requests.

    Args:
        server: from where.
        size: bytes of every answer's data.
        requests: each connection's.
        unit: bytes that the cost is of; a whole answer by default.
    """
    units = sum(map(len, requests)) * (size / unit if unit else 1)
    with Connections(server.address, len(requests), answer(size)) as connections:

        def run() -> Sample:
            with used(server.pid) as use:
                connections.drive(requests, _AHEAD)
            return Sample.of(use, units)

        yield run


@contextmanager
def _answer_size(point: int, bed: Bed) -> Iterator[Run]:
    """Fetch whole batches of 4 KiB, so many at a time; the cost is that of a KiB."""
    del bed
    size, stored = point * len(SMALL), _BATCHES * len(SMALL)
    with served(*PATIENT) as server:
        drive(server.address, [small(0) for _ in range(_BATCHES)], ACK)
        turns = range(min(_FETCHES, max(8, _BYTES // size)))
        places = [n * size % (stored - size) // len(SMALL) * len(SMALL) for n in turns]
        requests = [fetch(0, place, size) for place in places]
        with _fetching(server, size, [requests], unit=1024) as run:
            yield run


@contextmanager
def _connections(point: int, bed: Bed) -> Iterator[Run]:
    del bed
    with served(*PATIENT) as server:
        drive(server.address, [small(0) for _ in range(1024)], ACK)
        each = [fetch(0, n % 1000 * len(SMALL), len(SMALL)) for n in range(_FETCHES // point)]
        with _fetching(server, len(SMALL), [each] * point) as run:
            yield run


@contextmanager
def _topics(point: int, bed: Bed) -> Iterator[Run]:
    topics = bed.topics(point)
    numbers = [topics.numbers[turn % point] for turn in range(_FETCHES)]
    requests = [fetch(number, 0, len(SMALL)) for number in numbers]
    with (
        served(*PATIENT, data=topics.folder) as server,
        _fetching(server, len(SMALL), [requests]) as run,
    ):
        yield run


@contextmanager
def _log_size(point: int, bed: Bed) -> Iterator[Run]:
    log, count, rng = bed.log(point), batches(point), random.Random(1)  # noqa: S311 - places
    places = [rng.randrange(count) * len(LARGE) for _ in range(_BYTES // len(LARGE))]
    requests = [fetch(log.topic, place, len(LARGE)) for place in places]
    with (
        served(*PATIENT, data=log.folder) as server,
        _fetching(server, len(LARGE), [requests]) as run,
    ):
        yield run


CURVES = (
    Curve(
        name="fetch/answer-size",
        axis="batches of 4 KiB in an answer",
        unit="KiB",
        process="server",
        points=(1, 10, 100, 1_000),
        steepest=0.0,
        open=_answer_size,
    ),
    Curve(
        name="fetch/connections",
        axis="connections",
        unit="answer of 4 KiB",
        process="server",
        points=(1, 10, 100, 1_000),
        steepest=0.0,
        open=_connections,
    ),
    Curve(
        name="fetch/topics",
        axis="topics",
        unit="answer of 4 KiB",
        process="server",
        points=(1, 10, 100, 1_000),
        steepest=0.0,
        open=_topics,
    ),
    Curve(
        name="fetch/log-size",
        axis="bytes in the log",
        unit="answer of 64 KiB, from anywhere",
        process="server",
        points=(10**7, 10**8, 10**9),
        large=(10**10,),
        steepest=0.0,
        open=_log_size,
    ),
)
