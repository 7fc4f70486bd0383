"""The endpoint as part of the command."""

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from lance_server.listeners.qwp.testing import QwpPeer, longs
from lance_server.testing import RawClient, ServerProcess, free_port
from lance_spec.enums import Command

from .test_upgrade import TOKEN, status_of


def test_the_command_serves_rows(tmp_path: Path) -> None:
    """``--qwp`` is all it takes."""
    addr = f"127.0.0.1:{free_port()}"
    with ServerProcess.running(tmp_path / "data", "--qwp", addr) as server:
        with QwpPeer(addr) as peer:
            assert peer.ok(longs("t", 1)).wire_sequence == 0
        with RawClient(server.address) as client:
            assert b'"t"' in bytes(client.ask(Command.LIST_TOPICS).payload)


def test_the_servers_tokens_hold_here_too(tmp_path: Path) -> None:
    """A server that asks for a token leaves no second door open."""
    tokens = tmp_path / "tokens"
    tokens.write_text(f"{TOKEN}\n")
    addr = f"127.0.0.1:{free_port()}"
    options = ["--qwp", addr, "--auth-token-file", str(tokens)]
    with ServerProcess.running(tmp_path / "data", *options):
        assert status_of(addr) == 401
        with QwpPeer(addr, headers=[("Authorization", f"Bearer {TOKEN}")]) as peer:
            assert peer.ok(longs("t", 1)).wire_sequence == 0


def test_a_script_makes_the_command_misbehave(tmp_path: Path) -> None:
    """``--qwp-script`` is read at the start."""
    script = tmp_path / "script.toml"
    script.write_text("[[rule]]\nreject = 5\n")
    addr = f"127.0.0.1:{free_port()}"
    options = ["--qwp", addr, "--qwp-script", str(script)]
    with ServerProcess.running(tmp_path / "data", *options), QwpPeer(addr) as peer:
        assert peer.refused(longs("t", 1)).status == 5


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--qwp-script", "x.toml"], "--qwp-script needs --qwp"),
        (["--qwp", "127.0.0.1:0", "--qwp-script", "nowhere.toml"], "nowhere.toml"),
        (["--qwp", "nonsense"], "is not an address"),
    ],
)
def test_options_that_make_no_sense_are_named(
    tmp_path: Path, options: list[str], complaint: str
) -> None:
    """The command does not start with less than it was told."""
    done = subprocess.run(
        [sys.executable, "-m", "lance_server", "--data-dir", str(tmp_path / "data"), *options],
        check=False,
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert done.returncode == 2
    assert complaint in done.stderr


def test_an_address_in_use_stops_the_start(tmp_path: Path) -> None:
    """It is the QWP address that is named."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        addr = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(AssertionError, match=addr):
            ServerProcess(tmp_path / "data", "--qwp", addr)


SERVE = """
from lance_server.cli import main
sys.argv = ["lance-server", "--data-dir", sys.argv[1], "--qwp", "127.0.0.1:0"]
main()
"""


@pytest.mark.parametrize(
    ("code", "hint"),
    [
        (SERVE, "lance-server: --qwp needs websockets: pip install 'lance-sdk[qwp]'"),
        ("import lance_sdk.journal.qwp", "pip install 'lance-sdk[qwp]'"),
    ],
    ids=["server", "sender"],
)
def test_without_the_package_the_remedy_is_told(tmp_path: Path, code: str, hint: str) -> None:
    """Nothing else of server and SDK needs it."""
    hidden = "import sys, lance_sdk.journal, lance_server\nsys.modules['websockets'] = None\n"
    done = subprocess.run(
        [sys.executable, "-c", hidden + code, str(tmp_path / "data")],
        check=False,
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert done.returncode != 0
    assert hint in done.stderr
