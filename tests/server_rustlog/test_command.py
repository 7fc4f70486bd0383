"""The listener as part of the command."""

import subprocess
import sys
from pathlib import Path

import pytest

from lance_server.listeners.rustlog.testing import RustlogPeer
from lance_server.testing import ServerProcess


def test_the_dialect_is_an_option(tmp_path: Path) -> None:
    """``--rustlog-dialect binary`` takes no JSON."""
    options = ["--rustlog", "127.0.0.1:0", "--rustlog-dialect", "binary"]
    with (
        ServerProcess.running(tmp_path / "data", *options) as server,
        RustlogPeer(server.others["rustlog"]) as client,
    ):
        assert client.refused(b"{}") == (2, "Decode error: unknown request type: 123")


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--rustlog-dialect", "xml"], "'xml' is not one of"),
        (["--rustlog", "nonsense"], "is not an address"),
        (
            ["--rustlog", "127.0.0.1:0", "--trust-records"],
            "--rustlog does not go with --trust-records",
        ),
        (["--rustlog", "127.0.0.1:0", "--auth-token-file", "TOKENS"], "does not go with tokens"),
    ],
)
def test_options_that_make_no_sense_are_named(
    tmp_path: Path, options: list[str], complaint: str
) -> None:
    """The command does not start with less than it was told."""
    tokens = tmp_path / "tokens"
    tokens.write_text("a-token-of-some-length-0123456789\n")
    given = [str(tokens) if each == "TOKENS" else each for each in options]
    done = subprocess.run(
        [sys.executable, "-m", "lance_server", "--data-dir", str(tmp_path / "data"), *given],
        check=False,
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert done.returncode == 2
    assert complaint in done.stderr
