"""``vectors check --exec``: this package's adapter is right, and wrong answers are noticed."""

import io
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lance_spec import __main__ as command
from lance_spec import vectors
from lance_spec.vectors import FAMILIES, Vector
from lance_spec.vectors import adapter as adapter_module
from lance_spec.vectors._contract import declared, hello, pieces, problem, requests
from lance_spec.vectors._exec import Report, Selection, judge, judge_all
from lance_spec.vectors._known import KnownDifference, KnownError, load_known
from lance_spec.vectors._process import AdapterError, AdapterProcess
from lance_spec.vectors.adapter import answer

Json = dict[str, Any]

OURS = f"{sys.executable} -m lance_spec.vectors.adapter"
BEYOND_MESSAGES = (
    "frame_encode",
    "frame_stream",
    "tlv_encode",
    "segment_scan",
    "error_payload",
    "json_body",
    "file_name",
    "group_text",
    "packed_field",
    "group_message",
    "replication_message",
    "lz4_frame",
    "slot_message",
    "slot_file",
    "slot_segment",
    "qwp_message",
    "qwp_upgrade",
    "fluvio_message",
    "fluvio_exchange",
    "fluvio_records",
    "rustlog_message",
    "rustlog_json",
)
"""Families that `test_vectors` does not hold against the codec itself."""


def ours(request: Json) -> Json:
    """The answer of this package, as it crosses a pipe."""
    crossed: Json = json.loads(json.dumps(answer(request), default=bytes.hex))
    return crossed


def find(test_id: str) -> tuple[str, Vector]:
    """A test and its family."""
    found = ((f, each) for f in vectors.FAMILIES for each in vectors.load(f) if each.id == test_id)
    return next(found)


@pytest.mark.parametrize(
    ("family", "vector"),
    [
        pytest.param(family, vector, id=vector.id)
        for family in BEYOND_MESSAGES
        for vector in vectors.load(family)
    ],
)
def test_this_package_answers_as_the_vectors_say(family: str, vector: Vector) -> None:
    """Asked as `vectors check --exec` asks, without a process."""
    assert judge(ours, family, vector) is None


@pytest.mark.parametrize("family", [each for each in BEYOND_MESSAGES if each.endswith("_message")])
def test_messages_that_nest_are_written_as_they_were_read(family: str) -> None:
    """The adapter gives their bytes again, so that the contract compares them."""
    for vector in vectors.load(family):
        if vector.result == "valid":
            assert ours(next(requests(family, vector)))["bytes"] == vector.test["bytes"], vector.id


@pytest.mark.parametrize("family", vectors.FAMILIES)
def test_a_question_does_not_give_the_answer_away(family: str) -> None:
    """An adapter must not be able to repeat what it was told."""
    given = {"frame_encode": {"fields"}, "tlv_encode": {"records"}}.get(family, {"bytes", "pieces"})
    for vector in vectors.load(family):
        for request in requests(family, vector):
            assert set(request) <= {"id", "family", "group", "message", "version"} | given


def test_pieces_are_the_whole() -> None:
    """However it is cut, nothing is lost."""
    data = bytes(range(100))
    for cut in ({"every": 7}, {"every": 100}, {"every": 1}, {"at": 44}):
        assert b"".join(pieces(data, cut)) == data


