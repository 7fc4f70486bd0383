"""The cores that everything measured shares."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[2]
_TOLD = "from bench import machine; machine.confine(); print(machine.facts()['cores'])"


def told(cores: str | None) -> subprocess.CompletedProcess[str]:
    """Run a process that confines itself and says how many cores it has."""
    environment = {key: value for key, value in os.environ.items() if key != "LANCE_BENCH_CORES"}
    if cores is not None:
        environment["LANCE_BENCH_CORES"] = cores
    return subprocess.run(
        [sys.executable, "-c", _TOLD],
        cwd=_ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_two_cores_are_shared() -> None:
    """Or the only one that there is: the bars stand for two."""
    assert int(told(None).stdout) == min(2, len(os.sched_getaffinity(0)))


def test_another_number_can_be_asked_for() -> None:
    """The results say which it was."""
    assert told("1").stdout == "1\n"


@pytest.mark.parametrize("cores", ["0", "100000", "two", ""])
def test_a_number_that_cannot_be_had_is_refused(cores: str) -> None:
    """With a word about which can."""
    done = told(cores)
    assert done.returncode == 1
    assert done.stderr.startswith(f"LANCE_BENCH_CORES={cores!r}: give a number from 1 to ")
