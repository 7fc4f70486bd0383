"""``lwp bridge --follow`` as a process: signals, kills, and servers that come and go."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import pytest

from lance_sdk.rustlog import RustlogClient
from lance_server.testing import ServerProcess, eventually, free_port

from .urls import Urls

KILLS = int(os.environ.get("LANCE_BRIDGE_KILLS", "1"))
BURST = 4000
PIECE = 64 * 1024
"""Bytes that another run may double, where the target does not know them again."""


@contextmanager
def bridging(*arguments: str) -> Iterator["subprocess.Popen[str]"]:
    """Run the command in a process of its own."""
    process = subprocess.Popen(
        [sys.executable, "-m", "lance_sdk.cli", "bridge", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate(timeout=30)


@pytest.mark.parametrize(
    ("source", "target", "number"),
    [
        ("lance", "rustlog", signal.SIGINT),
        ("rustlog", "fluvio", signal.SIGTERM),
        ("fluvio", "lance", signal.SIGINT),
    ],
)
def test_a_live_copy_ends_cleanly(
    urls: Urls, tmp_path: Path, source: str, target: str, number: signal.Signals
) -> None:
    """What comes is copied until a signal; then everything is noted, and nothing is left out."""
    state = tmp_path / "state"
    urls.fill("from", b"before")
    urls.fill("to")
    ends = urls.of(source, "from"), urls.of(target, "to")
    with bridging(*ends, "--create-topic", "--follow", "--state", str(state), "--json") as process:
        eventually(lambda: urls.count("to") == 1, 30)
        urls.fill("from", b"after")
        eventually(lambda: urls.count("to") == 2, 30)
        process.send_signal(number)
        output, problems = process.communicate(timeout=30)
    assert process.returncode == 128 + number, problems
    assert urls.bodies("to") == [b"before", b"after"]
    told = json.loads(output)
    assert told["records"] == 2
    noted = json.loads(state.read_text())["places"]
    assert told["places"] == {number: each["following"] for number, each in noted.items()}


def test_a_second_signal_ends_at_once(urls: Urls) -> None:
    """Nobody waits for a target that does not answer."""
    urls.fill("from", b"a")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        target = f"rustlog://127.0.0.1:{silent.getsockname()[1]}/to"
        with bridging(urls.of("lance", "from"), target, "--timeout", "5m") as process:
            silent.settimeout(30)
            peer, _ = silent.accept()
            with peer:
                assert peer.recv(1)
                process.send_signal(signal.SIGINT)
                assert process.stderr is not None
                assert "another signal ends at once" in process.stderr.readline()
                process.send_signal(signal.SIGINT)
                assert process.wait(30) == 130


@pytest.mark.parametrize(
    ("source", "target"),
    [("rustlog", "fluvio"), ("lance", "rustlog"), ("fluvio", "lance"), ("lance", "lance")],
)
def test_a_killed_copy_leaves_nothing_out(
    urls: Urls, tmp_path: Path, source: str, target: str
) -> None:
    """SIGKILL doubles nothing in LWP and Fluvio, in RustLog one piece at most; no record goes."""
    arguments = (
        urls.of(source, "from"),
        urls.of(target, "to"),
        *("--state", str(tmp_path / "state")),
    )
    urls.fill("to")
    wanted: list[bytes] = []
    for _ in range(KILLS):
        burst = [b"%d" % (len(wanted) + each) + b"." * 200 for each in range(BURST)]
        wanted += burst
        urls.fill("from", *burst)
        before = urls.count("to")
        with bridging(*arguments, "--follow") as process:
            eventually(lambda seen=before: urls.count("to") > seen, 30)
            process.kill()
    with bridging(*arguments) as process:
        assert process.wait(60) == 0
    stored = [int(each.rstrip(b".")) for each in urls.bodies("to")]
    assert set(stored) == set(range(len(wanted)))
    assert all(after == before + 1 or after <= before for before, after in pairwise(stored))
    doubled = KILLS * PIECE // 200 if target == "rustlog" else 0
    assert len(stored) <= len(wanted) + doubled


def test_servers_may_come_and_go(tmp_path: Path) -> None:
    """A live copy goes on by itself when the server of both ends was restarted."""
    data = tmp_path / "data"
    address, rustlog = (f"127.0.0.1:{free_port()}" for _ in range(2))
    fixed = ("--rustlog", rustlog, "--listen", address)
    ends = f"rustlog://{rustlog}/from", f"lance://{address}/to"
    first = ServerProcess(data, *fixed)
    try:
        with RustlogClient(rustlog) as client:
            client.create_topic("from")
            client.create_topic("to")
            client.produce("from", [b"before"])
            with bridging(*ends, "--follow") as process:
                eventually(lambda: bool(client.fetch("to")), 30)
                first.end(signal.SIGKILL)
                assert process.stderr is not None
                assert any(line.startswith("warning: ") for line in process.stderr)
                with ServerProcess.running(data, *fixed):
                    client.produce("from", [b"after"])
                    eventually(lambda: values(client) == [b"before", b"after"], 30)
                    process.send_signal(signal.SIGINT)
                    process.communicate(timeout=30)
        assert process.returncode == 130
    finally:
        if first.process.poll() is None:
            first.end(signal.SIGKILL)


def test_a_copy_waits_for_servers_that_are_away_at_its_start(tmp_path: Path) -> None:
    """A live copy that is started before its servers begins once they are there."""
    data = tmp_path / "data"
    address, rustlog = (f"127.0.0.1:{free_port()}" for _ in range(2))
    fixed = ("--rustlog", rustlog, "--listen", address)
    with ServerProcess.running(data, *fixed), RustlogClient(rustlog) as client:
        client.create_topic("from")
        client.create_topic("to")
        client.produce("from", [b"a"])
    ends = f"rustlog://{rustlog}/from", f"lance://{address}/to"
    with bridging(*ends, "--follow") as process:
        assert process.stderr is not None
        assert process.stderr.readline().startswith("warning: ")
        with (
            ServerProcess.running(data, *fixed),
            RustlogClient(rustlog) as client,
        ):
            eventually(lambda: values(client) == [b"a"], 30)
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=30)
    assert process.returncode == 130


def values(client: RustlogClient) -> list[bytes]:
    """Return the records that arrived."""
    return [each.value for each in client.fetch("to").records]
