"""The self-check: the kit, run as a program against this server."""

import subprocess
import sys

import pytest

from lance_server import selfcheck


def test_the_kit_is_satisfied_in_every_dialect() -> None:
    """One summary line a dialect, and exit code 0."""
    outcome = subprocess.run(
        [sys.executable, "-m", "lance_server.selfcheck", "--profile", "quick"],
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert outcome.returncode == 0, outcome.stdout
    assert outcome.stdout.splitlines()[-3:] == [
        "specified: passed",
        "deployed: passed",
        "auto: passed",
    ]


def test_one_unsatisfied_dialect_is_enough_to_fail(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The exit code of the kit is shown."""
    codes = {"specified": 0, "deployed": 1, "auto": 0}
    monkeypatch.setattr(selfcheck, "check", lambda dialect, _: codes[dialect])
    assert selfcheck.main([]) == 1
    assert "deployed: FAILED, the kit exited with 1" in capsys.readouterr().out
