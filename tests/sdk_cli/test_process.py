"""``lwp`` as a program: pipes, signals, terminals."""

import io
import os
import pty
import re
import shlex
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.platforms.systems import needs_posix

from lance_sdk import Client, Consumer, Producer
from lance_sdk.cli._app import run
from lance_sdk.cli.records import produce
from lance_server import running

LWP = [sys.executable, "-m", "lance_sdk.cli"]
DEADLINE = 30.0


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    """URL of an empty topic on a server of its own."""
    with running(tmp_path / "data") as server:
        with Client(server.url) as client:
            client.create_topic("t")
        yield f"{server.url}/t"


def start(*arguments: str, **streams: Any) -> subprocess.Popen[bytes]:
    """Start ``lwp`` with pipes."""
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    return subprocess.Popen([*LWP, *arguments], **pipes | streams)


def finish(process: subprocess.Popen[bytes], stdin: bytes | None = None) -> tuple[int, str, str]:
    """Exit code, stdout and stderr."""
    out, err = process.communicate(stdin, timeout=DEADLINE)
    return process.returncode, (out or b"").decode(), (err or b"").decode()


def stored(url: str) -> list[bytes]:
    """What the topic holds."""
    with Consumer(url, stop_at_end=True) as consumer:
        return [record.value for record in consumer]


def fill(url: str, count: int) -> None:
    """Store numbered records."""
    with Producer(url) as producer:
        producer.send_many(b"record %d" % number for number in range(count))


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_help_into_a_full_disk_is_one_line_of_error(option: str) -> None:
    """No traceback, and no success either."""
    with Path("/dev/full").open("wb") as full:
        code, _, err = finish(start(option, stdout=full))
    assert (code, err) == (1, "error: cannot write to stdout: No space left on device\n")


@pytest.mark.parametrize("redirection", ["2>&-", "2>/dev/full"])
def test_what_is_stored_is_a_success_though_nobody_can_be_told(url: str, redirection: str) -> None:
    """A caller who saw a failure would send it all again."""
    command = f"echo x | {shlex.join(LWP)} produce {url} {redirection}"
    done = subprocess.run(["/bin/sh", "-c", command], timeout=DEADLINE, check=False)
    assert (done.returncode, stored(url)) == (0, [b"x"])


def test_a_closed_stdout_is_refused_before_anything_is_done(url: str) -> None:
    """Its descriptor would go to the connection, and the records into that."""
    command = f"echo x | {shlex.join(LWP)} produce {url} >&-"
    done = subprocess.run(
        ["/bin/sh", "-c", command], timeout=DEADLINE, check=False, stderr=subprocess.PIPE, text=True
    )
    assert (done.returncode, stored(url)) == (1, [])
    assert done.stderr == "error: stdout is closed; send it somewhere, for example > /dev/null\n"


@pytest.mark.parametrize(
    ("command", "loaded"),
    [
        ("lance_sdk.cli", "lance_sdk.cli._app"),
        ("lance_server.cli", "lance_server.server_command"),
        ("lance_conformance.cli", "lance_conformance.app"),
    ],
)
def test_ctrl_c_while_modules_load_is_silent(command: str, loaded: str) -> None:
    """Each command ends by the signal; there is no traceback through the import system."""
    program = f"""
        import os, signal, sys

        class Interrupting:
            def find_spec(self, name, path=None, target=None):
                if name == "{loaded}":
                    os.kill(os.getpid(), signal.SIGINT)

        sys.meta_path.insert(0, Interrupting())
        from {command} import main
        main()
        """
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert finish(process) == (-signal.SIGINT, "", "")


@pytest.mark.parametrize("command", ["lance_sdk.cli", "lance_server.cli", "lance_conformance.cli"])
def test_little_is_loaded_before_ctrl_c_is_silent(command: str) -> None:
    """What stands before that line could still be interrupted."""
    ours = "(name for name in sys.modules if name.startswith('lance_'))"
    program = f"import sys, {command}; print(*{ours})"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert set(done.stdout.split()) == {command, command.partition(".")[0]}


def test_a_reader_who_has_seen_enough_ends_consume_quietly(url: str) -> None:
    """As in lwp consume … | head: no message, exit code 0."""
    fill(url, 50_000)
    process = start("consume", url)
    assert process.stdout
    assert process.stdout.readline() == b"record 0\n"
    process.stdout.close()
    process.stdout = None
    code, _, err = finish(process)
    assert (code, err) == (0, "")


@needs_posix("the next record that is written finds out")
def test_following_notices_a_reader_who_went_away(url: str) -> None:
    """Also when no record comes that could not be written."""
    fill(url, 1)
    process = start("consume", url, "--follow")
    assert process.stdout
    assert process.stdout.readline() == b"record 0\n"
    process.stdout.close()
    process.stdout = None
    code, _, err = finish(process)
    assert (code, err) == (0, "")


@pytest.mark.parametrize(
    "arguments", [["--help"], ["topics", "list"], ["topics", "list", "--json"]]
)
def test_a_closed_output_is_no_error(url: str, arguments: list[str]) -> None:
    """Whatever the command."""
    reading, writing = os.pipe()
    os.close(reading)
    process = start(*arguments, stdout=writing, env={**os.environ, "LANCE_URL": url})
    os.close(writing)
    code, _, err = finish(process)
    assert (code, err) == (0, "")


