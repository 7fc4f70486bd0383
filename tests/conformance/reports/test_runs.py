"""Runs that are over: read back, compared, excused, and written for people and programs."""

import datetime as dt
import json
import re
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_conformance.app import run_app
from lance_conformance.engine.report.comparing import compare
from lance_conformance.engine.report.coverage import coverage, in_words
from lance_conformance.engine.report.formats.html import html
from lance_conformance.engine.report.formats.markdown import markdown
from lance_conformance.engine.report.formats.pcapng import capture
from lance_conformance.engine.report.reading import RunFileError, Told, read_lines, read_run
from lance_conformance.engine.run.baseline import (
    Baseline,
    BaselineError,
    KnownFailure,
    read_baseline,
)
from lance_conformance.engine.run.verdict import Exit, Result, Verdict
from lance_conformance.engine.suites import SUITES, suite_named
from lance_conformance.engine.transcript import Chunk
from lance_conformance.server.cases import all_cases
from lance_conformance.server.golden.server import Connections, sessions
from lance_conformance.server.golden.specified import Specified
from lance_conformance.server.mutants import all_mutants

Serve = Callable[[Connections], int]
ASKED = ("kal", "hdr/version-2-closes", "hdr/magic-closes")
TODAY = dt.date(2026, 6, 1)


@pytest.fixture
def broken_run(serve: Serve, tmp_path: Path) -> Path:
    """Return the run file of a server that serves version 2."""
    port = serve(sessions(all_mutants()["serves-version-2"].rules("specified")))
    path = tmp_path / "run.jsonl"
    assert ask(port, "--jsonl", str(path)) == Exit.NONCONFORMING
    return path


@pytest.fixture
def good_run(serve: Serve, tmp_path: Path) -> Path:
    """Return the run file of the golden server."""
    path = tmp_path / "good.jsonl"
    assert ask(serve(sessions(Specified())), "--jsonl", str(path)) == Exit.OK
    return path


def ask(port: int, *arguments: str) -> int:
    """Ask a server some cases; return the exit code."""
    target = ["--target", f"127.0.0.1:{port}", "--timeout-scale", "3", "-q"]
    return run_app(["run", *target, *arguments, *ASKED])


def test_a_run_is_read_back_as_it_was_written(broken_run: Path) -> None:
    """Header, every case and the footer."""
    run = read_run(broken_run)
    assert run.cases["hdr/version-2-closes"]["verdict"] == "FAIL"
    assert run.cases["kal/answered"]["verdict"] == "PASS"
    assert run.footer["exit_code"] == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda rows: rows[:-1], "no footer"),
        (lambda rows: [*rows, rows[1]], "follows the footer"),
        (lambda rows: [rows[0], rows[1], *rows[1:]], "second time"),
        (lambda rows: rows[1:], "expected the header"),
        (lambda rows: [rows[0].replace('"schema": 1', '"schema": 9'), *rows[1:]], "schema 9"),
        (lambda rows: [rows[0], rows[1][:40], *rows[2:]], "line 2: no JSON"),
        (lambda rows: [rows[0], "[1]", *rows[2:]], "line 2: expected an object"),
        (lambda _: [], "is empty"),
    ],
)
def test_a_damaged_run_file_is_refused(
    broken_run: Path, change: Callable[[list[str]], list[str]], message: str
) -> None:
    """With the line, and with what to do."""
    rows = change(broken_run.read_text().splitlines())
    with pytest.raises(RunFileError, match=message):
        read_lines(rows, "run.jsonl")


@given(st.lists(st.text(max_size=30), max_size=5))
def test_anything_else_is_no_run_file(lines: list[str]) -> None:
    """Whatever a file holds, the reader says what is wrong with it."""
    with pytest.raises(RunFileError):
        read_lines(lines, "f")


def test_a_comparison_tells_what_got_worse_and_better(good_run: Path, broken_run: Path) -> None:
    """In both directions."""
    good, broken = read_run(good_run), read_run(broken_run)
    (change,) = compare(good, broken)
    assert (change.case_id, change.worse, change.better) == ("hdr/version-2-closes", True, False)
    (back,) = compare(broken, good)
    assert (back.worse, back.better) == (False, True)
    assert list(compare(good, good)) == []


