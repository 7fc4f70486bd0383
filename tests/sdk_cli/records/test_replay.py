"""``lwp replay``, its pace, and what it notes."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from lance_sdk import Client, Consumer, Producer
from lance_sdk._io.state_files import held
from lance_sdk.cli.console.exit_codes import Failure
from lance_sdk.cli.records.rate_limiter import RateLimiter
from lance_sdk.testing import ManualClock

Call = Callable[..., Result]

BAD_TOPIC = '{"source": "source", "target": "copy", "place": 1, "topic": {"number": 1}}'


@pytest.fixture
def source(server: Any) -> str:
    """URL of a topic with records of many kinds."""
    url = f"{server.url}/source"
    with Producer(url, create_topic=True) as producer:
        producer.send(b"plain")
        producer.send(b"\xff\x00", record_type=0x90)
        producer.send(b'{"a": 1}', record_type=0x02)
        producer.send(b"value", key=b"key")
        producer.send(b"value", key=b"\xfe", timestamp=2_000_000_000)
        producer.send(b"value", timestamp=3_000_000_000)
    return url


def stored(url: str) -> list[tuple[int, bytes]]:
    """What the topic holds, as types and bytes."""
    with Consumer(url, stop_at_end=True) as consumer:
        return [(record.type, record.value) for record in consumer]


def test_a_topic_is_copied_byte_for_byte(source: str, server: Any, lwp: Call) -> None:
    """Types, keys and times are those of the source."""
    result = lwp("replay", source, "copy", "--create-topic")
    assert result.exit_code == 0, result.output
    assert result.stderr.startswith("replayed 6 records")
    assert stored(f"{server.url}/copy") == stored(source)


def test_what_consume_prints_can_be_replayed(
    source: str, server: Any, lwp: Call, tmp_path: Path
) -> None:
    """The JSON lines hold everything."""
    file = tmp_path / "records.jsonl"
    file.write_text(lwp("consume", source, "--json").stdout)
    assert lwp("replay", str(file), "copy", "--create-topic").exit_code == 0
    assert stored(f"{server.url}/copy") == stored(source)


def test_stdin_is_a_source(source: str, server: Any, lwp: Call) -> None:
    """As in lwp consume --json | lwp replay - TOPIC."""
    lines = lwp("consume", source, "--json").stdout
    assert lwp("replay", "-", "copy", "--create-topic", stdin=lines).exit_code == 0
    assert stored(f"{server.url}/copy") == stored(source)


def test_a_run_goes_on_where_the_last_one_stopped(
    source: str, server: Any, lwp: Call, tmp_path: Path
) -> None:
    """From a topic, with what was noted."""
    arguments = ["replay", source, "copy", "--create-topic", "--state", str(tmp_path / "state")]
    assert lwp(*arguments, "--max-records", "4").exit_code == 0
    assert lwp(*arguments).exit_code == 0
    assert lwp(*arguments).stderr.startswith("replayed 0 records")
    assert stored(f"{server.url}/copy") == stored(source)


def test_a_file_goes_on_at_its_line(source: str, server: Any, lwp: Call, tmp_path: Path) -> None:
    """The place is a number of lines."""
    file, state = tmp_path / "records.jsonl", tmp_path / "state"
    file.write_text(lwp("consume", source, "--json").stdout)
    arguments = ["replay", str(file), "copy", "--create-topic", "--state", str(state)]
    assert lwp(*arguments, "-n", "2").exit_code == 0
    assert json.loads(state.read_text())["place"] == 2
    assert lwp(*arguments).exit_code == 0
    assert stored(f"{server.url}/copy") == stored(source)


def test_a_topic_that_was_made_again_is_refused(server: Any, lwp: Call, tmp_path: Path) -> None:
    """At the noted offset a record begins there, too, and those before it would be left out."""
    arguments = ["replay", "again", "copy", "--create-topic", "--state", str(tmp_path / "state")]
    lwp("produce", "again", "--create-topic", stdin="1\n2\n")
    assert lwp(*arguments).exit_code == 0
    with Client(server.url) as client:
        client.delete_topic("again")
    lwp("produce", "again", "--create-topic", stdin="3\n4\n5\n")
    result = lwp(*arguments)
    assert result.exit_code == 1
    assert "is the state of a replay of another topic again" in result.stderr
    assert [value for _, value in stored(f"{server.url}/copy")] == [b"1", b"2"]


def test_two_replays_do_not_use_one_state(source: str, lwp: Call, tmp_path: Path) -> None:
    """Each would store what the other one stores."""
    with held(tmp_path / "state", "test"):
        result = lwp("replay", source, "copy", "--state", str(tmp_path / "state"))
    assert result.exit_code == 2
    assert "another lwp replay uses" in result.stderr


def test_the_state_of_an_earlier_release_names_no_topic(
    source: str, server: Any, lwp: Call, tmp_path: Path
) -> None:
    """It goes on at its place."""
    state = tmp_path / "state"
    arguments = ["replay", source, "copy", "--create-topic", "--state", str(state)]
    assert lwp(*arguments, "-n", "2").exit_code == 0
    noted = json.loads(state.read_text())
    del noted["topic"]
    state.write_text(json.dumps(noted))
    assert lwp(*arguments).exit_code == 0
    assert stored(f"{server.url}/copy") == stored(source)


def test_the_state_of_another_replay_is_refused(source: str, lwp: Call, tmp_path: Path) -> None:
    """It would skip records."""
    state = tmp_path / "state"
    lwp("replay", source, "copy", "--create-topic", "--state", str(state))
    result = lwp("replay", source, "other", "--create-topic", "--state", str(state))
    assert result.exit_code == 1
    assert "is the state of a replay from" in result.stderr


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '{"source": "a", "target": "b"}', "\xff", BAD_TOPIC]
)
@pytest.mark.usefixtures("server")
def test_a_file_that_is_no_state_is_refused(lwp: Call, tmp_path: Path, content: str) -> None:
    """And not overwritten."""
    state = tmp_path / "state"
    state.write_text(content, encoding="latin-1")
    result = lwp("replay", "source", "copy", "--state", str(state))
    assert result.exit_code == 1
    assert str(state) in result.stderr
    assert state.read_text(encoding="latin-1") == content


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("nonsense", "is not a record"),
        ("{}", "it has no 'value'"),
        ('{"value": "x"}', "it has no 'type'"),
        ('{"value": "x", "type": "novel"}', "not a record type: 'novel'"),
        ('{"value": "x", "type": 256}', "not a record type: 256"),
        ('{"value": 3, "type": 1}', "is not a record"),
        ('{"value": "%%", "type": 1, "encoding": "base64"}', "not base64"),
        ('{"value": "x", "type": 1, "encoding": "rot13"}', "not an encoding: 'rot13'"),
        ('{"value": "x", "type": 1, "timestamp_ns": "soon"}', "timestamp must be"),
        ("[" * 100_000, "is not a record"),
    ],
)
@pytest.mark.usefixtures("server")
def test_a_line_that_is_no_record_is_named(
    lwp: Call, tmp_path: Path, line: str, complaint: str
) -> None:
    """With its number; the lines before it are stored."""
    file = tmp_path / "records.jsonl"
    file.write_text('{"value": "x", "type": 1}\n' + line)
    result = lwp("replay", str(file), "copy", "--create-topic")
    assert result.exit_code == 1
    assert f"line 2 of {file}" in result.stderr
    assert complaint in result.stderr


def test_a_file_that_is_not_there_is_named(lwp: Call) -> None:
    """A topic cannot have such a name."""
    result = lwp("replay", "records/none.jsonl", "lance://h/b")
    assert result.exit_code == 2
    assert "there is no file records/none.jsonl" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--rate", "5", "--speed", "1"], "--rate and --speed both set the pace"),
        (["--rate", "0"], "0.0 is not in the range"),
    ],
)
def test_a_pace_that_cannot_be_is_wrong_usage(
    lwp: Call, arguments: list[str], message: str
) -> None:
    """Before anything is opened."""
    result = lwp("replay", "lance://h/a", "lance://h/b", *arguments)
    assert result.exit_code == 2
    assert message in result.stderr


def test_a_topic_is_not_replayed_into_itself(lwp: Call) -> None:
    """It would be doubled."""
    result = lwp("replay", "lance://h/a", "lance://h:1992/a")
    assert result.exit_code == 2
    assert "source and target are the same topic" in result.stderr


@dataclass
class Tick:
    """A record with a time."""

    timestamp_ns: int | None
    where: str = "the record"


class Watch(ManualClock):
    """A clock that moves when somebody sleeps, and notes when what was ready."""

    def run(self, ticks: list[Tick], **pace: float) -> list[tuple[float, int]]:
        """Return when how many records were ready, in seconds from the beginning."""
        began = self.now
        groups = RateLimiter(clock=self, sleep=self.advance, **pace).split(ticks)
        return [(round(self.now - began, 6), len(group)) for group in groups]


def test_no_pace_is_as_fast_as_it_goes() -> None:
    """All at once."""
    assert Watch().run([Tick(None)] * 5) == [(0, 5)]


def test_a_rate_spaces_records_evenly() -> None:
    """The first goes at once."""
    assert Watch().run([Tick(None)] * 4, rate=2) == [(0, 1), (0.5, 1), (1, 1), (1.5, 1)]


def test_the_original_pace_is_kept() -> None:
    """Records with the same time go together."""
    ticks = [Tick(second * 10**9) for second in (100, 100, 103, 104)]
    assert Watch().run(ticks, speed=1) == [(0, 2), (3, 1), (4, 1)]


def test_speed_divides_the_waiting() -> None:
    """Twice as fast is half as long."""
    ticks = [Tick(second * 10**9) for second in (100, 103)]
    assert Watch().run(ticks, speed=2) == [(0, 1), (1.5, 1)]


def test_a_time_that_runs_backwards_does_not_wait() -> None:
    """Clocks are set."""
    ticks = [Tick(second * 10**9) for second in (100, 50, 101)]
    assert Watch().run(ticks, speed=1) == [(0, 2), (1, 1)]


def test_a_record_without_a_time_says_so() -> None:
    """And what to use instead."""
    with pytest.raises(Failure, match="the record has no time; use --rate"):
        Watch().run([Tick(None)], speed=1)