WRONG: tuple[tuple[str, Callable[[Json], Json]], ...] = (
    ("crc-crc32c-check", lambda a: a | {"crc": "00000000"}),
    ("crc-crc32c-check", lambda _: {}),
    ("specified-ingest", lambda a: a | {"outcome": {"action": "close"}}),
    ("specified-ingest", lambda a: a | {"outcome": {"action": "wait"}}),
    ("specified-ingest", lambda a: a | {"fields": {}}),
    ("specified-ingest", lambda a: a | {"fields": a["fields"] | {"batch_id": 2}}),
    ("specified-ingest", lambda _: {}),
    ("specified-ingest", lambda _: {"outcome": "accept"}),
    ("specified-ingest", lambda _: {"outcome": {"action": ["accept"]}}),
    ("specified-version-2", lambda a: a | {"outcome": {"action": "accept"}}),
    ("specified-version-2", lambda a: a | {"outcome": a["outcome"] | {"reason": "bad_magic"}}),
    ("specified-version-2", lambda a: a | {"outcome": a["outcome"] | {"offset": 5}}),
    ("encode-specified-ingest", lambda a: a | {"bytes": a["bytes"][:-2] + "00"}),
    ("encode-specified-ingest", lambda _: {}),
    ("stream-specified-acks", lambda a: a | {"frames": a["frames"][:-1]}),
    ("stream-specified-acks", lambda a: a | {"frames": a["frames"][::-1][1:] + a["frames"][1:2]}),
    ("stream-specified-acks-magic-in-last", lambda a: a | {"frames": []}),
    ("tlv-two", lambda a: a | {"records": a["records"][:1]}),
    ("tlv-two", lambda a: a | {"outcome": {"action": "reject"}}),
    ("control-Fetch-numbers", lambda a: a | {"fields": a["fields"] | {"topic_id": 0}}),
    ("control-Fetch-numbers", lambda a: {"outcome": a["outcome"]}),
    ("control-Fetch-cut-at-0", lambda a: a | {"outcome": {"action": "accept"}, "fields": {}}),
    ("engine-SidecarEntry-rot-at-0", lambda _: {"outcome": {"action": "accept"}}),
    ("scan-example-torn-at-12", lambda a: a | {"end": a["end"] + 1}),
    ("scan-example-torn-at-12", lambda a: a | {"needed": a["needed"] + 1}),
    ("error-code-10", lambda a: a | {"fields": a["fields"] | {"code": 17}}),
    ("error-details-batch-id", lambda a: a | {"fields": a["fields"] | {"details": {}}}),
    ("qwp-Dictionary-two", lambda a: a | {"fields": a["fields"] | {"symbols": ["A0"]}}),
    ("qwp-Dictionary-two", lambda a: a | {"bytes": a["bytes"][:-2]}),
    ("fluvio-Batch-rot-at-57", lambda _: {"outcome": {"action": "accept"}, "fields": {}}),
    ("fluvio-PartitionObject-hello", lambda a: a | {"fields": {}}),
    ("fluvio-Record-and-a-byte", lambda _: {"outcome": {"action": "wait"}}),
    ("rustlog-OffsetFetchResponse-zero", lambda a: a | {"fields": {"offset": None}}),
    ("slot-file-symbols-two-chunks-bit-in-25", lambda _: {"outcome": {"action": "reject"}}),
    (
        "qwp-upgrade-answer-plain-status-401",
        lambda a: {"outcome": a["outcome"] | {"reason": "transient"}},
    ),
    ("body-topic-list-two", lambda a: a | {"fields": {"topics": a["fields"]["topics"][:1]}}),
)
"""A test, and what a wrong answer is made of."""


@pytest.mark.parametrize(("test_id", "spoil"), WRONG)
def test_a_wrong_answer_is_noticed(test_id: str, spoil: Callable[[Json], Json]) -> None:
    """The right answer passes, the spoiled one does not."""
    family, vector = find(test_id)
    request = next(requests(family, vector))
    assert problem(family, vector, ours(request)) is None
    assert problem(family, vector, spoil(ours(request)))


def test_an_answer_may_say_less_about_why() -> None:
    """Where and why are compared where they are given; an outcome always is."""
    family, vector = find("specified-version-2")
    assert problem(family, vector, {"outcome": {"action": "close"}}) is None
    assert problem(family, vector, {"outcome": {"action": "reject"}}) is None
    assert problem(family, vector, {"outcome": {"action": "close", "offset": "4"}}) is None


def silent(_request: Json) -> Json:
    """An adapter that takes nothing."""
    return {"skip": "not today"}


def test_a_program_that_skips_everything_does_not_pass() -> None:
    """Nothing was shown."""
    report = judge_all(silent, [])
    assert not report.ok
    assert not any(report.passed.values())
    assert report.skipped == {"not today": sum(report.passed_over.values())}


def one_wrong(request: Json) -> Json:
    """An adapter that is wrong about one test."""
    return {} if request["id"] == "specified-ack" else ours(request)


def test_a_difference_is_reported_by_its_test() -> None:
    """One wrong answer among all is found."""
    report = judge_all(one_wrong, [])
    assert set(report.differences) == {"specified-ack"}
    assert not report.ok


def test_a_known_difference_passes() -> None:
    """Patterns are those of a shell."""
    report = judge_all(one_wrong, [KnownDifference("specified-a?k", "It is so")])
    assert (report.known, report.differences, report.ok) == (1, {}, True)


def test_a_known_difference_that_is_gone_is_reported() -> None:
    """The list stays true."""
    report = judge_all(
        one_wrong, [KnownDifference("specified-ack", "So"), KnownDifference("deployed-*", "Not so")]
    )
    assert report.stale == ["deployed-*"]
    assert not report.ok


