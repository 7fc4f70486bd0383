"""``lwp status``, ``lwp topics retention`` and ``lwp completion``."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from lance_sdk import Client
from lance_sdk.cli.console.number_format import span
from lance_sdk.testing import FakePeer, FakeServer
from lance_spec.bodies import encode_json
from lance_spec.enums import Command
from lance_spec.frames import Frame

Call = Callable[..., Result]
SHELLS = ("bash", "zsh", "fish")


@pytest.mark.usefixtures("server")
def test_a_healthy_server_is_described(lwp: Call) -> None:
    """Role, nodes, and for how long it recognises duplicates."""
    lwp("topics", "create", "orders")
    shown = dict(line.split("  ", 1) for line in lwp("status").stdout.splitlines()[1:])
    told = {name: value.strip() for name, value in shown.items()}
    assert told["role"] == "leader"
    assert told["nodes"] == "1 of 1 healthy"
    assert told["recognises duplicates"] == "the last 1,000,000 batches, for 7 days"
    assert told["topics"] == "1"


@pytest.mark.usefixtures("server")
def test_json_holds_what_the_server_tells(lwp: Call) -> None:
    """The whole answer."""
    found = json.loads(lwp("status", "--json").stdout)
    assert (found["dialect"], found["topics"]) == ("specified", 0)
    assert found["cluster"]["is_leader"] is True
    assert found["rtt_s"] > 0


def test_a_follower_names_its_leader(lwp: Call) -> None:
    """And what it does not say is not made up."""
    status = {"is_leader": False, "leader_id": 3, "node_count": 5, "healthy_nodes": 4}

    def answer(peer: FakePeer, frame: Frame) -> bool:
        if frame.command is not Command.GET_CLUSTER_STATUS:
            return False
        peer.control(Command.CLUSTER_STATUS_RESPONSE, encode_json(status))
        return True

    with FakeServer() as server:
        server.on_control = answer
        shown = lwp("status", "--url", f"lance://127.0.0.1:{server.port}").stdout
    assert "follower of node 3" in shown
    assert "4 of 5 healthy" in shown
    assert "not that it says" in shown


def test_retention_keeps_what_is_not_said(server: Any, lwp: Call) -> None:
    """The protocol sets both limits at once, the command one."""
    lwp("topics", "create", "t", "--max-age", "1h", "--max-bytes", "1MiB")
    assert lwp("topics", "retention", "t", "--max-age", "2h").stdout == "limited topic t (id 1)\n"
    with Client(server.url) as client:
        topic = client.get_topic("t")
    assert (topic.max_age_secs, topic.max_bytes) == (7200, 1_048_576)


def test_retention_zero_lifts_a_limit(server: Any, lwp: Call) -> None:
    """As the protocol has it."""
    lwp("topics", "create", "t", "--max-age", "1h")
    lwp("topics", "retention", "t", "--max-age", "0")
    with Client(server.url) as client:
        assert client.get_topic("t").max_age_secs == 0


def test_retention_unknown_is_not_guessed(lwp: Call) -> None:
    """A server that does not tell the other limit would lose it."""
    with FakeServer() as server:
        url = f"lance://127.0.0.1:{server.port}"
        result = lwp("topics", "retention", "orders", "--max-age", "1h", "--url", url)
    assert result.exit_code == 1
    assert "give --max-bytes as well" in result.stderr


@pytest.mark.parametrize("shell", SHELLS)
def test_completion_prints_a_script(lwp: Call, shell: str) -> None:
    """Which calls lwp back."""
    result = lwp("completion", shell)
    assert result.exit_code == 0
    assert f"_LWP_COMPLETE={shell}_complete" in result.stdout


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash to complete for")
def test_bash_completes_a_command(lwp: Call, tmp_path: Path) -> None:
    """The script is one that bash takes, and what it proposes fits what was typed."""
    script = tmp_path / "complete.bash"
    script.write_text(lwp("completion", "bash").stdout)
    typed = "COMP_WORDS=(lwp prod); COMP_CWORD=1; _lwp_completion lwp; echo ${COMPREPLY[@]}"
    path = f"{sysconfig.get_path('scripts')}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", f". {script}; {typed}"],
        capture_output=True,
        env={**os.environ, "PATH": path},
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout.split() == ["produce"]


def complete(*words: str) -> list[str]:
    """What the shell is told to propose for the last word."""
    line = {"COMP_WORDS": " ".join(["lwp", *words]), "COMP_CWORD": str(len(words))}
    done = subprocess.run(
        [sys.executable, "-c", "from lance_sdk.cli import main; main()"],
        capture_output=True,
        env={**os.environ, **line, "_LWP_COMPLETE": "bash_complete"},
        text=True,
        check=True,
        timeout=60,
    )
    return [proposal.partition(",")[2] for proposal in done.stdout.split()]


@pytest.mark.usefixtures("server")
@pytest.mark.parametrize("command", [["tail"], ["topics", "show"]])
def test_names_of_topics_are_completed(lwp: Call, command: list[str]) -> None:
    """Those of the server that the environment names."""
    for name in ("orders", "others", "prices"):
        lwp("topics", "create", name, "-q")
    assert complete(*command, "o") == ["orders", "others"]


def test_completion_without_a_server_proposes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """And says nothing: it would end up on the line."""
    monkeypatch.setenv("LANCE_URL", "lance://127.0.0.1:1")
    assert complete("tail", "o") == []


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (604_800, "7 days"),
        (3600, "1 hour"),
        (90, "90 seconds"),
        (120, "2 minutes"),
        (0, "0 seconds"),
    ],
)
def test_a_length_of_time_has_the_unit_that_divides_it(seconds: int, text: str) -> None:
    """As people say it."""
    assert span(seconds) == text
