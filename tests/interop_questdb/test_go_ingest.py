"""The Go client's own integration tests of ingestion, with our endpoint in QuestDB's place.

Its tests of queries are left out: the endpoint answers none.
"""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from lance_server.listeners.qwp.testing import Endpoint

from .database import database
from .test_go import MISSING, MODULE, REVISION, SOURCE

pytestmark = [
    pytest.mark.skipif(bool(MISSING), reason=MISSING),
    pytest.mark.timeout(1800),  # Go compiles the client's tests first
]

_TEST = re.compile(r"^func (TestQwpIntegration\w+)\(", re.MULTILINE)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Return a folder with the Go client and its tests."""
    if SOURCE != "module":
        return Path(SOURCE)
    command = ["go", "mod", "download", "-json", f"{MODULE}@{REVISION}"]
    done = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    folder = tmp_path / "client"
    shutil.copytree(json.loads(done.stdout)["Dir"], folder, copy_function=shutil.copyfile)
    return folder


def ingest_tests(source: Path) -> set[str]:
    """Return the names of the integration tests that only write."""
    files = [each for each in source.glob("*_test.go") if "query" not in each.name]
    return {name for each in files for name in _TEST.findall(each.read_text())}


def test_its_ingest_tests_pass_with_our_endpoint(qwp: Endpoint, source: Path) -> None:
    """Every type, null, batch and number of senders that they try arrives as it was written."""
    wanted = ingest_tests(source)
    assert len(wanted) >= 30
    with database(qwp) as front:
        environment = os.environ | {"QDB_FUZZ_ADDR": front.addr, "QDB_FUZZ_STRICT": "1"}
        pattern = f"^({'|'.join(sorted(wanted))})$"
        done = subprocess.run(
            ["go", "test", "-count=1", "-json", "-run", pattern, "."],
            cwd=source,
            env=environment,
            check=False,
            capture_output=True,
            text=True,
        )
    told = [json.loads(line) for line in done.stdout.splitlines()]
    passed = {each["Test"] for each in told if each["Action"] == "pass" and "Test" in each}
    assert wanted <= passed, "".join(each.get("Output", "") for each in told) + done.stderr
