"""``lwp pipeline``: what is said on the line, and what is wrong with it, before Spark starts."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from lance_sdk.cli import _app, _pipeline
from lance_sdk.cli.console.exit_codes import ExitCode
from lance_sdk.spark.pipelines import session
from lance_sdk.spark.pipelines.archive_files import METADATA
from lance_server.embedded import EmbeddedServer

COMMANDS = ["archive", "compact", "replay", "audit", "reindex", "report", "migrate"]


def told(*arguments: str) -> "subprocess.CompletedProcess[str]":
    """Call ``lwp pipeline`` in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "lance_sdk.cli", "pipeline", *arguments],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )


def run(*arguments: str) -> tuple[int, str]:
    """Call ``lwp pipeline`` in a process of its own; return exit code and standard error."""
    done = told(*arguments)
    return done.returncode, done.stderr


def test_the_help_names_every_pipeline() -> None:
    """And costs no import of Spark."""
    shown = CliRunner().invoke(_app.lwp, ["pipeline", "--help"], prog_name="lwp").output
    assert all(f"  {name} " in shown for name in COMMANDS)


def test_a_help_loads_no_spark() -> None:
    """Nor anything that it needs."""
    script = (
        "import sys; from lance_sdk.cli import _app; "
        "_app.run(['pipeline', 'archive', '--help']); "
        "sys.exit(bool({'pyspark', 'pyarrow', 'numpy'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], check=False, capture_output=True, timeout=60
    )
    assert done.returncode == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["replay", "/nowhere"], "no server given"),
        (["archive", "orders", "--to", "/x"], "no server given"),
        (["archive", "orders"], "missing option '--to'"),
        (["report", "./data", "-o", "nonsense"], "expected NAME=VALUE"),
        (["archive", "./data", "--to", "/x", "--partition-by", "week"], "is not one of"),
    ],
)
def test_wrong_usage_is_told_before_spark_starts(
    arguments: list[str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With exit code 2."""
    monkeypatch.delenv("LANCE_URL", raising=False)
    code, error = run(*arguments)
    assert code == ExitCode.USAGE
    assert message in error.lower() or message in error
    assert "Traceback" not in error


def said(*arguments: str) -> dict[str, str]:
    """Return the options that a command line gives to the format."""
    seen: dict[str, str] = {}

    def look(source: str, more: tuple[str, ...], **_rest: Any) -> None:
        seen.update(_pipeline._reading(source, more))

    command = _pipeline.report_.callback
    _pipeline.report_.callback = look
    try:
        code = _app.run(["pipeline", "report", *arguments])
    finally:
        _pipeline.report_.callback = command
    assert code == ExitCode.OK
    return seen


def test_a_path_is_read_as_files() -> None:
    """What has a slash is a path; a topic's name has none (AMB-24)."""
    assert said("./data", "-o", "minPartitions=8") == {"path": "./data", "minPartitions": "8"}


def test_topics_are_read_at_the_server() -> None:
    """With everything that the common options say."""
    line = ["--url", "lance://h:1", "--dialect", "deployed", "--timeout", "5s", "--token", "t"]
    assert said("orders,returns", *line) == {
        "topics": "orders,returns",
        "servers": "lance://h:1",
        "dialect": "deployed",
        "requestTimeout": "5.0s",
        "token": "t",
    }


def test_without_java_one_line_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    """And the exit code is that of wrong usage."""
    pytest.importorskip("pyspark", reason="pip install 'lance-sdk[spark]'")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    (tmp_path / "orders.parquet").touch()
    code, error = run("replay", str(tmp_path), "--url", "lance://127.0.0.1:9")
    assert code == ExitCode.USAGE
    assert error.count("\n") == 1
    assert "Spark 4 needs Java 17 or later" in error


def test_without_the_extra_one_line_says_what_to_install(tmp_path: Any) -> None:
    """The command is there in every installation."""
    script = (
        "import sys; sys.modules['pyarrow'] = None; from lance_sdk.cli import _app; "
        f"sys.exit(_app.run(['pipeline', 'audit', {str(tmp_path)!r}]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], check=False, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == ExitCode.USAGE
    assert "pip install 'lance-sdk[spark]'" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.fixture
def javaless(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No Java, so that whatever starts Spark fails."""
    pytest.importorskip("pyarrow", reason="pip install 'lance-sdk[spark]'")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    monkeypatch.delenv("SPARK_MASTER", raising=False)


@pytest.mark.usefixtures("javaless")
@pytest.mark.parametrize("engine", ["auto", "processes"])
def test_a_small_folder_is_audited_without_spark(
    server: EmbeddedServer, produce: Callable[..., list[bytes]], engine: str
) -> None:
    """In processes on this machine; what is wrong is told as ever."""
    produce("orders", 4000)
    server.stop()
    folder = str(server.data_dir)
    assert run("audit", folder, "--engine", engine)[0] == ExitCode.OK
    segment = next(server.data_dir.rglob("0_*.lnc"))
    segment.write_bytes(segment.read_bytes()[:-1] + b"?")
    code, error = run("audit", folder, "--engine", engine)
    assert (code, error) == (ExitCode.FAILED, f"error: 1 finding at {folder}\n")


@pytest.mark.usefixtures("javaless")
def test_a_small_folder_is_reported_without_spark(
    server: EmbeddedServer, produce: Callable[..., list[bytes]]
) -> None:
    """Unless that is asked for."""
    produce("orders", 10)
    folder = str(server.data_dir)
    assert run("report", folder) == (ExitCode.OK, "")
    code, error = run("report", folder, "--engine", "spark")
    assert code == ExitCode.USAGE
    assert "Java 17" in error


@pytest.mark.usefixtures("javaless")
def test_a_dry_run_of_an_archive_needs_no_spark(
    server: EmbeddedServer, produce: Callable[..., list[bytes]], tmp_path: Path
) -> None:
    """From a server and from files it tells the same, and makes nothing."""
    produce("orders", 10)
    to = ["--to", str(tmp_path / "archive"), "--dry-run"]
    for source in (["orders", "--url", server.url], [str(server.data_dir)]):
        done = told("archive", *source, *to)
        assert done.stdout == "would read 450 B at most of 1 topic\n", done.stderr
    assert not (tmp_path / "archive").exists()


@pytest.mark.usefixtures("javaless")
def test_a_small_archive_is_replayed_without_spark(server: EmbeddedServer, tmp_path: Path) -> None:
    """Unless there is a condition, which is SQL."""
    (tmp_path / "topic=orders").mkdir()
    (tmp_path / METADATA).mkdir()
    path = tmp_path / "topic=orders" / "0.parquet"
    rows = {"offset": [0, 6], "key": [b"k", b"k"], "value": [b"a", b"b"]}
    pq.write_table(pa.table(rows), path)
    (tmp_path / METADATA / "0").write_text(f'v1\n{{"path":"{path.as_uri()}","size":1}}')
    where = (str(tmp_path), "--url", server.url, "--create-topic")
    for extra, said in ((["--dry-run"], "would replay"), ([], "replayed")):
        assert told("replay", *where, *extra).stdout == f"{said} 2 records of 1 topic\n"
    code, error = run("replay", *where, "--where", "offset > 0")
    assert (code, "Java 17" in error) == (ExitCode.USAGE, True)


@pytest.mark.usefixtures("javaless")
def test_a_small_folder_is_copied_and_indexed_without_spark(
    server: EmbeddedServer, produce: Callable[..., list[bytes]]
) -> None:
    """Migrate and reindex work in processes on this machine."""
    to = ("--rename", "orders=copy", "--create-topic")
    produce("orders", 4000)
    folder = str(server.data_dir)
    copied = told("migrate", folder, "--url", server.url, *to, "--json")
    assert json.loads(copied.stdout)["topics"] == {"copy": 4000}, copied.stderr
    server.stop()
    for index in server.data_dir.rglob("*.sparse.idx"):
        index.unlink()
    first, second = (told("reindex", folder, "--json") for _ in range(2))
    assert len(json.loads(first.stdout)["changed"]) >= 1, first.stderr
    assert json.loads(second.stdout)["changed"] == []


@pytest.mark.parametrize("command", ["report", "archive"])
def test_a_folders_name_without_a_slash_is_a_topics(
    server: EmbeddedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """The error says what it was taken for and how to name the folder."""
    monkeypatch.chdir(tmp_path)
    rest = ["--to", "archive", "--dry-run"] if command == "archive" else []
    taken = "'data' was taken for a topic; for the data directory here say './data'"
    code, error = run(command, "data", *rest)
    assert (code, "no server given" in error, taken in error) == (ExitCode.USAGE, True, True)
    code, error = run(command, "data", *rest, "--url", server.url)
    assert (code, error.count("\n"), taken in error) == (ExitCode.FAILED, 1, True)
    code, error = run(command, "other", *rest, "--url", server.url)
    assert "'other' was taken for a topic; a path has a slash, such as './other'" in error


def test_of_a_topic_and_a_folder_the_topic_is_read_and_the_other_one_told(
    server: EmbeddedServer,
    produce: Callable[..., list[bytes]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On standard error, unless silence is asked for."""
    produce("data", 10)
    monkeypatch.chdir(tmp_path)
    taken = "'data' was taken for a topic; for the data directory here say './data'\n"
    assert run("report", "data", "--url", server.url) == (ExitCode.OK, taken)
    assert run("report", "data", "--url", server.url, "--quiet") == (ExitCode.OK, "")


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["report", "./orders"], "was taken for a path, because of its slash"),
        (["audit", "orders"], "name a data directory, and not a topic of a server"),
        (["migrate", "orders"], "name a data directory, and not a topic of a server"),
    ],
)
def test_a_path_that_is_not_there_is_told_as_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], hint: str
) -> None:
    """With what a topic's name looks like, or that topics are not read."""
    monkeypatch.chdir(tmp_path)
    code, error = run(*arguments, "--url", "lance://127.0.0.1:9")
    assert (code, error.count("\n")) == (ExitCode.USAGE, 1)
    assert "there is nothing; name a folder that exists" in error
    assert hint in error


