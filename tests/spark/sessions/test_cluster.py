"""Executors in processes of their own: reading, both sinks, and executors that are killed."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.timeout(900)

Fill = Callable[..., list[bytes]]
At = Mapping[str, str]
STEPS = ("staging", "staged", "sending", "written")
PROGRAM = Path(__file__).parent / "cluster_program.py"


@pytest.fixture
def program(sessions: None, at: At, fault: Path, tmp_path: Path) -> Callable[..., Any]:
    """Run the program of a cluster; return what it found."""
    del sessions

    def run(*steps: str) -> Any:
        environment = {**os.environ, "SPARK_MASTER": "local-cluster[2,1,1024]"}
        told = tmp_path / "told.json"
        said = {"at": dict(at), "steps": steps, "folder": str(tmp_path), "fault": str(fault)}
        done = subprocess.run(
            [sys.executable, str(PROGRAM), json.dumps(said), str(told)],
            check=False,
            capture_output=True,
            text=True,
            env=environment,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(told.read_text())

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
    for step in ("staging", "staged"):
        assert reader.values(**at, topic=f"copy-{step}") == expected
    for step in ("sending", "written"):
        assert set(reader.values(**at, topic=f"copy-{step}")) == set(expected)
