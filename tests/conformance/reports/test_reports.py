"""Reports: the same run for people, for programs and for continuous integration."""

import asyncio
import base64
import io
import json
import re
import subprocess
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
import xmlschema

from lance_conformance.dialect import SPECIFIED
from lance_conformance.engine.conditions import Conditions, Target
from lance_conformance.engine.report.evidence import by_hand
from lance_conformance.engine.report.explain import entry, explain
from lance_conformance.engine.report.formats import console
from lance_conformance.engine.report.formats.jsonl import RunFile
from lance_conformance.engine.report.formats.junit import junit
from lance_conformance.engine.report.run import Run
from lance_conformance.engine.report.style import Style
from lance_conformance.engine.run.schedule import ask_all
from lance_conformance.engine.run.verdict import Exit, Result, Verdict, totals
from lance_conformance.engine.suites import suite_named
from lance_conformance.server.cases import all_cases
from lance_conformance.server.golden.server import serving, sessions
from lance_conformance.server.mutants import all_mutants
from lance_conformance.server.preflight import DialectAxes
from lance_conformance.wire.control import KEEPALIVE
from lance_conformance.wire.crc import crc32c

PLAIN = Style(colour=False)
ASKED = ("hdr/version-2-closes", "hdr/magic-closes", "kal/answered", "ing/ack-then-read")


@pytest.fixture(scope="module")
def finished() -> tuple[Run, list[Result]]:
    """A run against a server that serves version 2."""

    async def run() -> tuple[Run, list[Result]]:
        rules = all_mutants()["serves-version-2"].rules("specified")
        async with serving(sessions(rules)) as port:
            conditions = Conditions(Target("127.0.0.1", port), SPECIFIED, SPECIFIED, budget=5.0)
            cases = [case for case in all_cases() if case.id in ASKED]
            axes = DialectAxes(("crc32c",), "json", 16, 0.001, 0.001)
            about = Run(conditions, axes, "quick", "specified", len(cases))
            return about, await ask_all(cases, conditions)

    return asyncio.run(run())


def one_of_each() -> list[Result]:
    """A result of every verdict."""
    return [
        Result(case, verdict, reason="data", message=f"so it {verdict}", seconds=0.5)
        for case, verdict in zip(all_cases(), Verdict, strict=False)
    ]


def test_the_run_file_is_header_cases_footer(finished: tuple[Run, list[Result]]) -> None:
    """One JSON object a line, and the footer counts what is above it."""
    run, results = finished
    stream = io.StringIO()
    file = RunFile(stream)
    file.header(run)
    for result in results:
        file.case(result)
    file.footer(run, results, Exit.NONCONFORMING, 0.1)
    rows = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [row["type"] for row in rows] == ["header", *["case"] * 4, "footer"]
    assert rows[0]["target"] == str(run.conditions.target)
    assert rows[-1]["totals"] == totals(results) == {"PASS": 3, "FAIL": 1}
    assert (rows[-1]["exit_code"], rows[-1]["interrupted"]) == (1, False)


def test_the_run_file_has_every_byte(finished: tuple[Run, list[Result]]) -> None:
    """The stimulus of a case can be read back from its transcript, fault and all."""
    _, results = finished
    stream = io.StringIO()
    failed = next(result for result in results if result.verdict is Verdict.FAIL)
    RunFile(stream).case(failed)
    row = json.loads(stream.getvalue())
    (stimulus,) = (chunk for chunk in row["transcript"] if chunk.get("fault"))
    assert base64.b64decode(stimulus["data"]) == replace(KEEPALIVE, version=2).encode(crc32c)
    assert (row["clause"], row["level"], row["basis"]) == ("11.2/version", "MUST", "keyword")
    assert row["register"] == ["AMB-17"]