def test_diff_fails_when_something_got_worse(good_run: Path, broken_run: Path) -> None:
    """And only then."""
    assert run_app(["diff", str(good_run), str(broken_run)]) == Exit.NONCONFORMING
    assert run_app(["diff", str(broken_run), str(good_run)]) == Exit.OK


def excuse(reason: str = "not-closed", expires: dt.date | None = None) -> dict[str, KnownFailure]:
    """Return a baseline for the first case."""
    case_id = all_cases()[0].id
    return {case_id: KnownFailure(case_id, reason, "known", expires=expires)}


def result(verdict: Verdict, reason: str = "not-closed") -> Result:
    """Return what became of the first case."""
    return Result(all_cases()[0], verdict, reason=reason, message="it stayed open")


def test_a_known_failure_is_excused() -> None:
    """As long as it fails for the known reason."""
    baseline = Baseline(excuse(), TODAY)
    excused = baseline.apply(result(Verdict.FAIL))
    assert (excused.verdict, baseline.stale) == (Verdict.XFAIL, [])
    assert "known" in excused.message


@pytest.mark.parametrize(
    ("found", "entry", "problem"),
    [
        (result(Verdict.PASS), excuse(), "remove the entry"),
        (result(Verdict.FAIL, "timeout"), excuse(), "because of 'timeout' now"),
        (result(Verdict.FAIL), excuse(expires=dt.date(2026, 5, 31)), "expired on 2026-05-31"),
    ],
)
def test_an_entry_that_does_not_fit_is_stale(
    found: Result, entry: dict[str, KnownFailure], problem: str
) -> None:
    """It excuses nothing, and it says so."""
    baseline = Baseline(entry, TODAY)
    assert baseline.apply(found).verdict is found.verdict
    assert problem in baseline.stale[0]


def test_an_entry_counts_on_its_last_day() -> None:
    """The date is the last one on which it does."""
    baseline = Baseline(excuse(expires=TODAY), TODAY)
    assert baseline.apply(result(Verdict.FAIL)).verdict is Verdict.XFAIL


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("not toml", "line 1"),
        ('["hdr/unheard-of"]', "no case 'hdr/unheard-of'"),
        ('["kal/answered"]\nreason = "x"', "why must not be empty"),
        ('["kal/answered"]\nreason = "x"\nwhy = "y"\nuntil = 1', "unknown key 'until'"),
        ('["kal/answered"]\nreason = "x"\nwhy = "y"\nexpires = 7', "expires must be a date"),
        ('"kal/answered" = 1', "expected a table"),
    ],
)
def test_a_baseline_that_makes_no_sense_is_refused(tmp_path: Path, text: str, problem: str) -> None:
    """With the entry that is at fault."""
    path = tmp_path / "baseline.toml"
    path.write_text(text)
    with pytest.raises(BaselineError, match=problem):
        read_baseline(path, suite_named("lwp"))


def test_a_run_with_its_baseline_passes_and_a_mended_server_makes_it_stale(
    broken_run: Path, serve: Serve, tmp_path: Path
) -> None:
    """Written from a run, it excuses that run; the next entry that nothing needs ends with 6."""
    known = tmp_path / "known.toml"
    assert run_app(["baseline", str(broken_run), "-o", str(known)]) == Exit.OK
    port = serve(sessions(all_mutants()["serves-version-2"].rules("specified")))
    assert ask(port, "--baseline", str(known)) == Exit.OK
    assert ask(serve(sessions(Specified())), "--baseline", str(known)) == Exit.STALE


def test_a_baseline_is_not_written_over(broken_run: Path, tmp_path: Path) -> None:
    """What people wrote into it would be lost."""
    path = tmp_path / "known.toml"
    path.write_text("# mine")
    assert run_app(["baseline", str(broken_run), "-o", str(path)]) == Exit.USAGE
    assert path.read_text() == "# mine"


