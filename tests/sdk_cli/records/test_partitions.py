"""``lwp consume``, ``tail`` and ``replay`` of a topic with partitions."""

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from lance_sdk import Client, Consumer, Producer, TopicsConsumer
from lance_sdk.partitions import PartitionedProducer

Call = Callable[..., Result]


@pytest.fixture
def parts(server: Any) -> str:
    """URL of a topic of three partitions, with ten records in the first and in the last."""
    url = f"{server.url}/parts"
    with Client(server.url) as client:
        client.create_topic("parts", partitions=3)
    store(server, 0, 2)
    return url


def store(server: Any, *partitions: int) -> None:
    """Store ten records in each of these partitions."""
    for partition in partitions:
        with Producer(f"{server.url}/parts-{partition}") as producer:
            producer.send_many(f"{partition}:{number}".encode() for number in range(10))


def lines(partition: int, first: int = 0) -> list[str]:
    """Return the records of a partition as they are printed."""
    return [f"{partition}:{number}" for number in range(first, 10)]


def test_tail_begins_with_the_last_records_of_each(parts: str, lwp: Call) -> None:
    """One after the other, as tail does with several files."""
    result = lwp("tail", parts, "--no-follow", "-n", "2")
    assert result.stdout.splitlines() == [*lines(0, 8), *lines(2, 8)]


def test_tail_reads_all_that_is_younger(parts: str, lwp: Call) -> None:
    """Of all partitions."""
    result = lwp("tail", parts, "--no-follow", "--since", "1h")
    assert result.stdout.splitlines() == [*lines(0), *lines(2)]


def test_tail_goes_on_with_what_comes(parts: str, server: Any) -> None:
    """Each partition after what was printed of it: nothing is missing, nothing comes twice."""
    command = [sys.executable, "-m", "lance_sdk.cli", "tail", parts, "-n", "10"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        printed = [process.stdout.readline().strip() for _ in range(20)]
        store(server, 0, 1, 2)
        printed += [process.stdout.readline().strip() for _ in range(30)]
        process.send_signal(signal.SIGINT)
    for partition, times in ((0, 2), (1, 1), (2, 2)):
        own = [line for line in printed if line.startswith(f"{partition}:")]
        assert own == lines(partition) * times


@pytest.mark.parametrize("command", [["tail", "--no-follow"], ["consume"]])
def test_one_partition_may_be_chosen(parts: str, lwp: Call, command: list[str]) -> None:
    """By its number."""
    result = lwp(*command, parts, "--partition", "2")
    assert result.stdout.splitlines() == lines(2)


@pytest.mark.parametrize("command", [["tail"], ["consume"], ["replay", "copy"]])
def test_a_partition_that_is_not_there_is_refused(
    parts: str, lwp: Call, command: list[str]
) -> None:
    """The message names the last one."""
    name, *target = command
    result = lwp(name, parts, *target, "--partition", "3")
    assert result.exit_code == 2
    assert "topic 'parts' has no partition 3; the last one is 2" in result.stderr


def test_a_topic_without_partitions_has_none_to_choose(server: Any, lwp: Call) -> None:
    """Whether it exists or not."""
    result = lwp("tail", f"{server.url}/other", "--partition", "0")
    assert result.exit_code == 2
    assert "leave out --partition" in result.stderr


def test_replay_copies_all_partitions(parts: str, server: Any, lwp: Call) -> None:
    """The records of each in their order."""
    assert lwp("replay", parts, "copy", "--create-topic").exit_code == 0
    with Consumer(f"{server.url}/copy", stop_at_end=True) as consumer:
        copied = [record.value.decode() for record in consumer]
    assert [line for line in copied if line.startswith("0:")] == lines(0)
    assert [line for line in copied if line.startswith("2:")] == lines(2)
    assert len(copied) == 20


def test_replay_copies_one_partition(parts: str, server: Any, lwp: Call, tmp_path: Path) -> None:
    """With a state, as of any topic."""
    state = ("--state", str(tmp_path / "state"))
    assert lwp("replay", parts, "copy", "--create-topic", "--partition", "2", *state).exit_code == 0
    with Consumer(f"{server.url}/copy", stop_at_end=True) as consumer:
        assert [record.value.decode() for record in consumer] == lines(2)


def test_keys_choose_the_partition_of_a_replayed_record(server: Any, lwp: Call) -> None:
    """As when a partitioned producer sends it."""
    source = f"{server.url}/source"
    with Producer(source, create_topic=True) as producer:
        for number in range(20):
            producer.send(b"%d" % number, key=b"%d" % number)
    with Client(server.url) as client:
        for name in ("sent", "replayed"):
            client.create_topic(name, partitions=3)
    with PartitionedProducer(f"{server.url}/sent") as routed:
        for number in range(20):
            routed.send(b"%d" % number, key=b"%d" % number)
    assert lwp("replay", source, "replayed").exit_code == 0
    assert places(server, "replayed") == places(server, "sent")


def places(server: Any, name: str) -> set[tuple[str, bytes]]:
    """Return in which partition of a topic each record is."""
    with TopicsConsumer(server.url, [name], stop_at_end=True) as consumer:
        return {(record.topic.rpartition("-")[2], record.value) for record in consumer}


@pytest.mark.parametrize("option", [["--speed", "2"], ["--from", "0"], ["--state", "file"]])
def test_what_needs_one_order_needs_one_partition(
    parts: str, lwp: Call, option: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Partitions have no common offsets, and no common order of times."""
    monkeypatch.chdir(tmp_path)
    result = lwp("replay", parts, "copy", *option)
    assert result.exit_code == 2
    assert "name it with --partition" in result.stderr


@pytest.mark.parametrize("target", ["parts", "parts-1"])
def test_a_partitioned_topic_is_not_replayed_into_itself(
    parts: str, lwp: Call, target: str
) -> None:
    """Nor into a partition of it."""
    result = lwp("replay", parts, target)
    assert result.exit_code == 2
    assert "it would be doubled" in result.stderr


def test_a_file_has_no_partitions(lwp: Call) -> None:
    """It has lines."""
    result = lwp("replay", "-", "copy", "--partition", "0")
    assert result.exit_code == 2
    assert "a file has none" in result.stderr