def test_followed_records_appear_as_they_are_stored(url: str) -> None:
    """A tail that does not wait for a buffer to fill."""
    process = start("consume", url, "--follow", "--max-records", "2")
    assert process.stdout
    fill(url, 1)
    assert process.stdout.readline() == b"record 0\n"
    fill(url, 1)
    assert process.stdout.readline() == b"record 0\n"
    assert finish(process)[0] == 0


def test_ctrl_c_ends_a_tail_with_130(url: str) -> None:
    """One line, no traceback."""
    fill(url, 1)
    process = start("consume", url, "--follow")
    assert process.stdout
    process.stdout.readline()
    process.send_signal(signal.SIGINT)
    code, out, err = finish(process)
    assert (code, out, err) == (130, "", "error: interrupted\n")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_produce_and_tells_what_is_stored(
    url: str, number: signal.Signals, code: int
) -> None:
    """The exit code is the shell's own for that signal."""
    process = start("produce", url)
    assert process.stdin
    process.stdin.write(b"one\n")
    process.stdin.flush()
    with Consumer(url) as consumer:
        assert next(iter(consumer)).value == b"one"
    process.send_signal(number)
    found, _, err = finish(process)
    assert found == code
    assert err.startswith("stored 1 record (3 B) in ")


def test_produce_tells_what_was_lost_when_the_server_goes(tmp_path: Path) -> None:
    """It does not go on for ever; what was acknowledged is counted."""
    with running(tmp_path) as server:
        with Client(server.url) as client:
            client.create_topic("t")
        url = f"{server.url}/t"
        process = start("produce", url, "--timeout", "2s")
        assert process.stdin
        process.stdin.write(b"one\n")
        process.stdin.flush()
        with Consumer(url) as consumer:
            assert next(iter(consumer)).value == b"one"
    code, _, err = finish(process, b"two\n")
    assert code == 1
    assert "stored 1 of 2 records\n" in err
    assert re.search(r"^error: 1 of 2 records were not delivered: ", err, re.MULTILINE)


def test_interrupted_input_is_stored_as_far_as_it_was_read(
    url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ctrl-C flushes batches that were waiting for more."""

    class Interrupted(io.BytesIO):
        def read1(self, size: int | None = -1) -> bytes:
            data = super().read1(size)
            if not data:
                raise KeyboardInterrupt
            return data

    monkeypatch.setattr(produce, "_stdin", lambda: Interrupted(b"one\ntwo\nthr"))
    code = run(["produce", url, "--linger", "60s"])
    assert code == 130
    assert "error: interrupted" in capsys.readouterr().err
    assert stored(url) == [b"one", b"two"]


def test_a_closed_stdin_is_told(url: str) -> None:
    """As in lwp produce <&-, where there is nothing to read."""
    command = " ".join(["exec", *map(shlex.quote, [*LWP, "produce", url]), "<&-"])
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert re.search(r"^error: stdin is closed", done.stderr, re.MULTILINE)


def on_terminal(*arguments: str, **environment: str) -> tuple[bytes, str]:
    """Stdout as a pipe gets it, and what a terminal at stderr shows."""
    primary, secondary = pty.openpty()
    env = {**os.environ, "TERM": "xterm-256color", **environment}
    process = start(*arguments, stderr=secondary, env=env)
    os.close(secondary)
    assert process.stdout
    out = process.stdout.read()
    shown = b""
    with suppress(OSError):  # how the end of a terminal looks on Linux
        while data := os.read(primary, 65536):
            shown += data
    os.close(primary)
    assert finish(process)[0] == 0
    return out, shown.decode()


def test_a_bar_on_the_terminal_does_not_touch_stdout(url: str) -> None:
    """Progress goes to stderr, and is gone when the summary stands there."""
    fill(url, 1000)
    out, shown = on_terminal("consume", url)
    assert out.splitlines() == [b"record %d" % number for number in range(1000)]
    assert "consuming" in shown
    assert "read 1,000 records" in shown.splitlines()[-1]


def test_there_is_no_bar_where_nobody_looks(url: str) -> None:
    """A log file gets the summary only."""
    fill(url, 10)
    _, _, err = finish(start("consume", url))
    assert re.fullmatch(r"read 10 records [^\n\x1b]+\n", err)


def test_no_color_is_honoured(url: str) -> None:
    """As https://no-color.org asks."""
    fill(url, 10)
    colour = re.compile(r"\x1b\[[0-9;]*[34][0-9]")
    assert colour.search(on_terminal("consume", url)[1])
    assert not colour.search(on_terminal("consume", url, NO_COLOR="1")[1])


def test_a_fault_in_the_program_is_one_line_and_with_vv_a_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Users see what happened, developers where."""
    monkeypatch.setattr(produce, "topic_url", lambda *_arguments: 1 // 0)
    assert run(["produce", "t"]) == 1
    line = capsys.readouterr().err
    assert re.fullmatch(r"error: internal fault: ZeroDivisionError: [^\n]+\n", line)
    assert run(["-vv", "produce", "t"]) == 1
    assert "Traceback" in capsys.readouterr().err
