"""The command as users run it: a process, its output and its exit code."""

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from tests.platforms.systems import needs_posix

from lance_conformance.app import run_app
from lance_conformance.engine.selftest.matrix import committed
from lance_conformance.engine.suites import suite_named
from lance_conformance.server.cases import all_cases
from lance_conformance.server.golden.codec import Reply, Wire
from lance_conformance.server.golden.deployed import Deployed
from lance_conformance.server.golden.server import Connections, sessions
from lance_conformance.server.golden.specified import Specified
from lance_conformance.server.golden.state import Body, Topic
from lance_conformance.server.mutants import all_mutants
from lance_conformance.server.mutants.null import connections

Serve = Callable[[Connections], int]
COMMAND = [sys.executable, "-m", "lance_conformance"]


def kit(*arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    """Run the real command."""
    return subprocess.run(
        [*COMMAND, *arguments],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
        env={**os.environ, **environment},
    )


def target(port: int) -> list[str]:
    """The options that name a server; time enough for a busy machine."""
    return ["--target", f"127.0.0.1:{port}", "--timeout-scale", "3"]


SAMPLE = ["axis", "kal", "seg", "top", "ing/one-ack", "fet/walk"]
"""Areas and cases of every kind that are quickly asked; the self-test asks everything."""
SAMPLED = [case for case in all_cases() if {case.area, case.id} & set(SAMPLE)]
BROKEN_SERVERS = {
    "serves-any-magic": "11.1/magic",
    "explains-bad-headers": "11.1/magic",
    "serves-version-2": "11.2/version",
    "skips-the-header-crc": "11.3/header-crc",
    "skips-the-payload-crc": "11.3/payload-crc",
    "acks-oversize": "8.7/oversize",
    "answers-keepalives-twice": "4.3/one-each",
    "acks-half-the-batch-id": "4.2/batch-id",
    "stamps-acks": "4.2/other-fields",
    "acks-without-storing": "4.2/receipt",
    "sends-acks-backwards": "10.2/ack-order",
    "stores-the-latest-batch-first": "10.2/log-order",
    "writes-everything-to-the-newest-topic": "6.1/isolation",
    "takes-batches-for-unknown-topics": "6.4/unknown-topic",
    "lets-names-be-shared": "12.2/topic-exists",
    "only-pretends-to-delete": "5.6/gone",
    "counts-the-header-as-data": "5.9/bytes-returned",
    "skips-a-byte": "5.9/next-offset",
    "ignores-max-bytes": "5.8/max-bytes",
}


@pytest.mark.parametrize(("mutant", "clause"), BROKEN_SERVERS.items())
def test_a_broken_server_is_named_by_the_rule_it_breaks(
    serve: Serve, mutant: str, clause: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Against each of these broken servers the kit exits with 1 and names the broken rule."""
    port = serve(sessions(all_mutants()[mutant].rules("specified")))
    killed = committed(suite_named("lwp"))["specified"][mutant]
    case = [c for c in all_cases() if c.clause.key == clause and c.id in killed][-1]
    assert run_app(["run", *target(port), "-q", case.id]) == 1
    output = capsys.readouterr().out
    assert f"[{clause}]" in output
    assert output.splitlines()[-1] == f"not conforming: {clause}"


@pytest.mark.parametrize("dialect", ["specified", "deployed"])
def test_a_golden_server_conforms(serve: Serve, dialect: str, tmp_path: Path) -> None:
    """A sample of areas passes, with exit code 0, and the files that were asked for are there."""
    port = serve(sessions(Specified() if dialect == "specified" else Deployed()))
    run, junit = tmp_path / "run.jsonl", tmp_path / "junit.xml"
    options = ["--dialect", dialect, "--strict", "--jsonl", str(run), "--junit", str(junit)]
    done = kit(*target(port), *options, *SAMPLE)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    assert "conforming: every MUST that was asked is kept" in done.stdout
    rows = [json.loads(line) for line in run.read_text().splitlines()]
    assert [row["type"] for row in rows] == ["header", *["case"] * len(SAMPLED), "footer"]
    assert ET.parse(junit).getroot().get("tests") == str(len(SAMPLED))


def test_each_deviating_axis_is_one_failing_case(serve: Serve) -> None:
    """Held to the document, a deployed server fails on checksum and errors, and nowhere else."""
    port = serve(sessions(Deployed()))
    done = kit(*target(port), "--json", *SAMPLE)
    summary = json.loads(done.stdout)
    failed = [p["id"] for p in summary["problems"] if p["verdict"] == "FAIL"]
    assert (done.returncode, failed) == (1, ["axis/checksum", "axis/errors"])
    assert (summary["dialect_asked"], summary["dialect"]) == ("auto", "deployed")


def test_the_quick_profile_is_quick(serve: Serve) -> None:
    """It has a sixth of the cases, none that moves much data and none that waits on purpose."""
    port = serve(sessions(Specified()))
    summary = json.loads(kit(*target(port), "--profile", "quick", "--json").stdout)
    quick = [case for case in all_cases() if case.quick]
    assert summary["selected"] == len(quick) <= len(all_cases()) / 6
    assert not any(case.seconds or case.thorough or case.weight > 8 for case in quick)
    assert summary["exit_code"] == 0


def test_another_order_gives_the_same_verdicts(serve: Serve) -> None:
    """--shuffle with a seed, one case at a time."""
    port = serve(sessions(Specified()))
    options = ["--shuffle", "--seed", "11", "-j", "1", "--json"]
    plain, shuffled = (
        json.loads(kit(*target(port), *more, *SAMPLE).stdout)["totals"]
        for more in (["--json"], options)
    )
    assert plain == shuffled
    assert sum(plain.values()) == len(SAMPLED)


def test_nobody_there_is_3() -> None:
    """An address where nobody listens; the message names it."""
    with socket.socket() as bound:  # nobody else can have the port, and nobody listens there
        bound.bind(("127.0.0.1", 0))
        port = bound.getsockname()[1]
        done = kit(*target(port))
    assert done.returncode == 3
    assert f"cannot reach 127.0.0.1:{port}" in done.stderr
    assert done.stdout == ""


def test_a_server_that_speaks_no_lwp_is_3(serve: Serve) -> None:
    """A web server is not a failing LWP server: nothing is proven about it."""
    done = kit(*target(serve(connections("speaks-http", "specified"))))
    assert done.returncode == 3
    assert "nothing can be proven" in done.stderr


def test_an_unproven_must_is_4(serve: Serve) -> None:
    """Without Acks nothing can be said about Fetch: no rule of it is broken, none is proven."""
    port = serve(sessions(all_mutants()["acks-with-a-payload"].rules("specified")))
    assert kit(*target(port), "fet/from-start").returncode == 0
    port = serve(sessions(all_mutants()["acks-half-the-batch-id"].rules("specified")))
    assert kit(*target(port), "fet/from-start").returncode == 0
    port = serve(sessions(all_mutants()["acks-as-control"].rules("specified")))
    done = kit(*target(port), "fet/from-start")
    assert done.returncode == 4
    assert "BLOCKED fet/from-start [5.8/data]" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ([], 2, "Missing option '--target'"),
        (["run", "127.0.0.1:1992"], 2, "is not a case: write --target 127.0.0.1:1992"),
        (["--target", "nowhere:port"], 2, "is not HOST:PORT"),
        (["--target", "127.0.0.1:0"], 2, "not between 1 and 65535"),
        (["--target", "h:1", "--dialect", "klingon"], 2, "klingon"),
        (["--target", "h:1", "--level", "ought"], 2, "levels are must, should and may"),
        (["--target", "h:1", "--topic-prefix", "a/b"], 2, "letters, digits and dashes"),
        (["--target", "h:1", "--colour"], 2, "No such option"),
        (["--target", "h:1", "--jsonl", "/nowhere/run.jsonl"], 2, "/nowhere/run.jsonl"),
        (["--target", "h:1", "nothing/*"], 5, "no case matches 'nothing/*'"),
        (["list", "nothing/*"], 5, "no case matches 'nothing/*'"),
        (["explain", "hdr/nothing"], 5, "there is no case 'hdr/nothing'"),
    ],
)
def test_wrong_usage_is_told_in_one_line(
    arguments: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each mistake has its exit code, and the message says what was wrong."""
    assert run_app(arguments) == code
    output = capsys.readouterr()
    assert said in output.err
    assert "Traceback" not in output.err


def test_targets() -> None:
    """A host alone means the port of LWP; IPv6 stands in brackets; a URL is understood."""
    from lance_conformance.options import TARGET  # noqa: PLC0415 - only this test reads values

    read = {text: str(TARGET.convert(text, None, None)) for text in TARGETS}
    assert read == TARGETS


TARGETS = {
    "localhost": "localhost:0",
    "127.0.0.1:7": "127.0.0.1:7",
    "[::1]:7": "[::1]:7",
    "[::1]": "[::1]:0",
    "lance://h.example:7/": "h.example:7",
}


def test_list_is_one_id_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    """For shells and for completion."""
    assert run_app(["list"]) == 0
    assert capsys.readouterr().out.splitlines() == [case.id for case in all_cases()]
    assert run_app(["list", "kal", "--skip", "kal/answered"]) == 0
    left = [case.id for case in all_cases() if case.area == "kal" and case.id != "kal/answered"]
    assert capsys.readouterr().out.splitlines() == left


def test_list_as_json_has_the_details(capsys: pytest.CaptureFixture[str]) -> None:
    """For programs."""
    assert run_app(["list", "hdr/magic-closes", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["id"], row["level"], row["section"]) == ("hdr/magic-closes", "MUST", "11.1")


def test_explain(capsys: pytest.CaptureFixture[str]) -> None:
    """A case in words."""
    assert run_app(["explain", "kal/answered"]) == 0
    assert "answers-no-keepalive: timeout" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [["--help"], ["run", "--help"], ["selftest", "-h"]])
def test_help(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Help is on stdout and is no error."""
    assert run_app(arguments) == 0
    assert "Usage:" in capsys.readouterr().out


def test_a_kit_error_is_70(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A bug of the kit is not blamed on the target."""

    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("lance_conformance.app.select", broken)
    assert run_app(["list"]) == 70
    assert "the kit itself failed" in capsys.readouterr().err


def test_without_click_it_says_what_to_install(tmp_path: Path) -> None:
    """One clear line with the command, exit code 2."""
    (tmp_path / "click.py").write_text("raise ModuleNotFoundError(name='click')\n")
    done = kit("list", PYTHONPATH=str(tmp_path))
    assert done.returncode == 2
    assert done.stderr == "lance-conformance needs click: pip install 'lance-sdk[conformance]'\n"


def test_colours_are_for_terminals(serve: Serve) -> None:
    """A pipe gets plain text."""
    port = serve(sessions(Specified()))
    assert "\x1b" not in kit(*target(port), "kal").stdout


def test_a_reader_that_goes_away_is_no_error() -> None:
    """``lance-conformance list | head -1`` ends without a traceback."""
    command = f"{' '.join(COMMAND)} list --json | head -c 1"
    done = subprocess.run(["sh", "-c", command], capture_output=True, timeout=60, check=True)
    assert (done.stdout, done.stderr) == (b"[", b"")


class Evil(Specified):
    """A golden server whose JSON is meant for the terminal of the reader."""

    def created_body(self, topic: Topic, /) -> Body:
        """Half a character, an escape sequence, an id that is none, and very much of it."""
        return {"id": "x", "name": "\ud800\x1b[2J" + topic.name, "created_at": "y" * 100_000}


def test_what_a_target_says_cannot_break_the_report(serve: Serve, tmp_path: Path) -> None:
    """Hostile JSON is a failing case with a bounded message, in any encoding and any format."""
    port = serve(sessions(Evil()))
    run, junit = tmp_path / "run.jsonl", tmp_path / "junit.xml"
    options = [
        "--jsonl",
        str(run),
        "--junit",
        str(junit),
        "-v",
        "top/create",
        "top/name-free-again",
    ]
    done = kit(*target(port), *options, PYTHONIOENCODING="ascii")
    assert done.returncode == 1, done.stderr
    assert "the id of a topic must be 1 or more, is 'x'" in done.stdout
    assert "\x1b" not in done.stdout
    assert max(map(len, done.stdout.splitlines())) < 2000
    assert ET.parse(junit).getroot().get("failures") == "1"
    assert json.loads(run.read_text().splitlines()[1])["id"] == "top/create"


class Accepting(asyncio.Protocol):
    """A server that tells when somebody sends something, and never answers."""

    def __init__(self, reached: threading.Semaphore) -> None:
        self._reached = reached

    def data_received(self, _data: bytes) -> None:
        """Tell."""
        self._reached.release()


@needs_posix("SIGTERM ends a process there without a word")
def test_an_interrupt_before_the_first_case_is_130_too(serve: Serve) -> None:
    """SIGTERM while the preflight waits ends the kit at once and without a traceback."""
    reached = threading.Semaphore(0)
    port = serve(lambda: Accepting(reached))
    process = subprocess.Popen([*COMMAND, *target(port)], stderr=subprocess.PIPE)
    with process, contextlib.ExitStack() as cleanup:
        cleanup.callback(process.kill)
        assert reached.acquire(timeout=60)
        process.send_signal(signal.SIGTERM)
        assert process.communicate(timeout=60)[1] == b""
    assert process.returncode == 130


class Halting(Specified):
    """A golden server that counts batches and, from one of them on, acknowledges none.

    Args:
        most: so many batches are acknowledged; None for all.
    """

    def __init__(self, most: int | None = None) -> None:
        super().__init__()
        self._most = most
        self.counted = 0
        self.held = threading.Event()

    def acks(self, frame: Wire, /) -> list[Reply]:
        """Keep the kit waiting."""
        self.counted += 1
        if self._most is not None and self.counted > self._most:
            self.held.set()
            return []
        return list(super().acks(frame))


def test_an_interrupted_run_tidies_up_and_says_so(serve: Serve, tmp_path: Path) -> None:
    """SIGINT: exit code 130, a footer in the run file, and no topic left behind."""
    whole = Halting()
    subprocess.run(
        [*COMMAND, *target(serve(sessions(whole))), "ing/one-ack"],
        stdout=subprocess.DEVNULL,
        check=True,
        timeout=60,
    )
    rules = Halting(whole.counted - 1)  # the last batch of a run is the case's
    run = tmp_path / "run.jsonl"
    arguments = ["--target", f"127.0.0.1:{serve(sessions(rules))}", "--timeout-scale", "100"]
    process = subprocess.Popen(
        [*COMMAND, *arguments, "--jsonl", str(run), "ing/one-ack"], stdout=subprocess.DEVNULL
    )
    with contextlib.ExitStack() as cleanup:
        cleanup.callback(process.kill)
        assert rules.held.wait(timeout=60), "the batch of the case"
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
    footer = json.loads(run.read_text().splitlines()[-1])
    assert (footer["type"], footer["interrupted"], footer["exit_code"]) == ("footer", True, 130)
    assert rules.memory.topics == {}
