"""The page of recipes is a program: it is run as a user would, and each of its jobs is killed."""

import contextlib
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.spark.sessions.test_guide import code_of

from lance_sdk.errors import LanceError
from lance_server import running

pytestmark = [
    pytest.mark.timeout(1800),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas"),
]
FOLDERS = (
    "minutes-checkpoint",
    "orders.sqlite",
    "orders-checkpoint",
    "orders-archive",
    "orders-ledger",
)
STEPS = ("staged", "frozen", "sending", "sent")
"""Where each block that writes exactly once is killed, in turn."""
READS = ('= topic("', "topic(name).select", "spark.sql(")
"""In blocks whose reading task is killed, if nothing else in them is."""
UPSERTS = ("executed", "committed")
"""Where the driver of the upsert is killed, in turn."""
PROGRAM = Path(__file__).parent / "upsert_program.py"
Page = tuple[list[str], dict[str, Any]]


@pytest.fixture
def blocks(tmp_path: Path) -> Iterator[Page]:
    """The code of the page, at a server of its own, and the names it runs with."""
    with running(tmp_path / "data") as server, contextlib.ExitStack() as stack:
        places = {"localhost:1992": "{}:{}".format(*server.address)}
        places |= {f'"{name}"': repr(str(tmp_path / name)) for name in FOLDERS}
        found = []
        for block in code_of("spark-recipes.rst"):
            code = block
            for written, real in places.items():
                code = code.replace(written, real)
            found.append(code)
        yield found, {"__name__": "page", "stack": stack}


def step_of(code: str, killed: int) -> str | None:
    """Return at which step a block is killed; None if it neither reads nor writes."""
    if "exactly-once" in code:
        return STEPS[killed % len(STEPS)]
    if '"large-orders"' in code:
        return "written"
    return "reading" if any(text in code for text in READS) else None


def kill_upsert(codes: list[str], upsert: str) -> None:
    """Run the upsert in drivers of their own, each of which is killed at a step."""
    (arriving,) = (code for code in codes if "arriving = " in code)
    for step in UPSERTS:
        said = json.dumps({"blocks": [codes[0], arriving, upsert], "step": step})
        done = subprocess.run([sys.executable, str(PROGRAM), said], check=False)
        assert done.returncode == -signal.SIGKILL


def test_the_recipes_run_while_each_job_is_killed(spark: Any, blocks: Page, fault: Path) -> None:
    """What fails because its sink or its driver died is run again, and every record is right."""
    from pyspark.errors import PySparkException  # noqa: PLC0415 - an extra

    assert spark is not None
    codes, names = blocks
    killed = 0
    for number, code in enumerate(codes):
        step = step_of(code, killed)
        if "foreachBatch" in code:
            kill_upsert(codes, code)
        elif step is not None:
            fault.write_text(f"{step} process")
        program = compile(code, f"spark-recipes.rst, block {number}", "exec")
        try:
            exec(program, names)
        except (PySparkException, LanceError):
            assert step in STEPS
            assert not fault.exists()
            exec(program, names)
        assert not fault.exists(), (number, step)
        killed += step in STEPS
    assert killed >= 2