def test_replay_asks_what_did_not_pass(
    broken_run: Path, serve: Serve, capsys: pytest.CaptureFixture[str]
) -> None:
    """And nothing else, of any server."""
    port = serve(sessions(Specified()))
    arguments = ["replay", str(broken_run), "--target", f"127.0.0.1:{port}"]
    assert run_app(arguments) == Exit.OK
    assert "1 cases in" in capsys.readouterr().out


def test_replay_of_a_run_without_problems_needs_a_name(good_run: Path) -> None:
    """There is nothing to ask again."""
    assert run_app(["replay", str(good_run)]) == Exit.NOTHING_SELECTED
    assert run_app(["replay", str(good_run), "kal/unheard-of"]) == Exit.NOTHING_SELECTED


def test_every_report_is_written(broken_run: Path, tmp_path: Path) -> None:
    """From one run file."""
    files = {name: tmp_path / name for name in ("p.html", "p.md", "p.json", "pcap")}
    options = ("--html", "--md", "--badge", "--pcap")
    arguments = [
        each for pair in zip(options, map(str, files.values()), strict=True) for each in pair
    ]
    assert run_app(["report", str(broken_run), *arguments]) == Exit.OK
    assert json.loads(files["p.json"].read_text())["color"] == "red"
    assert (files["pcap"] / "hdr-version-2-closes.pcapng").stat().st_size > 500
    assert "hdr/version-2-closes" in files["p.md"].read_text()
    assert files["p.html"].read_text().startswith("<!doctype html>")


def told(**case: object) -> Told:
    """Return a run of one failed case with some of its fields replaced."""
    row = {
        "id": "kal/answered", "verdict": "FAIL", "level": "MUST", "clause": "4.3/answer",
        "section": "4.3", "basis": "prose", "rule": "a rule", "register": [], "title": "a title",
        "reason": "data", "message": "so it is", "expected": ["this"], "received": "that",
        "connection": 1, "seconds": 0.1, "retried": False, "transcript": [],
    }  # fmt: skip
    header = {
        "target": "h:1", "dialect": "specified", "dialect_asked": "auto", "profile": "full",
        "seed": 0, "kit": "1",
        "axes": {"checksums": ["crc32c"], "errors": "json", "fetch_header": 16},
    }  # fmt: skip
    footer = {"exit_code": 1, "verdict": "not conforming", "cases": 1, "seconds": 0.1}
    return Told(header, {"kal/answered": {**row, **case}}, footer)


HOSTILE = '</script><img src=x onerror="alert(1)">|`\n<!--cases-->'


def test_nothing_a_server_says_becomes_part_of_the_page() -> None:
    """Its words are shown, not obeyed."""
    page = html(told(message=HOSTILE, received=HOSTILE, expected=[HOSTILE], reason=HOSTILE))
    assert "<img" not in page
    assert page.count("</script>") == 1


def test_nothing_a_server_says_breaks_out_of_a_markdown_cell() -> None:
    """A row stays a row."""
    text = markdown(told(message=HOSTILE))
    (row,) = [line for line in text.splitlines() if "kal/answered" in line]
    assert row.count(" | ") == 4
    assert "<img" not in row


def test_the_page_fetches_nothing() -> None:
    """It is one file, and its policy keeps it so."""
    page = html(told())
    assert "default-src 'none'" in page
    assert "http://" not in page
    assert "https://" not in page


def opened(page: str) -> dict[str, bool]:
    """Whether each case is shown open, in the order of the page."""
    found = re.findall(r'<details class="case" id="([^"]*)"[^>]*?( open)?>', page)
    return {name: bool(shown) for name, shown in found}


def test_the_page_begins_with_what_is_broken(broken_run: Path) -> None:
    """The failure comes first and open; what passed is closed, whole areas of it."""
    page = html(read_run(broken_run))
    cases = opened(page)
    assert next(iter(cases)) == "hdr/version-2-closes"
    assert [name for name, shown in cases.items() if shown] == ["hdr/version-2-closes"]
    assert '<details class="area" data-area="hdr" open>' in page
    assert '<details class="area" data-area="kal">' in page


