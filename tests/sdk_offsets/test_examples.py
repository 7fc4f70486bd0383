"""The programs under ``docs/examples``, run as a user would run them, and killed."""

import ast
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack, contextmanager
from http.client import HTTPException
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from tests.restarted import RestartedServer

from lance_sdk import Consumer, Producer
from lance_server import running
from lance_server.testing import free_port

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
KILLS = int(os.environ.get("LANCE_EXAMPLE_KILLS", "2"))
PATIENCE = 60.0
PIPES: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}


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

        def write(producer: Producer, values: list[bytes]) -> None:
            for _ in range(50):
                values.append(b"%d" % len(values))
                producer.send(values[-1], key="k").result(PATIENCE)

        def run(
            program: str,
            server: RestartedServer,
            target: object,
            rows: Callable[[], list[tuple[int, bytes]]],
        ) -> None:
            values: list[bytes] = []
            url = f"{server.url}/orders"
            with Producer(url, create_topic=True) as producer:
                for turn in range(KILLS + 1):
                    before = len(rows())
                    process = start(program, url, target)
                    stack.callback(end, process)
                    write(producer, values)
                    until(lambda before=before: len(rows()) > before, "nothing was copied")  # type: ignore[misc]
                    server.kill()
                    write(producer, values)
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
    """Over kills of the program and of the server."""
    path = tmp_path / "orders.db"

    def rows() -> list[tuple[int, bytes]]:
        if not path.exists():
            return []
        with sqlite3.connect(path, timeout=30) as database:
            try:
                return database.execute("SELECT at, value FROM records").fetchall()
            except sqlite3.OperationalError:  # the table is not there yet
                return []

    with RestartedServer(tmp_path / "data") as server:
        killed("copy_to_sqlite.py", server, path, rows)


def test_a_copy_into_postgresql_has_every_record_once(
    tmp_path: Path, postgres_url: str, killed: Callable[..., None]
) -> None:
    """Over kills of both; needs psycopg and PostgreSQL: `tox run -e stores` has them."""
    psycopg = import_module("psycopg")

    def rows() -> list[tuple[int, bytes]]:
        with psycopg.connect(postgres_url) as database:
            try:
                return list(database.execute("SELECT at, value FROM records").fetchall())
            except psycopg.errors.UndefinedTable:
                return []

    with RestartedServer(tmp_path / "data") as server:
        killed("copy_to_postgres.py", server, postgres_url, rows)


def test_a_program_at_the_edge_loses_nothing_that_it_confirmed(tmp_path: Path) -> None:
    """Its server is away or killed, it is killed again and again, and everything arrives once."""
    listen = f"127.0.0.1:{free_port()}"
    url, slot, confirmed = f"lance://{listen}/readings", tmp_path / "slot", list[bytes]()

    def run(turn: int, at_10: Callable[[], None]) -> None:
        with start("edge_sensor.py", url, slot, **PIPES) as sensor:
            for number in range(20):
                sensor.stdin.write(b"reading %d %d\n" % (turn, number))  # type: ignore[union-attr]
                sensor.stdin.flush()  # type: ignore[union-attr]
                line = sensor.stdout.readline()  # type: ignore[union-attr]
                confirmed.append(line.removeprefix(b"stored ").strip())
                if number == 10:
                    at_10()
            sensor.kill()

    for turn in range(KILLS):
        run(turn, lambda: None)
    with RestartedServer(tmp_path / "data", "--listen", listen) as server:
        for turn in range(KILLS):
            run(KILLS + turn, server.kill)
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


def test_typed_records_that_were_confirmed_are_there_once(tmp_path: Path) -> None:
    """Program and server are killed while orders are written."""
    confirmed: list[int] = []
    counts: dict[str, int] = {}
    with RestartedServer(tmp_path / "data") as server:
        url = f"{server.url}/orders"
        for turn in range(KILLS + 1):
            orders = [{"id": 40 * turn + number, "article": "fig"} for number in range(40)]
            with start("typed_orders.py", url, **PIPES) as program:
                program.stdin.write("".join(f"{json.dumps(each)}\n" for each in orders).encode())  # type: ignore[union-attr]
                program.stdin.close()  # type: ignore[union-attr]
                for line in program.stdout:  # type: ignore[union-attr]
                    if not line.startswith(b"stored "):
                        counts = ast.literal_eval(line.decode())
                        break
                    confirmed.append(int(line.split()[1]))
                    if confirmed[-1] % 40 == 10:
                        server.kill()
                    if confirmed[-1] % 40 == 20 and turn < KILLS:
                        program.kill()
        stored = Counter(each["id"] for each in written(url))
    assert_there_once(confirmed, stored)
    assert counts == {"fig": stored.total()}


def test_orders_that_the_service_confirmed_are_there_once(tmp_path: Path) -> None:
    """Service and server are killed while several customers order."""
    for package in ("fastapi", "pydantic", "uvicorn"):
        pytest.importorskip(package, reason=f"{package} is missing; `tox run -e examples` has it")
    confirmed: list[int] = []
    with (
        RestartedServer(tmp_path / "data") as server,
        ThreadPoolExecutor(4) as customers,
    ):
        url = f"{server.url}/orders"
        for turn in range(KILLS):
            with service(url) as (process, address):
                answers = [customers.submit(order, address, 40 * turn + each) for each in range(40)]
                for done, answer in enumerate(as_completed(answers)):
                    confirmed += answer.result()
                    if done == 10:
                        server.kill()
                    if done == 25:
                        process.kill()
        with service(url) as (_, address):
            fresh = iter(range(40 * KILLS, sys.maxsize))
            until(lambda: bool(order(address, next(fresh))), "no order is taken any more")
        stored = Counter(each["id"] for each in written(url))
    assert confirmed
    assert_there_once(confirmed, stored)


def written(url: str) -> list[dict[str, Any]]:
    """Return all orders of a topic."""
    with Consumer(url, values="json", stop_at_end=True) as consumer:
        return [record.value for record in consumer]


def assert_there_once(confirmed: list[int], stored: Counter[int]) -> None:
    """Fail where a confirmed order is missing, or any order is there twice."""
    assert set(confirmed) <= stored.keys()
    assert set(stored.values()) == {1}


@contextmanager
def service(url: str) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """Run the service as its page says; yield the process and its address."""
    command = [sys.executable, "-m", "uvicorn", "--port", "0", "orders_api:app"]
    environment = {**os.environ, "ORDERS_URL": url}
    with subprocess.Popen(
        command, cwd=EXAMPLES, env=environment, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            told = iter(process.stderr)  # type: ignore[arg-type]
            address = next(filter(None, (re.search(r"http://[\d.:]+", line) for line in told)))
            yield process, address[0]
        finally:
            process.kill()


def order(address: str, number: int) -> list[int]:
    """Order something; return the order's number where the service says that it is stored."""
    body = json.dumps({"id": number, "article": "fig"}).encode()
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(f"{address}/orders", body, headers)
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return [json.load(answer)["id"]]
    except (OSError, HTTPException):  # refused, or the service is gone
        return []


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
