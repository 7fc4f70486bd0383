"""What the parts that can be left out cost: compiled loops, checks, syncs."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from bench import worker
from bench.harness import Rate, Scenario
from bench.limit import Load, compiler, run_load, tools
from bench.peers import served

_LARGE = Load(frames=1024, records=624, size=100, window=128)
_SMALL = Load(frames=32_768, records=10, size=98, window=2048)
_RECORDS = 300_000
_PURE = "the same without the compiled loops (`LANCE_PURE_PYTHON=1`)"


@contextmanager
def _servers(load: Load, *options: str, pure: bool = False) -> Iterator[tuple[Rate, Rate]]:
    """Compare the server as it is delivered with one that is started otherwise."""
    with tools() as folder, served() as ours, served(*options, pure=pure) as theirs:
        yield (
            lambda: run_load(folder, ours.address, load),
            lambda: run_load(folder, theirs.address, load),
        )


def _job(units: int, job: str, **arguments: Any) -> tuple[Rate, Rate]:
    """Compare a client's work with compiled loops and without."""

    def run(*, pure: bool) -> float:
        return units / worker.run(job, pure=pure, **arguments).seconds

    return partial(run, pure=False), partial(run, pure=True)


@contextmanager
def _decoding() -> Iterator[tuple[Rate, Rate]]:
    yield _job(600_000, "decode", records=600, size=100, times=1000)


@contextmanager
def _sending() -> Iterator[tuple[Rate, Rate]]:
    with served() as server:
        url = f"lance://{server.address}/bench"
        yield _job(_RECORDS, "send", url=url, count=_RECORDS, size=100)


@contextmanager
def _polling() -> Iterator[tuple[Rate, Rate]]:
    with served() as server:
        url = f"lance://{server.address}/bench"
        worker.run("send", url=url, count=_RECORDS, size=100)
        yield _job(_RECORDS, "poll", url=url, records=_RECORDS)


def _server_scenarios() -> tuple[Scenario, ...]:
    if compiler() is None:  # `bench.scenarios.server` says so
        return ()
    sides = {
        "compiled/ingest-64KiB": (_PURE, partial(_servers, _LARGE, pure=True)),
        "compiled/ingest-1KiB": (_PURE, partial(_servers, _SMALL, pure=True)),
        "without/record-validation": (
            "the server with `--trust-records`, frames of 1 KiB",
            partial(_servers, _SMALL, "--trust-records"),
        ),
        "without/duplicate-window": (
            "the server with `--dedup-entries 0`, frames of 1 KiB",
            partial(_servers, _SMALL, "--dedup-entries", "0"),
        ),
        "without/sync": (
            "the server with `--durability os`, frames of 64 KiB",
            partial(_servers, _LARGE, "--durability", "os"),
        ),
    }
    return tuple(
        Scenario(name=name, unit="B/s", other=other, sides=opened)
        for name, (other, opened) in sides.items()
    )


SCENARIOS = (
    *(
        Scenario(name=f"compiled/{name}", unit="records/s", other=_PURE, sides=sides)
        for name, sides in (
            ("record-decode", _decoding),
            ("sync-send-100B", _sending),
            ("poll-decode-100B", _polling),
        )
    ),
    *_server_scenarios(),
)