def test_a_failure_is_told_with_its_rule_and_its_bytes(
    finished: tuple[Run, list[Result]],
) -> None:
    """The rule, the case, what was expected, what came, the bytes of both, and how to repeat it."""
    run, results = finished
    text = "\n".join(console.problems(run, results, PLAIN, verbose=False, quiet=False))
    for part in (
        "FAIL  hdr/version-2-closes   unexpected-frame",
        "MUST 11.2/version (keyword, AMB-17): When the version is not 1",
        "expected  the connection closed without a further frame [11.2/version]",
        "received  Keepalive",
        "0004  02                        version         2  <- FAULT, on purpose",
        "0008  32 02 80 c1               header_crc      right for bytes 0-7",
        "0b 8b a2 a3",
        "the connection stayed open",
        f"lance-conformance --target {run.conditions.target} --dialect specified",
    ):
        assert part in text


def test_the_shell_command_sends_the_same_bytes() -> None:
    """What "by hand" prints is the stimulus."""
    stimulus = replace(KEEPALIVE, version=2).encode(crc32c)
    command = by_hand("localhost", 1992, stimulus)
    assert command.endswith("| nc -w 2 localhost 1992 | xxd")
    printf = command.partition(" | ")[0]
    assert subprocess.run(["sh", "-c", printf], capture_output=True, check=True).stdout == stimulus


def test_quiet_is_one_line_a_problem(finished: tuple[Run, list[Result]]) -> None:
    """With -q the rule and the reason are still there."""
    run, results = finished
    (line,) = console.problems(run, results, PLAIN, verbose=False, quiet=True)
    assert line.startswith("FAIL hdr/version-2-closes [11.2/version] unexpected-frame: ")


def test_the_last_line_names_the_broken_rules(finished: tuple[Run, list[Result]]) -> None:
    """The verdict can be read from the end of the report."""
    run, results = finished
    lines = list(console.tail(run, results, Exit.NONCONFORMING, 0.25, PLAIN))
    assert lines == ["4 cases in 0.25 s: 3 ok, 1 failed", "not conforming: 11.2/version"]


def test_a_section_is_one_line(finished: tuple[Run, list[Result]]) -> None:
    """Sections come in the order of the areas, with the counts of each verdict."""
    lines = list(console.sections(finished[1], PLAIN, verbose=False))
    assert [line.split()[:3] for line in lines] == [
        ["Header", "hdr", "1"],
        ["Keepalive", "kal", "1"],
        ["Ingest", "and", "Ack"],
    ]
    assert "1 failed" in lines[0]


def test_verbose_shows_every_case(finished: tuple[Run, list[Result]]) -> None:
    """With -v each case has a line below its section."""
    text = "\n".join(console.sections(finished[1], PLAIN, verbose=True))
    assert all(case in text for case in ASKED)


def test_every_verdict_can_be_told(finished: tuple[Run, list[Result]]) -> None:
    """No verdict breaks a report."""
    run, _ = finished
    results = one_of_each()
    text = "\n".join(console.problems(run, results, PLAIN, verbose=True, quiet=False))
    assert all(verdict in text for verdict in Verdict if verdict not in ("PASS", "SKIP"))
    assert "kit errors" in "\n".join(console.tail(run, results, Exit.KIT_ERROR, 1, PLAIN))
    assert json.dumps(run.summary(results, Exit.KIT_ERROR, 1))


def test_colour_marks_and_nothing_else() -> None:
    """Without the escape sequences the text is the same."""
    painted = Style(colour=True).verdict(Verdict.FAIL, "1 failed")
    assert painted != "1 failed"
    assert re.sub(r"\x1b\[[0-9;]*m", "", painted) == "1 failed"


def test_the_summary_counts_by_level(finished: tuple[Run, list[Result]]) -> None:
    """A program can tell MUST from SHOULD."""
    run, results = finished
    summary = run.summary(results, Exit.NONCONFORMING, 0.25)
    assert summary["levels"]["MUST"] == {"PASS": 3, "FAIL": 1}
    assert [problem["clause"] for problem in summary["problems"]] == ["11.2/version"]
    assert summary["exit_code"] == 1


