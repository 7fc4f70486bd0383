"""Modules of the SDK that programs write: each is what its source makes it."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SDK = Path(__file__).parents[2] / "sdk"


@pytest.mark.skipif(not shutil.which("ruff", path=str(Path(sys.executable).parent)), reason="ruff")
@pytest.mark.parametrize("program", ["sync_from_async", "options_from_config"])
def test_what_a_program_writes_is_current(program: str) -> None:
    """A change of the async API is in the sync one, too; a new setting is a keyword."""
    command = [sys.executable, SDK / f"{program}.py", "--check"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
