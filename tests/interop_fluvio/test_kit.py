"""The conformance kit with a real cluster, which is its reference."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

from .cluster import Cluster

_JUDGEMENTS = Path(__file__).parents[2] / "conformance" / "judgements.toml"
_UNASKED = {"fl-frame/noise-records"}
"""What the cluster stored as it came, and cannot be read back."""
_HANGING = {"fl-topic/created-anew"}
"""Passes when it is asked again: an SC sometimes never answers who creates a topic anew, and
writes "attempt to update by stale value"."""
_COMPLETE = {0, 4}
"""Nothing is broken; with 4 a case had to be asked again."""


def test_the_kit_accuses_the_cluster_of_nothing(run: Path, tmp_path: Path) -> None:
    """Each MUST is kept, and each SHOULD that is not is one that the register explains."""
    results = tmp_path / "run.jsonl"
    (tmp_path / "cluster").mkdir()
    with Cluster(run, tmp_path / "cluster") as cluster:
        command = [sys.executable, "-m", "lance_conformance", "--protocol", "fluvio"]
        options = ["--target", cluster.sc, "--timeout-scale", "5", "--jsonl", str(results)]
        done = subprocess.run(
            [*command, *options], capture_output=True, text=True, timeout=500, check=False
        )
    assert done.returncode in _COMPLETE, done.stdout + done.stderr
    rows = [json.loads(line) for line in results.read_text(encoding="utf-8").splitlines()]
    asked = [row for row in rows if row["type"] == "case"]
    ids = {verdict: set[str]() for verdict in ("PASS", "WARN", "BLOCKED", "FLAKY")}
    for row in asked:
        ids[row["verdict"]].add(row["id"])
    assert ids["BLOCKED"] <= _UNASKED
    assert ids["FLAKY"] <= _HANGING
    explained = {each["clause"] for each in tomllib.loads(_JUDGEMENTS.read_text())["judgement"]}
    assert {row["clause"] for row in asked if row["verdict"] == "WARN"} <= explained
