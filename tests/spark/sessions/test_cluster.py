"""Executors in processes of their own: reading, both sinks, and what is killed in their steps."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.timeout(1800)

Fill = Callable[..., list[bytes]]
At = Mapping[str, str]
STEPS = (
    "exactly-once.staging",
    "exactly-once.staged",
    "at-least-once.sending",
    "at-least-once.written",
)
"""Of tasks, after the sink that has them."""
COMMITS = {
    "exactly-once": ("freezing", "frozen", "tried", "sending", "sent", "done", "swept"),
    "at-least-once": ("committing", "committed"),
}
"""Steps of the driver, by the sink that has them."""
PROGRAM = Path(__file__).parent / "cluster_program.py"


@pytest.fixture
def program(sessions: None, at: At, fault: Path, tmp_path: Path) -> Callable[..., Any]:
    """Run the program of a cluster; return what it found."""
    del sessions

    def run(*steps: str, finish: Sequence[str] = ()) -> Any:
        environment = {**os.environ, "SPARK_MASTER": "local-cluster[2,1,1024]"}
        told = tmp_path / "told.json"
        said = {"at": dict(at), "steps": steps, "finish": finish}
        said |= {"folder": str(tmp_path), "fault": str(fault)}
        done = subprocess.run(
            [sys.executable, str(PROGRAM), json.dumps(said), str(told)],
            check=False,
            capture_output=True,
            text=True,
            env=environment,
        )
        if done.returncode == 0:
            return json.loads(told.read_text())
        assert steps, done.stderr
        assert not fault.exists(), done.stderr
        return None

    return run


def test_a_cluster_reads_and_writes_while_executors_are_killed(
    program: Callable[..., Any], produce: Fill, reader: Any, at: At
) -> None:
    """In each step that tasks of the sinks have; exactly-once has each record once, in order."""
    expected = produce("orders", 300)
    found = program(*STEPS)
    assert found["count"] == len(expected)
    assert found["executors"] >= 2
    assert found["killed"] == list(STEPS)
    for name in STEPS:
        assert_is_copied(reader.values(**at, topic=name), expected, name)


def assert_is_copied(found: list[bytes], expected: list[bytes], name: str) -> None:
    """Compare a copy with what its sink promises."""
    if name.startswith("exactly-once."):
        assert found == expected
    else:
        assert set(found) == set(expected)


@pytest.mark.parametrize("semantics", COMMITS)
def test_a_driver_that_is_killed_on_a_cluster_is_taken_over(
    program: Callable[..., Any], produce: Fill, reader: Any, at: At, semantics: str
) -> None:
    """In each step of the sink; the next driver ends what the last one began."""
    expected = produce("orders", 300)
    names = [f"{semantics}.{step}" for step in COMMITS[semantics]]
    begun: list[str] = []
    for name in names:
        assert program(name, finish=begun) is None
        begun = [name]
    assert program(finish=begun)["killed"] == []
    for name in names:
        assert_is_copied(reader.values(**at, topic=name), expected, name)
