"""The sync API is written from the async one."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "sdk" / "sync_from_async.py"


@pytest.mark.skipif(not shutil.which("ruff", path=str(Path(sys.executable).parent)), reason="ruff")
def test_the_sync_modules_are_current() -> None:
    """A change of the async API is in the sync one, too."""
    command = [sys.executable, SCRIPT, "--check"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
