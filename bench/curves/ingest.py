"""What storing costs the server."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial

from bench.curves.bed import Bed, filled
from bench.curves.connections import PATIENT, Connections
from bench.curves.curve import Curve, Run, Sample
from bench.curves.frames import ACK, large, small
from bench.limit import Load, compiler, run_load, tools
from bench.peers import Server, served
from bench.usage import used
from lance_spec.limits import RECORD_HEADER_SIZE

_BYTES = 48 << 20
_FRAME = 64 << 10
_FRAMES = 4_000
"""Frames of 4 KiB, over however many connections or topics."""
_FEW = 200
"""Frames of 64 KiB that are added to a log: few beside what it has."""
_WINDOW = 128
_AHEAD = 8


def _sample(
    server: Server, connections: Connections, requests: list[list[bytes]], window: int
) -> Sample:
    with used(server.pid) as use:
        connections.drive(requests, window)
    return Sample.of(use, sum(map(len, requests)))


@contextmanager
def _loaded(point: int, bed: Bed, *, load: Callable[[int], Load]) -> Iterator[Run]:
    """Drive a server with the load in C; the cost is that of a record."""
    del bed
    what = load(point)
    with tools() as folder, served() as server:

        def run() -> Sample:
            with used(server.pid) as use:
                speed = run_load(folder, server.address, what)
            return Sample.of(use, what.frames * what.records, what.total / speed)

        yield run


def _of_record_size(size: int) -> Load:
    records = max(1, _FRAME // (size + RECORD_HEADER_SIZE))
    frames = max(1, min(_BYTES // (records * size), 40_000))
    return Load(frames=frames, records=records, size=size, window=max(2, 8 * _FRAME // size))


def _of_batch_size(records: int) -> Load:
    frames = max(1, min(400_000 // records, 40_000))
    window = max(2, min(5_000, 20_000 // records))
    return Load(frames=frames, records=records, size=100, window=window)


@contextmanager
def _connections(point: int, bed: Bed) -> Iterator[Run]:
    """Store from many connections, each with `_AHEAD` frames on their way."""
    del bed
    with served(*PATIENT) as server, Connections(server.address, point, ACK) as connections:
        each = range(_FRAMES // point)
        yield lambda: _sample(
            server, connections, [[small(0) for _ in each] for _ in range(point)], _AHEAD
        )


@contextmanager
def _topics(point: int, bed: Bed) -> Iterator[Run]:
    """Store in many topics, each with a frame on its way."""
    topics = bed.topics(point)
    numbers = [topics.numbers[turn % point] for turn in range(_FRAMES // 2)]
    with (
        served(*PATIENT, data=topics.folder) as server,
        Connections(server.address, 1, ACK) as connections,
    ):
        yield lambda: _sample(server, connections, [list(map(small, numbers))], point)


@contextmanager
def _log_size(point: int, bed: Bed) -> Iterator[Run]:
    del bed  # its logs stay as they are
    with served(*PATIENT) as server, Connections(server.address, 1, ACK) as connections:
        topic = filled(server.address, point)
        yield lambda: _sample(server, connections, [[large(topic) for _ in range(_FEW)]], _WINDOW)


def _loads() -> tuple[Curve, ...]:
    if compiler() is None:  # `bench.scenarios.server` says so
        return ()
    kinds: tuple[tuple[str, str, Callable[[int], Load], tuple[int, ...], float], ...] = (
        (
            "ingest/record-size",
            "record size in bytes",
            _of_record_size,
            (10, 100, 1_000, 10_000, 100_000, 1_000_000),
            1.0,
        ),
        (
            "ingest/batch-size",
            "records of 100 bytes in a frame",
            _of_batch_size,
            (1, 10, 100, 1_000, 10_000),
            0.0,
        ),
    )
    return tuple(
        Curve(
            name=name,
            axis=axis,
            unit="record",
            process="server",
            points=points,
            steepest=steepest,
            open=partial(_loaded, load=load),
        )
        for name, axis, load, points, steepest in kinds
    )


def _curve(
    name: str,
    axis: str,
    unit: str,
    points: tuple[int, ...],
    opened: Callable[[int, Bed], AbstractContextManager[Run]],
) -> Curve:
    return Curve(
        name=f"ingest/{name}",
        axis=axis,
        unit=unit,
        process="server",
        points=points,
        large=(10**10,) if name == "log-size" else (),
        steepest=0.0,
        open=opened,
    )


CURVES = (
    *_loads(),
    _curve("connections", "connections", "frame of 4 KiB", (1, 10, 100, 1_000), _connections),
    _curve("topics", "topics", "frame of 4 KiB", (1, 10, 100, 1_000), _topics),
    _curve(
        "log-size",
        "bytes in the log before",
        "frame of 64 KiB",
        (10**7, 10**8, 10**9),
        _log_size,
    ),
)
