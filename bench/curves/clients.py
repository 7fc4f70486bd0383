"""What sending and reading cost a program."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any

from bench import worker
from bench.curves.bed import TOPIC, Bed, batches
from bench.curves.curve import Curve, Run, Sample
from bench.peers import served

_BYTES = 32 << 20
_MOST = 100_000
_SIZES = (10, 100, 1_000, 10_000, 100_000, 1_000_000)


def _count(size: int) -> int:
    return max(8, min(_MOST, _BYTES // size))


def _sample(job: str, units: int, **arguments: Any) -> Sample:
    return Sample.of(worker.run(job, **arguments), units)


@contextmanager
def _sending(point: int, bed: Bed, *, options: Callable[[int], dict[str, Any]]) -> Iterator[Run]:
    del bed
    chosen = options(point)
    with served() as server:
        url = f"lance://{server.address}/bench"
        yield lambda: _sample("send", chosen["count"], url=url, **chosen)


@contextmanager
def _producers(point: int, bed: Bed) -> Iterator[Run]:
    del bed
    with served() as server:
        url = f"lance://{server.address}/bench"
        worker.run("send", url=url, count=1, size=100)  # creates the topic
        yield lambda: _sample("producers", point, url=url, producers=point, count=10)


@contextmanager
def _polling(point: int, bed: Bed, *, options: Callable[[int], dict[str, Any]]) -> Iterator[Run]:
    """Read a topic whose batches were sent with those options."""
    del bed
    chosen = options(point)
    with served() as server:
        url = f"lance://{server.address}/bench"
        worker.run("send", url=url, **chosen)
        yield lambda: _sample("poll", chosen["count"], url=url, records=chosen["count"])


@contextmanager
def _whole_log(point: int, bed: Bed) -> Iterator[Run]:
    """Read a whole log from the beginning; the cost is that of a batch of 64 KiB."""
    log, count = bed.log(point), batches(point)
    with served(data=log.folder) as server:
        url = f"lance://{server.address}/{TOPIC}"
        yield lambda: _sample("poll", count, url=url, records=count * 624)


def _by_size(size: int) -> dict[str, Any]:
    return {"count": _count(size), "size": size}


def _by_batch(batch: int) -> dict[str, Any]:
    return {"count": min(_MOST, 400 * batch), "size": 100, "batch_records": batch}


def _curve(
    name: str,
    axis: str,
    points: tuple[int, ...],
    opened: Callable[[int, Bed], AbstractContextManager[Run]],
    *,
    unit: str = "record",
    steepest: float = 0.0,
    large: tuple[int, ...] = (),
) -> Curve:
    return Curve(
        name=name,
        axis=axis,
        unit=unit,
        process="client",
        points=points,
        large=large,
        steepest=steepest,
        open=opened,
    )


_BATCHES = "records of 100 bytes in a batch"

CURVES = (
    _curve(
        "send/record-size",
        "record size in bytes",
        _SIZES,
        partial(_sending, options=_by_size),
        steepest=1.0,
    ),
    _curve("send/batch-size", _BATCHES, (1, 10, 100, 1_000), partial(_sending, options=_by_batch)),
    _curve(
        "send/connections",
        "producers that one program has open",
        (1, 10, 100, 1_000),
        _producers,
        unit="producer with 10 records",
    ),
    _curve(
        "poll/record-size",
        "record size in bytes",
        _SIZES,
        partial(_polling, options=_by_size),
        steepest=1.0,
    ),
    _curve("poll/batch-size", _BATCHES, (1, 10, 100, 1_000), partial(_polling, options=_by_batch)),
    _curve(
        "poll/log-size",
        "bytes in the log",
        (10**7, 10**8, 10**9),
        _whole_log,
        unit="batch of 64 KiB",
        large=(10**10,),
    ),
)