def hearing(families: Any) -> Callable[[Json], Json]:
    """An adapter that declares families."""
    return lambda request: {"families": families} if request["id"] == "hello" else ours(request)


def test_families_that_are_not_declared_are_counted() -> None:
    """They are passed over, and never silently."""
    report = judge_all(hearing(["crc"]), [])
    assert report.passed == {"crc": 40}
    assert report.undeclared.total() + 40 == sum(len(vectors.load(f).tests) for f in FAMILIES)
    assert report.ok


def test_an_adapter_that_declares_nothing_does_not_pass() -> None:
    """Nothing was shown."""
    assert not judge_all(hearing([]), []).ok


@pytest.mark.parametrize("families", ["crc", [7], ["crc", "nonsense"], None])
def test_a_declaration_must_name_families(families: Any) -> None:
    """A slip of the pen is not taken for a smaller choice."""
    with pytest.raises(AdapterError, match="hello"):
        judge_all(hearing(families), [])


def test_an_adapter_may_leave_families_out_of_its_greeting() -> None:
    """It is asked about all of them."""
    assert judge_all(lambda request: ours(request) | {"name": "x"}, [], CRC).program == "x"


CRC = Selection(families=("crc",))


@pytest.mark.parametrize(
    ("selection", "count"),
    [
        (CRC, 40),
        (Selection(families=("crc", "crc")), 40),
        (Selection(families=("crc",), groups=("ieee",)), 20),
        (Selection(groups=("crc32c", "ieee")), 40),
        (Selection(ids=("crc-*-check",)), 2),
        (Selection(families=("frame_decode",), groups=("specified",), ids=("*-version-*",)), 4),
        (Selection(groups=("WatchRequest",), ids=("captured-*",)), 3),
    ],
)
def test_tests_are_selected(selection: Selection, count: int) -> None:
    """By family, by what their group is about, by id; all conditions hold at once."""
    assert len(selection.tests()) == count
    assert judge_all(ours, [], selection).passed.total() == count


@pytest.mark.parametrize("selection", [Selection(ids=("nobody",)), Selection(families=("no",))])
def test_a_selection_of_nothing_is_an_error(selection: Selection) -> None:
    """A slip of the pen is not a success."""
    with pytest.raises(ValueError, match=r"no test matches|no family"):
        judge_all(ours, [], selection)


def test_known_differences_are_not_stale_in_a_selection() -> None:
    """A pattern may speak of tests that were left out."""
    assert judge_all(ours, [KnownDifference("tlv-*", "So")], CRC).stale == []


def test_a_run_can_be_watched() -> None:
    """The family, how many tests are done, and how many there are."""
    seen: list[tuple[str, int, int]] = []
    judge_all(ours, [], CRC, lambda *each: seen.append(each))
    assert seen == [("crc", done, 40) for done in range(40)]


def test_a_program_may_write_what_it_read() -> None:
    """The bytes of a valid test are compared where they are given; a shorter form is found."""
    family, vector = find("qwp-Dictionary-later")
    right = ours(next(requests(family, vector)))
    assert problem(family, vector, {name: right[name] for name in ("outcome", "fields")}) is None
    assert problem(family, vector, right | {"bytes": "00"}) == "wrote 00"


def script(tmp_path: Path, text: str) -> list[str]:
    """A program that is no good adapter."""
    (tmp_path / "adapter.py").write_text(f"import json, sys, time\n{text}\n")
    return [sys.executable, str(tmp_path / "adapter.py")]


ANSWERS = "for line in sys.stdin:\n    "


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (f"{ANSWERS}print('?', flush=True)", "is not JSON"),
        (f"{ANSWERS}print('[1]', flush=True)", "another id"),
        (f"{ANSWERS}print('[' * 100000, flush=True)", "is not JSON"),
        (f"{ANSWERS}print('9' * 100000, flush=True)", "is not JSON"),
        (f"""{ANSWERS}print('{{"id": "b"}}', flush=True)""", "another id"),
        ("", "ended before|closed its input"),
        ("sys.stdin.readline(); sys.stdin.close(); sys.stdin = None", "ended before"),
        (f"{ANSWERS}sys.stdout.write('x' * 5000000)", "longer than"),
    ],
)
def test_a_program_that_breaks_the_contract_is_named(
    tmp_path: Path, text: str, complaint: str
) -> None:
    """It ends the run with a sentence, and never hangs it."""
    with (
        AdapterProcess(script(tmp_path, text), 30.0) as adapter,
        pytest.raises(AdapterError, match=complaint),
    ):
        adapter.ask({"id": "a"})


