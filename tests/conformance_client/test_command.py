"""The command `client`: what it prints, how it ends, and drivers that do not keep to the rules."""

import json
import os
import sys
from pathlib import Path

import pytest

from lance_conformance.app import run_app
from lance_conformance.client.suite import LwpClients
from lance_conformance.engine.run.verdict import Exit

GOLDEN = f"{sys.executable} -m lance_conformance.client.golden"
DRIVERS = Path(__file__).parents[2] / "conformance" / "drivers"
FEW = ["ack/awaited", "admin/get-request", "head/magic-topics", "loss/fin-before-fetched"]


def driver(folder: Path, body: str) -> str:
    """The command of a driver that answers every line with what an expression gives."""
    script = folder / "driver.py"
    script.write_text(
        "import json, sys\n"
        "for line in sys.stdin:\n"
        "    request = json.loads(line)\n"
        f"    {body}\n"
        "    sys.stdout.flush()\n"
    )
    return f"{sys.executable} {script}"


def say(expression: str) -> str:
    """A statement that answers."""
    return f"print(json.dumps({{'id': request['id'], **{expression}}}))"


def test_the_list_has_one_id_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    """And needs no client."""
    assert run_app(["client", "--list", "--thorough"]) == Exit.OK
    lines = capsys.readouterr().out.split()
    assert lines == [case.id for case in LwpClients().cases]


def test_a_thorough_run_asks_of_each_usual_case_more_values() -> None:
    """Each case that only it asks repeats one of a usual run, but for the largest batch."""
    cases = {case.id: case for case in LwpClients().cases}
    more = [case for case in cases.values() if case.thorough]
    usual = {case.id for case in cases.values() if not case.thorough}
    assert len(more) > len(usual)
    alone = [case.id for case in more if case.twin_of not in usual]
    assert alone == ["large/beyond-the-largest"]


def test_a_right_client_conforms(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The golden client in a process of its own passes, and every report can be written."""
    names = {"--jsonl": "r.jsonl", "--html": "r.html", "--junit": "r.xml", "--md": "r.md"}
    files = [part for name, file in names.items() for part in (name, str(tmp_path / file))]
    assert run_app(["client", "--exec", GOLDEN, "--timeout-scale", "2", *files, *FEW]) == Exit.OK
    assert "4 ok" in capsys.readouterr().out
    header, *cases, footer = map(json.loads, (tmp_path / "r.jsonl").read_text().splitlines())
    assert header["protocol"] == "lwp-client"
    assert header["target"] == GOLDEN
    assert header["axes"]["dialects"] == ["specified", "deployed"]
    assert {case["id"] for case in cases} == set(FEW)
    assert footer["exit_code"] == 0
    assert "head/magic-topics" in (tmp_path / "r.html").read_text()


def test_a_failure_shows_how_to_ask_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The rule, what was expected and received, the bytes, and the command that repeats it."""
    script = tmp_path / "wrong.py"
    script.write_text(
        "import asyncio\n"
        "from lance_conformance.client.golden import __main__ as golden\n"
        "from lance_conformance.client.golden.specified import Specified\n"
        "Specified.version_ok = lambda self, version: True\n"
        "asyncio.run(golden.main())\n"
    )
    command = f"{sys.executable} {script}"
    code = run_app(["client", "--exec", command, "--timeout-scale", "2", "head/version-2-topics"])
    assert code == Exit.NONCONFORMING
    told = capsys.readouterr().out
    assert "MUST 17.5/version" in told
    assert "success, although no right answer was sent" in told
    assert f"again     lance-conformance client --exec '{command}'" in told
    assert "version         2  <- FAULT, on purpose" in told


def test_a_driver_must_refuse_what_it_does_not_know(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An operation that does not exist cannot succeed."""
    code = run_app(["client", "--exec", driver(tmp_path, say("{'ok': {}}")), "ack/awaited"])
    assert code == Exit.UNREACHABLE
    assert "'juggle', which does not exist" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("print('hello')", "which is not JSON"),
        ("print(json.dumps({'id': 0}))", "expected an object with id 1"),
        ("sys.exit(3)", "ended with exit code 3"),
        ("raise ValueError('broken')", "ValueError: broken"),
    ],
)
def test_a_driver_that_breaks_the_rules_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], body: str, words: str
) -> None:
    """What it said, or how it ended, stands in the error."""
    code = run_app(["client", "--exec", driver(tmp_path, body), "ack/awaited"])
    assert code == Exit.UNREACHABLE
    assert words in capsys.readouterr().err


def test_a_driver_that_breaks_the_rules_is_not_left_behind(tmp_path: Path) -> None:
    """Its process has ended when the run has."""
    pid = tmp_path / "pid"
    body = f"import os; open({str(pid)!r}, 'w').write(str(os.getpid())); print('hello')"
    assert run_app(["client", "--exec", driver(tmp_path, body), "ack/awaited"]) == Exit.UNREACHABLE
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["ack/awaited"], Exit.USAGE),
        (["--exec", "/no/such/program"], Exit.UNREACHABLE),
        (["--exec", "/no/such/program", "no/such-case"], Exit.NOTHING_SELECTED),
    ],
)
def test_exit_codes(arguments: list[str], code: Exit) -> None:
    """They are those of the server side."""
    assert run_app(["client", *arguments]) == code


@pytest.mark.parametrize(("api", "dialect"), [("sync", "specified"), ("async", "deployed")])
def test_our_apis_conform(api: str, dialect: str) -> None:
    """A few cases of each kind; the whole list runs in the environment `conformance`."""
    command = f"{sys.executable} {DRIVERS / f'lance_{api}.py'}"
    options = ["--dialect", dialect, "--timeout-scale", "5", "-q"]
    assert run_app(["client", "--exec", command, *options, *FEW, "follow/all", "read/goes-on"]) == 0
