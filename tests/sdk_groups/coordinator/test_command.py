"""``lwp group``: a coordinator as a process, and what a person sees of its groups."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lance_sdk import GroupConsumer
from lance_sdk._api import interruptible
from lance_sdk.cli._app import run
from lance_sdk.groups import Coordinator
from lance_sdk.groups import coordinator as coordinator_module
from lance_sdk.offsets import FileStore, StoreLocked
from lance_sdk.offsets.lease import FolderLease


def test_no_groups_yet(coordinator: Coordinator, capsys: pytest.CaptureFixture[str]) -> None:
    """A coordinator without groups says so."""
    assert run(["group", "status", "--coordinator", coordinator.url]) == 0
    assert "no groups yet" in capsys.readouterr().err


def test_status(
    coordinator: Coordinator, server: Any, topics: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """Groups are listed; one of them is shown with its members and topics."""
    options: dict[str, Any] = {"group": "billing", "topics": topics.names[:2], "member": "w1"}
    with GroupConsumer(server.url, coordinator=coordinator.url, **options) as consumer:
        consumer.poll()
        consumer.commit()
        assert run(["group", "status", "--coordinator", coordinator.url]) == 0
        assert capsys.readouterr().out.splitlines()[1].split() == [
            "billing",
            "stable",
            "1",
            "sticky",
        ]
        assert run(["group", "status", "billing", "--coordinator", coordinator.url]) == 0
        shown = capsys.readouterr().out
        assert " ".join(topics.names[:2]) in shown
        assert "w1" in shown
        arguments = ["group", "status", "billing", "--coordinator", coordinator.url, "--json"]
        assert run(arguments) == 0
        [found] = json.loads(capsys.readouterr().out)
    assert [member["member"] for member in found["members"]] == ["w1"]
    assert sorted(topic["offset"] or 0 for topic in found["topics"])[1] > 0


def test_unknown_group(coordinator: Coordinator, capsys: pytest.CaptureFixture[str]) -> None:
    """A group that nobody joined is an error."""
    assert run(["group", "status", "nope", "--coordinator", coordinator.url]) == 1
    assert "there is no group 'nope'" in capsys.readouterr().err


def test_unreachable_coordinator(capsys: pytest.CaptureFixture[str]) -> None:
    """A coordinator that is not there has an exit code of its own."""
    assert run(["group", "status", "--coordinator", "lance://127.0.0.1:1"]) == 3
    assert "cannot connect" in capsys.readouterr().err


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM])
def test_serve(end: signal.Signals, server: Any, topics: Any, tmp_path: Path) -> None:
    """A coordinator serves as a process, and ends in good order when it is asked to."""
    command = [sys.executable, "-m", "lance_sdk.cli", "group", "serve", "--listen", "127.0.0.1:0"]
    command += ["--store", f"file:{tmp_path}", "--heartbeat", "50ms"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = process.stdout.readline().split()[-1]
        options: dict[str, Any] = {"group": "g", "topics": topics.names, "stop_at_end": True}
        with GroupConsumer(server.url, coordinator=url, **options) as consumer:
            assert sum(1 for _ in consumer) == 40
        process.send_signal(end)
        assert process.wait(20) == 0
    assert len(FileStore(tmp_path).commits("g")) == 4


def test_serve_needs_a_store(capsys: pytest.CaptureFixture[str]) -> None:
    """Nobody loses offsets because a store was forgotten."""
    assert run(["group", "serve"]) == 2
    assert "--store" in capsys.readouterr().err


def test_serve_ends_when_another_coordinator_takes_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A process that serves nobody would not be started again."""
    monkeypatch.setattr(interruptible, "LOOK", 0.01)
    lease = FolderLease(tmp_path, seconds=0.004)
    monkeypatch.setattr(coordinator_module, "_lease_on", lambda _store: lease)

    def taken() -> None:
        raise StoreLocked(str(tmp_path), 7)

    monkeypatch.setattr(lease, "renew", taken)
    command = ["group", "serve", "--listen", "127.0.0.1:0", "--store", f"file:{tmp_path}"]
    assert run(command) == 1
    assert "in use by process 7" in capsys.readouterr().err