@pytest.mark.parametrize("strict", [False, True])
def test_junit_totals_are_those_of_the_run(strict: bool) -> None:
    """Failures, errors and skips are what the suites say, and each case is there once."""
    results = one_of_each()
    root = ET.fromstring(junit(results, strict=strict))
    cases = root.findall("testsuite/testcase")
    found = {f"{case.get('classname')}/{case.get('name')}" for case in cases}
    assert found == {result.case.id for result in results}
    for tag in ("failure", "error", "skipped"):
        attribute = {"failure": "failures", "error": "errors", "skipped": "skipped"}[tag]
        inside = len(root.findall(f"testsuite/testcase/{tag}"))
        suites = sum(int(suite.get(attribute, "")) for suite in root.findall("testsuite"))
        assert inside == suites
        assert tag == "skipped" or inside == int(root.get(attribute, ""))
    assert root.get("failures") == ("3" if strict else "1")
    assert float(root.get("time", "")) == pytest.approx(0.5 * len(results))


@pytest.fixture(scope="module")
def schema() -> xmlschema.XMLSchema:
    """What those who read JUnit files demand of them."""
    return xmlschema.XMLSchema(Path(__file__).with_name("junit.xsd"))


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("verdict", Verdict)
def test_junit_is_valid_for_every_verdict(
    schema: xmlschema.XMLSchema, verdict: Verdict, strict: bool
) -> None:
    """One case with this verdict, and beside it one that says whatever a target may say."""
    cases = all_cases()[:2]
    results = [
        Result(cases[0], verdict, reason="data", message="so it is", seconds=0.25),
        Result(cases[1], verdict, message="\x00<&\x1b]]>\ud800", seconds=1e-9),
    ]
    schema.validate(junit(results, strict=strict))


def test_junit_of_every_verdict_and_of_no_case_is_valid(schema: xmlschema.XMLSchema) -> None:
    """Several suites, or none."""
    schema.validate(junit(one_of_each()))
    schema.validate(junit([]))


@pytest.mark.parametrize(
    ("right", "wrong"),
    [("<testcase", "<case"), ('tests="', 'tests="about '), ('skipped="0"', ""), ("message=", "m=")],
)
def test_the_schema_refuses_what_is_no_junit(
    schema: xmlschema.XMLSchema, right: str, wrong: str
) -> None:
    """A validation that cannot fail would prove nothing."""
    text = junit([Result(all_cases()[0], Verdict.FAIL, message="no")])
    assert right in text
    broken = text.replace("</testcase>", "</case>") if wrong == "<case" else text
    assert not schema.is_valid(broken.replace(right, wrong))


def test_junit_survives_whatever_a_target_says() -> None:
    """Control characters and markup in a message give valid XML."""
    result = Result(
        all_cases()[0], Verdict.FAIL, reason="data", message="\x00<&\x1b]]>\ud800\u017a"
    )
    root = ET.fromstring(junit([result]))
    failure = root.find("testsuite/testcase/failure")
    assert failure is not None
    assert failure.get("message") == "FAIL: ?<&?]]>?\u017a"
    assert failure.get("type") == "data"


def test_explain_tells_the_rule_and_the_proof() -> None:
    """What a case asks, on what it rests, and who fails it."""
    case = next(case for case in all_cases() if case.id == "hdr/version-2-closes")
    text = "\n".join(explain(suite_named("lwp"), case, PLAIN))
    assert "clause    11.2/version, section 11.2 of the LWP document" in text
    assert "an RFC 2119 keyword" in text
    assert "serves-version-2: unexpected-frame" in text


def test_explain_names_the_twin() -> None:
    """A reader sees that a case repeats another on purpose; programs do, too."""
    case = replace(all_cases()[0], twin_of=all_cases()[1].id)
    text = "\n".join(explain(suite_named("lwp"), case, PLAIN))
    assert f"twin of   {all_cases()[1].id}," in text
    assert entry(case)["twin_of"] == all_cases()[1].id


@pytest.mark.parametrize("case", all_cases(), ids=lambda case: case.id)
def test_every_case_can_be_explained(case: object) -> None:
    """For people and for programs."""
    assert "\n".join(explain(suite_named("lwp"), case, PLAIN))  # type: ignore[arg-type]  # parametrized
    assert json.loads(json.dumps(entry(case)))["id"]  # type: ignore[arg-type]  # parametrized