def test_a_program_that_says_nothing_is_not_waited_for(tmp_path: Path) -> None:
    """Every wait has a deadline."""
    process = AdapterProcess(script(tmp_path, "sys.stdin.read()"), 0.2)
    with process as adapter, pytest.raises(AdapterError, match=r"within 0\.2 s"):
        adapter.ask({"id": "a"})


def test_a_program_that_reads_nothing_is_not_waited_for(tmp_path: Path) -> None:
    """A pipe that is full does not stop the run, and a program that goes on is ended."""
    process = AdapterProcess(script(tmp_path, "time.sleep(100)"), 0.2)
    with process as adapter, pytest.raises(AdapterError, match="read its input"):
        adapter.ask({"id": "a" * 1_000_000})
    assert "returncode=-9" in repr(process)


def test_a_program_that_is_not_there_is_named() -> None:
    """The error says which."""
    with pytest.raises(AdapterError, match="no-such-adapter"):
        AdapterProcess(["no-such-adapter"], 1.0)


@pytest.mark.parametrize(
    "text", ["{", "{}", "[1]", '[{"tests": "a"}]', '[{"tests": "a", "why": ""}]']
)
def test_a_list_of_differences_is_checked(tmp_path: Path, text: str) -> None:
    """Every entry has a pattern and a reason."""
    (tmp_path / "known.json").write_text(text)
    with pytest.raises(KnownError):
        load_known(tmp_path / "known.json")


README = (vectors.root() / "README.md").read_text()
EXCHANGE = re.findall(r"→ (\{.*\})\n    ← (\{.*\})", README)
"""The questions and answers that the README shows."""


@pytest.mark.parametrize(("question", "answer_"), EXCHANGE[1:])
def test_the_exchange_in_the_readme_is_true(question: str, answer_: str) -> None:
    """Each question is what is asked, each answer is right."""
    asked, answered = json.loads(question), json.loads(answer_)
    family, vector = find(asked["id"])
    assert next(requests(family, vector)) == asked
    assert "skip" in answered or problem(family, vector, answered) is None


def test_the_exchange_in_the_readme_begins_with_a_greeting() -> None:
    """And goes on to every kind of answer."""
    asked, answered = (json.loads(each) for each in EXCHANGE[0])
    assert asked == hello(["crc", "tlv_decode", "fluvio_message"])
    assert declared(answered, asked["families"]) == {"crc", "tlv_decode"}
    assert len(EXCHANGE) >= 6


def test_the_readme_lists_every_file() -> None:
    """A family that nobody hears of is of no use."""
    assert set(re.findall(r"^\| `(\w+)\.json` \|", README, re.MULTILINE)) == set(FAMILIES)


def test_the_published_client_has_a_list_of_its_differences() -> None:
    """It is well formed; whether it is true is checked where that client is installed."""
    known = load_known(vectors.root() / "adapters" / "lnc_client.known.json")
    ids = [vector.id for family in vectors.FAMILIES for vector in vectors.load(family)]
    for each in known:
        assert any(each.covers(test_id) for test_id in ids), each.tests


@pytest.mark.parametrize(
    "path",
    [
        *(vectors.root() / "adapters").glob("*adapter*"),
        Path(adapter_module.__file__),
    ],
    ids=lambda path: path.name,
)
def test_an_adapter_is_short(path: Path) -> None:
    """A hundred lines are enough."""
    assert len(path.read_text().splitlines()) <= 100


def test_the_command_passes_for_this_package(capsys: pytest.CaptureFixture[str]) -> None:
    """A real process, a line for every question."""
    assert command.main(["vectors", "check", "--exec", OURS]) == 0
    told = capsys.readouterr().out
    assert ", 0 differ, 0 known to differ, 0 skipped, 19 not declared" in told


def skipping(request: Json) -> Json:
    """An adapter that takes one test of a family."""
    if request["id"] == "hello":
        return {}
    tests = vectors.load("crc").tests
    return ours(request) if request["id"] == tests[0].id else {"skip": "not today"}


def required(ask: Callable[[Json], Json], *families: str) -> Report:
    """What comes of requiring families."""
    return judge_all(ask, [], Selection(("crc", "tlv_decode"), required=families))


def test_a_required_family_may_not_be_skipped_in_part() -> None:
    """One pass beside many skips is no proof of a family."""
    report = required(skipping, "crc")
    assert (report.passed.total(), report.ok) == (1, False)
    assert report.unmet == {"crc": "the adapter skips 39 of its tests"}


