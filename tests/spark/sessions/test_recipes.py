"""The page of recipes is a program: it is run as a user would, and its streams are killed."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.spark.sessions.test_guide import code_of

from lance_sdk.errors import LanceError
from lance_server import running

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas"),
]
FOLDERS = ("minutes-checkpoint", "orders.sqlite", "orders-archive", "orders-ledger")
STEPS = ("staged", "frozen", "sending", "sent")
"""Where each block that writes is killed, in turn."""


@pytest.fixture
def blocks(tmp_path: Path) -> Iterator[tuple[list[str], dict[str, Any]]]:
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


def test_the_recipes_run_while_their_sinks_are_killed(
    spark: Any, blocks: tuple[list[str], dict[str, Any]], fault: Path
) -> None:
    """A block that fails because its sink died is run again, and every record is right."""
    from pyspark.errors import PySparkException  # noqa: PLC0415 - an extra

    assert spark is not None
    codes, names = blocks
    killed = 0
    for number, code in enumerate(codes):
        writes = "exactly-once" in code
        if writes:
            fault.write_text(f"{STEPS[killed % len(STEPS)]} process")
        program = compile(code, f"spark-recipes.rst, block {number}", "exec")
        try:
            exec(program, names)
        except (PySparkException, LanceError):
            assert writes
            assert not fault.exists()
            exec(program, names)
        if writes:
            assert not fault.exists()
            killed += 1
    assert killed >= 2
