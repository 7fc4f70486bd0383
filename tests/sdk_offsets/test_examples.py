"""The programs under ``docs/examples``, run as a user would run them, and killed."""

import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from lance_sdk import Consumer, Producer
from lance_server import running

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
KILLS = int(os.environ.get("LANCE_EXAMPLE_KILLS", "2"))
PATIENCE = 60.0


def start(program: str, *arguments: object, **options: Any) -> "subprocess.Popen[bytes]":
    """Start an example."""
    command = [sys.executable, str(EXAMPLES / program), *map(str, arguments)]
    return subprocess.Popen(command, **options)


def until(condition: Callable[[], bool], what: str) -> None:
    """Wait for something that another process does."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.01)


@pytest.fixture
def killed() -> Iterator[Callable[..., None]]:
    """Return what runs a copying program over kills, and compares what it has copied."""
    with ExitStack() as stack:

        def end(process: "subprocess.Popen[bytes]") -> None:
            process.kill()
            process.wait()

        def run(
            program: str, url: str, target: object, rows: Callable[[], list[tuple[int, bytes]]]
        ) -> None:
            values: list[bytes] = []
            with Producer(url, create_topic=True) as producer:
                for turn in range(KILLS + 1):
                    before = len(rows())
                    process = start(program, url, target)
                    stack.callback(end, process)
                    for number in range(100):
                        values.append(b"%d %d" % (turn, number))
                        producer.send(values[-1], key="k").result(PATIENCE)
                    until(lambda before=before: len(rows()) > before, "nothing was copied")  # type: ignore[misc]
                    if turn < KILLS:
                        end(process)
                until(lambda: len(rows()) >= len(values), "not everything was copied")
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE) == 0
            assert [value for _, value in sorted(rows())] == values

        yield run


def test_a_copy_into_sqlite_has_every_record_once(
    tmp_path: Path, killed: Callable[..., None]
) -> None:
    """Over kills at any moment."""
    path = tmp_path / "orders.db"

    def rows() -> list[tuple[int, bytes]]:
        if not path.exists():
            return []
        with sqlite3.connect(path, timeout=30) as database:
            try:
                return database.execute("SELECT at, value FROM records").fetchall()
            except sqlite3.OperationalError:  # the table is not there yet
                return []

    with running(tmp_path / "data") as server:
        killed("copy_to_sqlite.py", f"{server.url}/orders", path, rows)


def test_a_copy_into_postgresql_has_every_record_once(
    tmp_path: Path, postgres_url: str, killed: Callable[..., None]
) -> None:
    """Over kills at any moment; needs psycopg and PostgreSQL: `tox run -e stores` has them."""
    psycopg = import_module("psycopg")

    def rows() -> list[tuple[int, bytes]]:
        with psycopg.connect(postgres_url) as database:
            try:
                return list(database.execute("SELECT at, value FROM records").fetchall())
            except psycopg.errors.UndefinedTable:
                return []

    with running(tmp_path / "data") as server:
        killed("copy_to_postgres.py", f"{server.url}/orders", postgres_url, rows)


def test_a_program_at_the_edge_loses_nothing_that_it_confirmed(tmp_path: Path) -> None:
    """Its server is away, it is killed again and again, and then everything arrives once."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    url, slot, confirmed = f"lance://127.0.0.1:{port}/readings", tmp_path / "slot", list[bytes]()
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    for turn in range(KILLS):
        with start("edge_sensor.py", url, slot, **pipes) as sensor:
            for number in range(20):
                sensor.stdin.write(b"reading %d %d\n" % (turn, number))  # type: ignore[union-attr]
                sensor.stdin.flush()  # type: ignore[union-attr]
                line = sensor.stdout.readline()  # type: ignore[union-attr]
                confirmed.append(line.removeprefix(b"stored ").strip())
            sensor.kill()
    with running(tmp_path / "data", port=port) as server:
        with start("edge_sensor.py", url, slot, stdin=subprocess.DEVNULL) as last:
            assert last.wait(PATIENCE) == 0
        with Consumer(f"{server.url}/readings", stop_at_end=True) as consumer:
            assert [record.value for record in consumer] == confirmed


def test_typed_records_come_back_as_objects(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is not an order is a dead letter that says why."""
    monkeypatch.syspath_prepend(EXAMPLES)
    typed = import_module("typed_orders")
    with running(tmp_path / "data") as server:
        url = f"{server.url}/orders"
        typed.write(url, [typed.Order(1, "fig", 3), typed.Order(2, "fig")])
        with Producer(url) as producer:
            producer.send(b'{"id": 3}', key="pear")
        assert typed.read(url) == {"fig": 4}
        (why,) = typed.failures(url)
    assert "article" in why


def test_the_service_passes_the_tests_of_its_own(tmp_path: Path) -> None:
    """With FastAPI, pydantic and httpx, and the fixtures of this package."""
    for package in ("fastapi", "pydantic", "httpx"):
        pytest.importorskip(package, reason=f"{package} is missing; `tox run -e examples` has it")
    assert "3 passed" in own_tests(tmp_path, "orders_api")


def test_the_other_programs_pass_the_tests_of_their_own(tmp_path: Path) -> None:
    """With the fixtures of this package."""
    told = own_tests(tmp_path, "copy_to_sqlite", "edge_sensor", "typed_orders")
    assert "5 passed" in told


def own_tests(folder: Path, *programs: str) -> str:
    """Run the tests that stand beside programs, somewhere else; return what pytest says."""
    for name in programs:
        shutil.copy(EXAMPLES / f"{name}.py", folder)
        shutil.copy(EXAMPLES / f"test_{name}.py", folder)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(folder)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=folder, env={**os.environ}
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
