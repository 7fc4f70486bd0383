"""``lwp tail``."""

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from lance_sdk import Producer
from lance_sdk.cli import _types
from lance_server import running

Call = Callable[..., Result]
LWP = [sys.executable, "-m", "lance_sdk.cli"]


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    """URL of a topic with twenty records."""
    with running(tmp_path / "data") as server:
        url = f"{server.url}/t"
        store(url, *range(20))
        yield url


def store(url: str, *numbers: int) -> None:
    """Store numbered records."""
    with Producer(url, create_topic=True) as producer:
        producer.send_many(b"record %d" % number for number in numbers)


def test_the_last_ten_records_come_first(url: str, lwp: Call) -> None:
    """As with tail on a file."""
    result = lwp("tail", url, "--no-follow")
    assert result.stdout.splitlines() == [f"record {number}" for number in range(10, 20)]


@pytest.mark.parametrize(("count", "first"), [(0, 20), (1, 19), (7, 13), (20, 0), (1000, 0)])
def test_any_number_may_be_asked_for(url: str, lwp: Call, count: int, first: int) -> None:
    """All of them where there are fewer."""
    result = lwp("tail", url, "--no-follow", "-n", str(count))
    assert result.stdout.splitlines() == [f"record {number}" for number in range(first, 20)]


def test_they_may_lie_in_several_batches(url: str, lwp: Call) -> None:
    """The oldest of these is cut."""
    for number in range(20, 25):
        store(url, number)
    result = lwp("tail", url, "--no-follow", "-n", "8")
    assert result.stdout.splitlines() == [f"record {number}" for number in range(17, 25)]


def test_since_begins_with_what_is_younger(url: str, lwp: Call) -> None:
    """By the server's clock (AMB-37)."""
    assert lwp("tail", url, "--no-follow", "--since", "1h").stdout.count("\n") == 20


def test_since_may_be_longer_ago_than_any_calendar_reaches(url: str, lwp: Call) -> None:
    """It means the beginning."""
    result = lwp("tail", url, "--no-follow", "--since", "999999999999d")
    assert result.stdout.count("\n") == 20


def test_a_server_without_places_by_time_is_read_from_the_beginning(
    url: str, lwp: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the same result."""
    from lance_sdk.errors import Unsupported  # noqa: PLC0415 - the name belongs to this test

    def refuse(_seconds: float) -> Any:
        raise Unsupported("no OffsetForTime there")

    monkeypatch.setattr(_types, "ago", refuse)
    assert lwp("tail", url, "--no-follow", "-n", "1").stdout == "record 19\n"


def test_lines_and_since_exclude_each_other(lwp: Call) -> None:
    """Wrong usage."""
    result = lwp("tail", "lance://h/t", "-n", "1", "--since", "1h")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "--lines and --since both say where to begin" in result.stderr


def test_json_shows_offsets(url: str, lwp: Call) -> None:
    """As lwp consume does."""
    assert '"offset": 0' in lwp("tail", url, "--no-follow", "-n", "20", "--json").stdout


def test_what_comes_is_printed_until_ctrl_c(url: str) -> None:
    """After what was there, without a gap."""
    process = subprocess.Popen(
        [*LWP, "tail", url, "-n", "1"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout
    assert process.stdout.readline() == b"record 19\n"
    store(url, 20)
    assert process.stdout.readline() == b"record 20\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (130, b"", b"error: interrupted\n")
