"""What ``lwp produce`` and ``lwp consume`` do with keys, times, compression and positions."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from lance_sdk import Consumer, Producer
from lance_sdk.cli.records.record_format import as_lines
from lance_sdk.types import RecordBatch
from lance_server import running
from lance_spec.enums import RecordType
from lance_spec.records import encode_record

Call = Callable[..., Result]


@pytest.fixture
def orders(server: Any) -> str:
    """URL of a topic with ten records."""
    url = f"{server.url}/orders"
    with Producer(url, create_topic=True) as producer:
        producer.send_many(b"%d" % number for number in range(10))
    return url


def lines(result: Result) -> list[str]:
    """What was printed."""
    assert result.exit_code == 0, result.output
    return result.stdout.splitlines()


@pytest.mark.parametrize("store", ["server", "file:{}", "sqlite:{}/offsets.db"])
@pytest.mark.usefixtures("orders")
def test_a_consumer_goes_on_where_it_stopped(lwp: Call, tmp_path: Path, store: str) -> None:
    """After the last record that was printed, in the middle of a batch."""
    options = ["--consumer", "me", "--offsets", store.format(tmp_path)]
    assert lines(lwp("consume", "orders", *options, "-n", "3")) == ["0", "1", "2"]
    assert lines(lwp("consume", "orders", *options, "-n", "4")) == ["3", "4", "5", "6"]
    assert lines(lwp("consume", "orders", *options)) == ["7", "8", "9"]
    assert lines(lwp("consume", "orders", *options)) == []


def test_ctrl_c_commits_what_was_printed(orders: str, lwp: Call, tmp_path: Path) -> None:
    """The next run begins after it; only what was being printed may come again."""
    options = ["--consumer", "me", "--offsets", f"file:{tmp_path}"]
    process = subprocess.Popen(
        [sys.executable, "-m", "lance_sdk.cli", "consume", orders, *options, "--follow"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout
    assert [process.stdout.readline() for _ in range(10)][-1] == b"9\n"
    with Producer(orders) as producer:
        producer.send(b"10")
    assert process.stdout.readline() == b"10\n"
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (130, b"error: interrupted\n")
    assert lines(lwp("consume", "orders", *options)) in ([], ["10"])


@pytest.mark.usefixtures("server")
def test_reading_can_begin_at_a_time(lwp: Call) -> None:
    """Of the server's clock; long ago is the beginning."""
    lwp("produce", "t", "--create-topic", stdin="one\n")
    earlier = datetime.now(UTC) - timedelta(hours=1)
    assert lines(lwp("consume", "t", "--from", "-1h")) == ["one"]
    assert lines(lwp("consume", "t", "--from", "-999999999999d")) == ["one"]
    assert lines(lwp("consume", "t", "--from", earlier.isoformat())) == ["one"]


@pytest.mark.usefixtures("server")
def test_keys_stand_before_the_separator(lwp: Call) -> None:
    """The first one on the line; they come back with any other."""
    lwp("produce", "t", "--create-topic", "-K", "=", stdin="a=1\nb=2=3\n=4\n")
    assert lines(lwp("consume", "t", "-K", "\t")) == ["a\t1", "b\t2=3", "\t4"]
    assert lines(lwp("consume", "t")) == ["1", "2=3", "4"]


def test_keys_are_the_bytes_that_were_typed(server: Any, lwp: Call) -> None:
    """Also where they are not text, as Python reads them from the command line."""
    typed = os.fsdecode(b"\xff")
    assert lwp("produce", "t", "--create-topic", "--key", typed, stdin="1\n").exit_code == 0
    assert lwp("produce", "t", "-K", typed, stdin=b"a\xff2\n").exit_code == 0
    with Consumer(f"{server.url}/t", stop_at_end=True) as consumer:
        assert [(record.key, record.value) for record in consumer] == [
            (b"\xff", b"1"),
            (b"a", b"2"),
        ]
    assert lwp("consume", "t", "-K", typed).stdout_bytes == b"\xff\xff1\na\xff2\n"


def test_an_empty_separator_is_wrong_usage(lwp: Call) -> None:
    """No line could be divided there."""
    result = lwp("produce", "lance://h/t", "-K", "", stdin="a\n")
    assert result.exit_code == 2
    assert "--key-separator is empty" in result.stderr


def test_a_line_without_a_key_is_named(server: Any, lwp: Call) -> None:
    """Those before it are stored."""
    result = lwp("produce", "t", "--create-topic", "-K", "=", stdin="a=1\nb\n")
    assert result.exit_code == 1
    assert "line 2 has no '=' to end its key" in result.stderr
    with Consumer(f"{server.url}/t", stop_at_end=True) as consumer:
        assert [record.key for record in consumer] == [b"a"]


@pytest.mark.usefixtures("server")
def test_a_stamp_is_the_time_of_reading(lwp: Call) -> None:
    """In nanoseconds since the epoch, beside a key or alone."""
    before = datetime.now(UTC).timestamp() * 1e9
    lwp("produce", "t", "--create-topic", "--stamp", stdin="x\n")
    lwp("produce", "t", "--stamp", "-K", "=", stdin="k=x\n")
    first, second = (json.loads(line) for line in lines(lwp("consume", "t", "--json")))
    assert before <= first["timestamp_ns"] <= second["timestamp_ns"]
    assert (first["type"], second["type"], second["key"]) == (
        "timestamped",
        "key_timestamped",
        "k",
    )


@pytest.mark.usefixtures("server")
def test_a_key_of_any_bytes_is_shown_in_json(lwp: Call) -> None:
    """As base64 where it is not text."""
    lwp("produce", "t", "--create-topic", "-K", "=", stdin=b"\xff=1\n")
    (shown,) = (json.loads(line) for line in lines(lwp("consume", "t", "--json")))
    assert (shown["key"], shown["key_encoding"], shown["value"]) == ("/w==", "base64", "1")


def test_a_record_that_is_not_what_its_type_says_is_shown_whole() -> None:
    """A deployed server checks nothing, and what is there must be seen to be mended."""
    batch = RecordBatch("t", 0, 1, encode_record(b"plain", RecordType.KEY_VALUE))
    assert as_lines(batch, b"\n") == b"plain\n"


@pytest.mark.parametrize("compression", ["lz4", "auto", "none"])
def test_compressed_records_come_back_as_they_were(
    server: Any, lwp: Call, compression: str
) -> None:
    """Whatever happens to them on the way."""
    text = "the same line again and again\n" * 500
    result = lwp("produce", "t", "--create-topic", "--compression", compression, stdin=text)
    assert result.exit_code == 0, result.output
    assert lwp("consume", f"{server.url}/t").stdout == text


def test_compression_is_refused_where_it_would_be_stored(lwp: Call) -> None:
    """Toward a deployed server (AMB-20)."""
    with running(dialect="deployed") as server:
        url = f"{server.url}/t"
        result = lwp("produce", url, "--create-topic", "--compression", "lz4", stdin="x\n")
    assert result.exit_code == 1
    assert "compress" in result.stderr


def test_a_store_that_cannot_be_opened_is_told(orders: str, lwp: Call, tmp_path: Path) -> None:
    """In one line."""
    blocked = tmp_path / "blocked"
    blocked.write_text("")
    result = lwp("consume", orders, "--consumer", "me", "--offsets", f"file:{blocked}")
    assert result.exit_code == 1
    assert result.stderr.startswith("error: ")
    assert os.fspath(blocked) in result.stderr
