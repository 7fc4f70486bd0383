"""The server's durable ingest against the same design in C, and against the disk itself."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from bench.harness import Rate, Scenario, rate
from bench.limit import Load, compiler, limit_process, run_load, tools
from bench.peers import data_directory, group_commit, server_process

_TOTAL = 64 << 20
_DISK = "write 4 MiB + fdatasync, in a loop, to the same disk (fresh files on both sides)"
_DESIGN = "the same design in C, driven by the same C load (fresh files on both sides)"


_LARGE = Load(frames=1024, records=624, size=100, window=128)
_SMALL = Load(frames=65_536, records=10, size=98, window=2048)


@contextmanager
def _against_disk(load: Load) -> Iterator[tuple[Rate, Rate]]:
    with tools() as folder, server_process() as address, data_directory() as raw:
        yield (
            lambda: run_load(folder, address, load),
            rate(_TOTAL, lambda: group_commit(raw, _TOTAL)),
        )


@contextmanager
def _against_design(load: Load) -> Iterator[tuple[Rate, Rate]]:
    with tools() as folder, server_process() as ours, limit_process(folder) as theirs:
        yield (
            lambda: run_load(folder, ours, load),
            lambda: run_load(folder, theirs, load),
        )


@contextmanager
def _backends() -> Iterator[tuple[Rate, Rate]]:
    with (
        tools() as folder,
        server_process("--storage", "io_uring") as ours,
        server_process("--storage", "pwritev2") as theirs,
    ):
        yield (
            lambda: run_load(folder, ours, _LARGE),
            lambda: run_load(folder, theirs, _LARGE),
        )


@contextmanager
def _limit_against_disk() -> Iterator[tuple[Rate, Rate]]:
    with tools() as folder, limit_process(folder) as limit, data_directory() as raw:
        yield (
            lambda: run_load(folder, limit, _LARGE),
            rate(_TOTAL, lambda: group_commit(raw, _TOTAL)),
        )


def _scenarios() -> tuple[Scenario, ...]:
    if compiler() is None:
        print("no C compiler for x86-64: the server scenarios are left out", file=sys.stderr)
        return ()
    return (
        Scenario(
            name="server/ingest-64KiB-durable",
            unit="B/s",
            other=_DISK,
            sides=lambda: _against_disk(_LARGE),
        ),
        Scenario(
            name="server/ingest-64KiB-design",
            unit="B/s",
            other=_DESIGN,
            sides=lambda: _against_design(_LARGE),
        ),
        Scenario(
            name="server/ingest-1KiB-design",
            unit="B/s",
            other=_DESIGN,
            sides=lambda: _against_design(_SMALL),
        ),
        Scenario(
            name="server/ingest-64KiB-io_uring",
            unit="B/s",
            other="the pwritev2 backend",
            sides=_backends,
        ),
        Scenario(
            name="server/limit-64KiB",
            unit="B/s",
            other="the limit itself, which must not flatter us: " + _DISK,
            sides=_limit_against_disk,
        ),
    )


SCENARIOS = _scenarios()