def test_a_required_family_must_be_declared() -> None:
    """What an adapter does not take cannot be shown."""
    report = required(hearing(["crc"]), "crc", "tlv_decode")
    assert report.unmet == {"tlv_decode": "the adapter does not declare it"}
    assert not report.ok


def test_a_family_that_is_shown_wholly_meets_the_demand() -> None:
    """Families that are not required may be passed over."""
    report = required(hearing(["crc"]), "crc")
    assert (report.unmet, report.ok) == ({}, True)


def test_what_is_not_selected_cannot_be_required() -> None:
    """A typing mistake must not pass."""
    with pytest.raises(ValueError, match="no test of crcs is selected"):
        required(ours, "crcs")


@pytest.mark.parametrize(("family", "code"), [("crc", 0), ("all", 0), ("fluvio_message", 2)])
def test_the_command_requires(family: str, code: int) -> None:
    """All means what is selected; a family that is not is an error of usage."""
    arguments = ["vectors", "check", "--exec", OURS, "--family", "crc", "--require", family]
    assert command.main(arguments) == code


def test_the_command_reports_in_json(capsys: pytest.CaptureFixture[str]) -> None:
    """For another program to read."""
    arguments = ["vectors", "check", "--exec", OURS, "--family", "crc", "--json"]
    assert command.main(arguments) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["ok"], report["program"], report["passed"]) == (True, "lance_spec", {"crc": 40})


def test_the_command_lists_what_can_be_chosen(capsys: pytest.CaptureFixture[str]) -> None:
    """Families and groups, with how many tests they have."""
    assert command.main(["vectors", "list", "--family", "crc"]) == 0
    assert capsys.readouterr().out.split("\n")[:2] == ["crc: 40 tests", "     20 Crc crc32c"]
    assert command.main(["vectors", "list", "--family", "crc", "--json"]) == 0
    (first, _) = json.loads(capsys.readouterr().out)["crc"]
    assert first == {"group": ["Crc", "crc32c"], "tests": 20}


@pytest.mark.parametrize(
    "arguments",
    [
        ["list", "--family", "nonsense"],
        ["check", "--exec", OURS, "--family", "nonsense"],
        ["check", "--exec", OURS, "--id", "nobody"],
        ["check", "--id", "crc-*"],
        ["check", "--family", "nonsense"],
    ],
)
def test_the_command_exits_2_for_what_is_not_there(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """A sentence says what to do."""
    assert command.main(["vectors", *arguments]) == 2
    assert capsys.readouterr().err


@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "soon"])
def test_a_time_limit_must_be_one(seconds: str, capsys: pytest.CaptureFixture[str]) -> None:
    """It is refused before anything starts."""
    with pytest.raises(SystemExit) as refused:
        command.main(["vectors", "check", "--exec", OURS, "--timeout", seconds])
    assert refused.value.code == 2
    assert "--timeout" in capsys.readouterr().err


def test_progress_is_shown_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """One line that is written over, and gone at the end."""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    assert command.main(["vectors", "check", "--exec", OURS, "--family", "crc"]) == 0
    assert "0 of 40  crc" in terminal.getvalue()
    assert terminal.getvalue().endswith("\r\x1b[K")


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        """Whether somebody watches."""
        return True


def test_a_reader_that_has_seen_enough_is_no_failure() -> None:
    """`vectors list | head` ends without a traceback."""
    listing = subprocess.Popen(
        [sys.executable, "-m", "lance_spec", "vectors", "list", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert listing.stdout is not None
    listing.stdout.close()
    _, complaints = listing.communicate(timeout=60)
    assert complaints == b""


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_an_adapter_in_another_language_runs(capsys: pytest.CaptureFixture[str]) -> None:
    """The example of the README, in JavaScript."""
    program = f"node {vectors.root() / 'adapters' / 'node_adapter.mjs'}"
    assert command.main(["vectors", "check", "--exec", program]) == 0
    assert "node example: 76 passed, 0 differ" in capsys.readouterr().out


def test_the_command_exits_1_on_a_difference(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every difference is a line."""
    text = f"""{ANSWERS}print(json.dumps({{"id": json.loads(line)["id"]}}), flush=True)"""
    assert command.main(["vectors", "check", "--exec", " ".join(script(tmp_path, text))]) == 1
    assert "… and " in capsys.readouterr().out


@pytest.mark.parametrize("program", ["", "no-such-adapter", "'open"])
def test_the_command_exits_2_when_it_cannot_tell(
    program: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """No program, no verdict."""
    assert command.main(["vectors", "check", "--exec", program]) == 2
    assert capsys.readouterr().err