def test_a_path_that_arrow_cannot_spell_is_named() -> None:
    """A file name of Linux may be any bytes; Arrow takes UTF-8."""
    code, error = run("audit", "/data/orders\udce9")
    assert code == ExitCode.USAGE
    assert "path='/data/orders\\udce9' is not UTF-8" in error


@pytest.mark.usefixtures("javaless")
def test_a_topic_that_is_not_there_is_told_before_spark_starts(
    server: EmbeddedServer, tmp_path: Path
) -> None:
    """In one line, without a trace of Java."""
    to = str(tmp_path / "archive")
    code, error = run("archive", "misspelt", "--url", server.url, "--to", to)
    assert code == ExitCode.FAILED
    assert error.count("\n") == 1
    assert "misspelt" in error


def test_a_java_that_does_not_start_is_told_in_one_line_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After whatever Java itself said, which is passed on but for its usual notice."""
    pytest.importorskip("pyspark", reason="pip install 'lance-sdk[spark]'")
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    notice = "WARNING: Using incubator modules: jdk.incubator.vector"
    java.write_text(f"#!/bin/sh\necho '{notice}\nopenjdk version \"17.0.1\"' >&2\nexit 1\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    (tmp_path / "orders.parquet").touch()
    code, error = run("replay", str(tmp_path), "--url", "lance://127.0.0.1:9")
    assert (code, notice in error) == (ExitCode.FAILED, False)
    assert 'openjdk version "17.0.1"' in error
    assert error.splitlines()[-1].startswith("error: Spark: [JAVA_GATEWAY_EXITED]")


@pytest.mark.usefixtures("javaless")
def test_what_exactly_once_needs_is_told_before_spark_starts(tmp_path: Path) -> None:
    """Both options by name."""
    line = ["--url", "lance://127.0.0.1:9", "-o", "semantics=exactly-once"]
    code, error = run("replay", str(tmp_path), *line)
    assert code == ExitCode.USAGE
    assert error.startswith("error: semantics=exactly-once needs txnId")


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({}, "there is no such folder"),
        ({"segments/0.lnc": b"", "clean.json": b"{}"}, "it has no Parquet files"),
    ],
    ids=["nothing", "a data directory"],
)
def test_what_is_no_archive_is_told_before_spark_starts(
    tmp_path: Path, files: dict[str, bytes], reason: str
) -> None:
    """A folder that is not there, and one of something else."""
    folder = tmp_path / "archive"
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    code, error = run("replay", str(folder), "--url", "lance://127.0.0.1:9", "--engine", "spark")
    assert code == ExitCode.USAGE
    assert error.startswith(f"error: {folder} is not an archive: {reason}")
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("name", "message"), [("file", "is a file; name the folder"), ("", "has no name")]
)
def test_what_cannot_become_an_archive_is_told_before_spark_starts(
    tmp_path: Path, name: str, message: str
) -> None:
    """A file, and nothing."""
    (tmp_path / "file").touch()
    target = str(tmp_path / name) if name else ""
    code, error = run("archive", "./data", "--to", target, "--dry-run")
    assert code == ExitCode.USAGE
    assert message in error


def test_java_starts_sooner_where_there_is_little_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """It compiles its code well where that is worth it."""
    seen: list[bool] = []

    @contextmanager
    def look(*, brief: bool, stop: bool) -> Iterator[None]:
        assert not stop, "the command ends"
        seen.append(brief)
        yield

    monkeypatch.setattr(session, "local_session", look)
    for size in (1 << 20, 1 << 30):
        with _pipeline._spark(size):
            pass
    assert seen == [True, False]
