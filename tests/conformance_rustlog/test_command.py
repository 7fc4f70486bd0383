"""The command as users run it, against our own listener and against others."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from lance_conformance.app import run_app
from lance_conformance.engine.suites import suite_named
from lance_server.config.settings import Address
from lance_server.listeners.rustlog.options import RustlogOptions, Speech
from lance_server.listeners.rustlog.testing import RustlogPeer, broker
from lance_spec.messages.rustlog import ListTopicsRequest

SUITE = suite_named("rustlog")
PATIENT = ("--timeout-scale", "5")
"""Time enough for a busy machine; nobody waits for it who answers."""


@contextmanager
def listener(folder: Path, dialect: Speech = "auto") -> Iterator[str]:
    """Our listener on a log of its own; yields its address."""
    with broker(folder, RustlogOptions(dialect=dialect)) as running:
        yield str(Address(*running.address))


def kit(*arguments: str) -> int:
    """Run the command about RustLog."""
    return run_app(["run", "--protocol", "rustlog", *PATIENT, *arguments])


def test_our_listener_keeps_every_rule(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In both forms, the SHOULDs too; run file, JUnit and page tell the same."""
    run, junit, page = (tmp_path / name for name in ("run.jsonl", "junit.xml", "page.html"))
    files = ["--jsonl", str(run), "--junit", str(junit), "--html", str(page)]
    with listener(tmp_path / "data") as address:
        code = kit("--target", address, "--strict", "-j", "8", *files)
    told = capsys.readouterr().out
    assert code == 0, told
    assert "RustLog" in told
    assert "answers binary and json" in told
    rows = [json.loads(line) for line in run.read_text(encoding="utf-8").splitlines()]
    assert (rows[0]["protocol"], rows[0]["dialect"]) == ("rustlog", "both")
    wanted = {case.id: "PASS" if "both" in case.dialects else "SKIP" for case in SUITE.cases}
    assert {row["id"]: row["verdict"] for row in rows if row["type"] == "case"} == wanted
    assert ET.parse(junit).getroot().get("tests") == str(len(SUITE.cases))
    html = page.read_text(encoding="utf-8")
    assert "high_watermark" in html
    assert "a golden server" in html


@pytest.mark.parametrize("dialect", ["binary", "json"])
def test_our_listener_keeps_the_rules_of_one_form(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], dialect: Speech
) -> None:
    """Told to speak one form, it is found to speak that, and keeps its rules."""
    with listener(tmp_path, dialect) as address:
        areas = ["rl-frame", "rl-decode", "rl-text", "rl-tell", "rl-json", "rl-group"]
        code = kit("--target", address, "--strict", "--json", *areas)
    summary = json.loads(capsys.readouterr().out)
    assert (code, summary["dialect"]) == (0, dialect)
    assert set(summary["totals"]) == {"PASS", "SKIP"}
    assert summary["totals"]["PASS"] >= 25


def test_a_target_can_be_held_to_a_form(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A listener of the binary form fails the cases about JSON when both are demanded."""
    with listener(tmp_path, "binary") as address:
        code = kit("--target", address, "--dialect", "both", "--json", "rl-json/produce-missing")
    summary = json.loads(capsys.readouterr().out)
    assert (code, summary["problems"][0]["reason"]) == (1, "unexpected-frame")


def test_a_failure_shows_what_was_sent_and_how_to_ask_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Bytes with their fields, and a command that names the protocol."""
    with listener(tmp_path, "binary") as address:
        kit("--target", address, "--dialect", "both", "rl-json/produce-missing")
    told = capsys.readouterr().out
    assert "unknown request type: 123" in told
    assert f"--protocol rustlog --target {address} --dialect both" in told
    assert '{"Produce":' in told


def test_a_run_is_asked_again_as_it_was(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The run file knows which protocol it was about."""
    run = str(tmp_path / "run.jsonl")
    with listener(tmp_path / "data") as address:
        assert kit("--target", address, "--jsonl", run, "rl-topic/ping") == 0
        assert run_app(["replay", run, "rl-topic/ping"]) == 0
    assert capsys.readouterr().out.count("1 ok") == 4
    assert run_app(["diff", run, run]) == 0
    assert run_app(["report", run, "--badge", str(tmp_path / "badge.json")]) == 0
    badge = json.loads((tmp_path / "badge.json").read_text(encoding="utf-8"))
    assert (badge["label"], badge["message"]) == ("RustLog both", "1/1 MUST")


def test_a_port_of_lwp_is_no_broker(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is claimed about a server of another protocol."""
    with broker(tmp_path) as running:
        code = kit("--target", f"127.0.0.1:{running.server.address[1]}")
    assert code == 3
    assert "answers neither a binary ListTopics nor" in capsys.readouterr().err


def test_nobody_there(capsys: pytest.CaptureFixture[str]) -> None:
    """The message says what to look at."""
    assert kit("--target", "127.0.0.1:1") == 3
    assert "is the server running" in capsys.readouterr().err


def test_a_dialect_of_another_protocol_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """And those that there are are named."""
    assert kit("--target", "127.0.0.1:1", "--dialect", "specified") == 2
    assert "there are auto, both, binary, json" in capsys.readouterr().err


def test_list_and_coverage_are_about_the_protocol(capsys: pytest.CaptureFixture[str]) -> None:
    """One id a line; every clause with its cases."""
    assert run_app(["list", "--protocol", "rustlog"]) == 0
    assert capsys.readouterr().out.splitlines() == [case.id for case in SUITE.cases]
    assert run_app(["coverage", "--protocol", "rustlog", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert sorted(case for row in rows for case in row["cases"]) == sorted(SUITE.by_id)
    assert all(row["cases"] for row in rows)


def test_explain_needs_no_protocol(capsys: pytest.CaptureFixture[str]) -> None:
    """The id says it."""
    assert run_app(["explain", "rl-group/no-commit"]) == 0
    told = capsys.readouterr().out
    assert "A group without a commit gets nothing" in told
    assert "broker-groups of the RustLog specification" in told
    assert "broken servers fail it" in told


def test_a_baseline_is_about_the_protocol(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An entry about a case of another one is refused."""
    known = tmp_path / "known.toml"
    known.write_text('["kal/answered"]\nreason = "timeout"\nwhy = "a test"\n')
    assert kit("--target", "127.0.0.1:1", "--baseline", str(known)) == 2
    assert "no case 'kal/answered'" in capsys.readouterr().err


def test_a_server_that_is_only_to_be_read_is_not_changed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Cases that would store, commit or create are skipped, with the reason; no topic is made."""
    with broker(tmp_path) as running:
        address = str(Address(*running.address))
        assert kit("--target", address, "--read-only", "--json", "--strict") == 0
        with RustlogPeer(running.address) as peer:
            assert peer.ask(ListTopicsRequest()).topics == []
    totals = json.loads(capsys.readouterr().out)["totals"]
    assert totals["PASS"] >= 30
    assert totals["SKIP"] >= 70
