"""``vectors check --exec``: this package's adapter is right, and wrong answers are noticed."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lance_spec import __main__ as command
from lance_spec import vectors
from lance_spec.vectors import Vector
from lance_spec.vectors import adapter as adapter_module
from lance_spec.vectors._contract import pieces, problem, requests
from lance_spec.vectors._exec import judge, judge_all
from lance_spec.vectors._known import Known, KnownError, load_known
from lance_spec.vectors._process import AdapterError, AdapterProcess
from lance_spec.vectors.adapter import answer

Json = dict[str, Any]

OURS = f"{sys.executable} -m lance_spec.vectors.adapter"
UNREAD = ("error", "topic_metadata")
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
        if vector.group.get("body") not in UNREAD
    ],
)
def test_this_package_answers_as_the_vectors_say(family: str, vector: Vector) -> None:
    """Asked as `vectors check --exec` asks, without a process."""
    assert judge(ours, family, vector) is None


@pytest.mark.parametrize("body", UNREAD)
def test_bodies_that_nothing_here_reads_are_said_to_be_skipped(body: str) -> None:
    """An error's JSON is read with its text forms; metadata is the server's own file."""
    (vector, *_) = [each for each in vectors.load("json_body") if each.group["body"] == body]
    assert judge(ours, "json_body", vector) == f"skip: nothing in this package reads {body}"


@pytest.mark.parametrize("family", vectors.FAMILIES)
def test_a_question_does_not_give_the_answer_away(family: str) -> None:
    """An adapter must not be able to repeat what it was told."""
    given = {"frame_encode": {"fields"}, "tlv_encode": {"records"}}.get(family, {"bytes", "pieces"})
    for vector in vectors.load(family):
        for request in requests(family, vector):
            assert set(request) <= {"id", "family", "group", "message"} | given


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


def silent(_request: Json) -> Json:
    """An adapter that takes nothing."""
    return {"skip": "not today"}


def test_a_program_that_skips_everything_does_not_pass() -> None:
    """Nothing was shown."""
    report = judge_all(silent, [])
    assert not report.ok
    assert report.skipped["not today"] >= 1390


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
    report = judge_all(one_wrong, [Known("specified-a?k", "It is so")])
    assert (report.known, report.differences, report.ok) == (1, {}, True)


def test_a_known_difference_that_is_gone_is_reported() -> None:
    """The list stays true."""
    report = judge_all(one_wrong, [Known("specified-ack", "So"), Known("deployed-*", "Not so")])
    assert report.stale == ["deployed-*"]
    assert not report.ok


def script(tmp_path: Path, text: str) -> list[str]:
    """A program that is no good adapter."""
    (tmp_path / "adapter.py").write_text(f"import json, sys, time\n{text}\n")
    return [sys.executable, str(tmp_path / "adapter.py")]


ANSWERS = "for line in sys.stdin:\n    "


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (f"{ANSWERS}print('?', flush=True)", "is no JSON"),
        (f"{ANSWERS}print('[1]', flush=True)", "another id"),
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


def test_the_published_client_has_a_list_of_its_differences() -> None:
    """It is well formed; whether it is true is checked where that client is installed."""
    known = load_known(vectors.root() / "adapters" / "lnc_client.known.json")
    ids = [vector.id for family in vectors.FAMILIES for vector in vectors.load(family)]
    for each in known:
        assert any(each.covers(test_id) for test_id in ids), each.tests


@pytest.mark.parametrize(
    "path",
    [vectors.root() / "adapters" / "lnc_client_adapter.py", Path(adapter_module.__file__)],
    ids=lambda path: path.name,
)
def test_an_adapter_is_short(path: Path) -> None:
    """A hundred lines are enough."""
    assert len(path.read_text().splitlines()) <= 100


def test_the_command_passes_for_this_package(capsys: pytest.CaptureFixture[str]) -> None:
    """A real process, a line for every question."""
    assert command.main(["vectors", "check", "--exec", OURS]) == 0
    assert ", 0 differ, 0 known to differ, 27 skipped" in capsys.readouterr().out


def test_the_command_exits_1_on_a_difference(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every difference is a line."""
    text = f"""{ANSWERS}print(json.dumps({{"id": json.loads(line)["id"]}}), flush=True)"""
    assert command.main(["vectors", "check", "--exec", " ".join(script(tmp_path, text))]) == 1
    assert "and 1" in capsys.readouterr().out


@pytest.mark.parametrize("program", ["", "no-such-adapter", "'open"])
def test_the_command_exits_2_when_it_cannot_tell(
    program: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """No program, no verdict."""
    assert command.main(["vectors", "check", "--exec", program]) == 2
    assert capsys.readouterr().err
