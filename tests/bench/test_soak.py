"""What a soak makes of its samples, and that it runs."""

import os
import statistics
from pathlib import Path

import pytest
from bench.soak.growth import STEP, Figures, Samples, figures
from bench.soak.memory import Resident, parse_status, resident
from bench.soak.run import soak

linux = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="it needs Linux's /proc")
STATUS = "VmRSS:\t 10 kB\nRssAnon:\t 4 kB\nRssFile:\t 5 kB\nRssShmem:\t 1 kB\nThreads:\t1\n"


def looks(*private: int) -> list[Resident]:
    """Return looks at a process."""
    return [Resident(each, 5) for each in private]


@pytest.fixture
def found() -> Figures:
    """A process that took 300 bytes at most, and grew from 100 to 110."""
    return figures(Samples(looks(300, 200, 201), looks(150, 100, 900), looks(110, 120)))


def test_private_memory() -> None:
    """Anonymous and shared memory are a process's own, mapped files are not."""
    assert parse_status(STATUS) == Resident(private=5 * 1024, mapped=5 * 1024)


def test_total() -> None:
    """Resident is what is private and what is mapped."""
    assert parse_status(STATUS).total == 10 * 1024


def test_ended_process() -> None:
    """The status of a process that has ended has no memory, which is said."""
    with pytest.raises(ValueError, match="has it ended"):
        parse_status("Name:\tpython\nState:\tZ (zombie)\n")


@linux
def test_own_memory() -> None:
    """A running process has memory of both kinds."""
    found = resident(os.getpid())
    assert min(found.private, found.mapped) > 0


def test_growth(found: Figures) -> None:
    """Growth is what is more at the last rests than at the first, where the least counts."""
    assert found.growth == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("settled", "end", "grew"),
    [
        (20 * STEP, 21 * STEP, False),
        (20 * STEP, 21 * STEP + 1, True),
        (200 * STEP, 202 * STEP, False),
        (200 * STEP, 202 * STEP + 1, True),
        (20 * STEP, 10 * STEP, False),
    ],
)
def test_grew(settled: int, end: int, grew: bool) -> None:
    """A process grew when it has over 1 % more, and over one arena more."""
    assert figures(Samples(looks(1), looks(settled), looks(end))).grew is grew


def test_load(found: Figures) -> None:
    """What a process has at full rate is told apart, with its highest."""
    assert (found.load, found.highest) == (Resident(201, 5), 300)


def test_no_looks() -> None:
    """Without looks there is no figure."""
    with pytest.raises(statistics.StatisticsError):
        figures(Samples(looks(), looks(1), looks(1)))


@linux
def test_soak(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A soak sends records, reads all but the last ones, and looks at the three processes."""
    monkeypatch.chdir(tmp_path)
    found = soak(0.1, rest=0.01, rests=1)
    assert 0 < found.read <= found.sent
    assert set(found.processes) == {"server", "producer", "consumer"}
