"""The load of the limit."""

from pathlib import Path

import pytest
from bench.limit import Load, run_load


def test_a_load_that_fails_says_why(tmp_path: Path) -> None:
    """What it wrote is in the error."""
    program = tmp_path / "load"
    program.write_text("#!/bin/sh\necho 'the server is silent' >&2\nexit 1\n")
    program.chmod(0o755)
    with pytest.raises(RuntimeError, match="exit code 1: the server is silent"):
        run_load(tmp_path, "127.0.0.1:1", Load(frames=1, records=1, size=1, window=1))