def test_the_page_can_be_narrowed_by_verdict_level_and_area(broken_run: Path) -> None:
    """Every choice is there once, with its count."""
    run = read_run(broken_run)
    page = html(run)
    for name, value in (("verdict", "FAIL"), ("verdict", "PASS"), ("level", "MUST")):
        count = sum(case[name] == value for case in run.cases.values())
        (label,) = re.findall(rf'value="{value}" checked>{value} <small>(\d+)</small>', page)
        assert int(label) == count
    assert re.findall(r'<button type="button" data-area="(\w+)"', page) == ["hdr", "kal"]


def test_a_case_of_an_area_that_is_no_more_is_shown() -> None:
    """Run files outlive the kit that wrote them."""
    run = told()
    gone = {**run.cases["kal/answered"], "id": "gone/case", "verdict": "PASS"}
    page = html(Told(run.header, {**run.cases, "gone/case": gone}, run.footer))
    assert list(opened(page)) == ["kal/answered", "gone/case"]


def test_the_page_shows_what_the_golden_server_does(broken_run: Path, good_run: Path) -> None:
    """Beside what the target did."""
    page = html(read_run(broken_run), read_run(good_run), {"kal/answered": ["a", "b"]})
    assert page.count("a golden server") == len(read_run(good_run).cases)
    assert "Proven able to fail by 2 broken servers: a, b" in page
    assert "FAULT, on purpose" in page


def blocks(data: bytes) -> list[tuple[int, bytes]]:
    """Return the blocks of a pcapng file."""
    found = []
    while data:
        kind, size = struct.unpack_from("<LL", data)
        assert struct.unpack_from("<L", data, size - 4) == (size,)
        found.append((kind, data[8 : size - 4]))
        data = data[size:]
    return found


@given(
    st.lists(
        st.tuples(st.integers(1, 3), st.sampled_from(["sent", "received"]), st.binary(max_size=99)),
        max_size=8,
    )
)
def test_a_capture_holds_every_byte_of_every_connection(
    said: list[tuple[int, str, bytes]],
) -> None:
    """Each connection is a TCP stream of its own, with sequence numbers that go on."""
    chunks = [Chunk(0.5 * n, c, d, b) for n, (c, d, b) in enumerate(said)]  # type: ignore[arg-type]
    streams: dict[tuple[int, int], bytes] = {}
    for kind, body in blocks(capture(chunks, "a case", 1992)):
        if kind == 6:
            ports = struct.unpack_from("!HH", body, 40)
            length = struct.unpack_from("<L", body, 12)[0]
            streams[ports] = streams.get(ports, b"") + body[20 + 40 : 20 + length]
    for connection in {c for c, _, _ in said}:
        client = 40_000 + connection
        sent = b"".join(b for c, d, b in said if (c, d) == (connection, "sent"))
        received = b"".join(b for c, d, b in said if (c, d) == (connection, "received"))
        assert streams[client, 1992] == sent
        assert streams[1992, client] == received


def test_every_clause_is_listed_with_its_cases() -> None:
    """And every case stands under its clause."""
    rows = coverage(suite_named("lwp"))
    assert sorted(case for row in rows for case in row["cases"]) == sorted(
        case.id for case in all_cases()
    )


@pytest.mark.parametrize("protocol", SUITES)
def test_a_clause_without_a_case_says_why(protocol: str) -> None:
    """And only such a clause does."""
    for row in coverage(suite_named(protocol)):
        assert bool(row["untested"]) != bool(row["cases"]), row["clause"]


def test_the_reason_is_shown() -> None:
    """In the line of the clause, where the number of its cases would stand."""
    rows = coverage(suite_named("lwp"))
    (row,) = [row for row in rows if row["clause"] == "5.9/answer"]
    (line,) = [line for line in in_words(rows) if "5.9/answer" in line]
    assert line.endswith(f"no case of its own: {row['untested']}")
