"""Our own listeners, in a process of their own, asked by the command as users run it."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from lance_conformance.engine.conditions import Conditions, Target
from lance_conformance.engine.run.schedule import ask_all
from lance_conformance.engine.run.verdict import Verdict
from lance_conformance.engine.suites import suite_named
from lance_conformance.fluvio.case_context import CaseContext
from lance_conformance.fluvio.cases import all_cases
from lance_conformance.fluvio.wire.calls import list_objects
from lance_conformance.fluvio.wire.objects import Object, ObjectKind
from lance_conformance.server.preflight import PreflightError
from lance_server.testing import ServerProcess

LISTENERS = ("--fluvio-sc", "127.0.0.1:0", "--fluvio-spu", "127.0.0.1:0")
SUITE = suite_named("fluvio")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server with an empty log that listens for Fluvio's clients."""
    with ServerProcess.running(tmp_path_factory.mktemp("server") / "data", *LISTENERS) as running:
        yield running


def test_our_listeners_keep_every_rule(server: ServerProcess, tmp_path: Path) -> None:
    """All cases pass, the SHOULDs too, and the reports say the same."""
    run, junit, page = (tmp_path / name for name in ("run.jsonl", "junit.xml", "page.html"))
    target = "{}:{}".format(*server.others["fluvio-sc"])  # it tells where the SPU is
    options = ["--protocol", "fluvio", "--target", target, "--strict", "-j", "8"]
    options += ["--timeout-scale", "5"]  # enough for a busy machine
    files = ["--jsonl", str(run), "--junit", str(junit), "--html", str(page)]
    command = [sys.executable, "-m", "lance_conformance", *options, *files]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "conforming: every MUST that was asked is kept" in done.stdout
    rows = [json.loads(line) for line in run.read_text(encoding="utf-8").splitlines()]
    verdicts = {row["id"]: row["verdict"] for row in rows if row["type"] == "case"}
    assert verdicts == {case.id: "PASS" for case in all_cases()}
    assert ET.parse(junit).getroot().get("tests") == str(len(all_cases()))
    assert "fl-stream/one-at-a-time" in page.read_text(encoding="utf-8")


def test_no_topic_is_left_behind(server: ServerProcess) -> None:
    """What a case creates it deletes."""
    left = asyncio.run(_topics_behind(server.others["fluvio-sc"], "fl-produce/two-topics"))
    assert left == []


async def _topics_behind(place: tuple[str, int], case: str) -> list[Object]:
    """What topics of one case are there when it has been asked."""
    (preset,) = SUITE.presets.values()
    conditions, _ = await SUITE.preflight(Conditions(Target(*place), preset, preset))
    (result,) = await ask_all([SUITE.by_id[case]], conditions)
    assert result.verdict is Verdict.PASS, result.message
    ctx = CaseContext(conditions, "kit/test", 10.0)
    await ctx.begin()
    topics = (await ctx.sc.ask(list_objects(ObjectKind.TOPIC))).objects
    await ctx.end(clean=True)
    mine = conditions.run_id
    return [each for each in topics if mine in each.name]


def refusal(place: tuple[str, int]) -> str:
    """Why nothing can be proven about a target."""
    (preset,) = SUITE.presets.values()
    with pytest.raises(PreflightError) as caught:
        asyncio.run(SUITE.preflight(Conditions(Target(*place), preset, preset)))
    return str(caught.value)


def test_an_lwp_port_is_no_sc(server: ServerProcess) -> None:
    """The message says what was expected there; nothing is claimed about the server."""
    assert "does not answer as an SC with an SPU does" in refusal(server.address)


def test_the_spu_is_no_sc(server: ServerProcess) -> None:
    """An SPU alone cannot be asked: it is the SC that tells where it is."""
    place = server.others["fluvio-spu"]
    assert f"{place[0]}:{place[1]} does not answer as an SC" in refusal(place)
