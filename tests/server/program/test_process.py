"""The server as a process: what it prints, how it ends, and what SIGKILL leaves."""

import json
import os
import signal
import socket
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from lance_server import running
from lance_server.storage.uring.backend import UringStorage
from lance_server.testing import RawClient, ServerProcess
from lance_server.testing.process import COMMAND, DEADLINE
from lance_spec.enums import Command
from lance_spec.frames import FrameKind
from lance_spec.messages.lwp import Fetch, FetchResponse
from lance_spec.records import decode_records, encode_records

serving = ServerProcess.running


def run(*options: str) -> subprocess.CompletedProcess[str]:
    """Run a server that is expected not to start."""
    return subprocess.run(
        [*COMMAND, *options], capture_output=True, text=True, timeout=DEADLINE, check=False
    )


def assert_one_clear_line(
    outcome: subprocess.CompletedProcess[str], code: int, *words: str
) -> None:
    """One sentence, no traceback, and the documented exit code."""
    last = outcome.stderr.strip().splitlines()[-1]
    assert outcome.returncode == code, outcome.stderr
    assert "Traceback" not in outcome.stderr
    assert all(word in last for word in words), last


# Starting --------------------------------------------------------------------------------------


def test_the_ready_line_says_where_it_listens(tmp_path: Path) -> None:
    """With port 0 it is the only way to know."""
    with serving(tmp_path) as server:
        assert server.ready.startswith(f"lance-server ready on 127.0.0.1:{server.address[1]} ")
        with RawClient(server.address) as client:
            client.store([b"one"], batch_id=1)


def test_the_log_tells_of_the_end(tmp_path: Path) -> None:
    """When it begins, and that nothing was left."""
    with serving(tmp_path) as server:
        code, _, log = server.end(signal.SIGTERM)
    assert code == 0
    assert "stopping: 0 connections are served to their end" in log
    assert "stopped: everything is stored" in log


def test_the_port_can_be_read_from_a_file(tmp_path: Path) -> None:
    """For scripts that start it in the background."""
    with serving(tmp_path / "data", "--port-file", str(tmp_path / "port")) as server:
        assert int((tmp_path / "port").read_text()) == server.address[1]


def test_options_are_passed_on(tmp_path: Path) -> None:
    """A pinned dialect and a small payload limit, seen from outside."""
    options = ["--dialect", "specified", "--max-payload", "2KiB", "--dedup-entries", "5"]
    with serving(tmp_path, *options) as server, RawClient(server.address) as client:
        window = client.ask_json(Command.GET_CLUSTER_STATUS)["dedup_window"]
        assert window == {"entries": 5, "max_age_secs": 604_800}
        client.send(client.batch([bytes(4096)], batch_id=1))
        assert "Payload too large" in client.error().message


def test_logs_can_be_json(tmp_path: Path) -> None:
    """Every line of standard error is an object."""
    with serving(tmp_path, "--json-logs") as server:
        _, _, problems = server.end(signal.SIGTERM)
    lines = [json.loads(line) for line in problems.splitlines()]
    assert {"time", "level", "logger", "message"} <= set(lines[0])


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (["--listen", "nonsense"], "'nonsense' is not an address"),
        (["--listen", "127.0.0.1:99999"], "at most 65535"),
        (["--dialect", "klingon"], "klingon"),
        (["--max-payload", "lots"], "'lots' is not a size"),
        (["--max-payload", "1"], "1 KiB to 256 MiB"),
        (["--idle-timeout", "0"], "idle-timeout"),
    ],
)
def test_wrong_options_are_told(tmp_path: Path, options: Sequence[str], word: str) -> None:
    """One line that names the option's value and what would be right; exit code 2."""
    assert_one_clear_line(run("--data-dir", str(tmp_path), *options), 2, word)


def test_a_missing_data_directory_option_is_told() -> None:
    """There is no default for where data is kept."""
    assert_one_clear_line(run(), 2, "--data-dir")


def test_a_second_server_names_the_first(tmp_path: Path) -> None:
    """The data directory has one owner; its process id is in the message."""
    with serving(tmp_path) as server:
        outcome = run("--data-dir", str(tmp_path), "--listen", "127.0.0.1:0")
        assert_one_clear_line(outcome, 2, "in use by process", str(server.process.pid))


def test_a_data_directory_that_is_a_file_is_told(tmp_path: Path) -> None:
    """Exit code 3: the data directory cannot be used."""
    (tmp_path / "file").write_text("")
    outcome = run("--data-dir", str(tmp_path / "file"), "--listen", "127.0.0.1:0")
    assert_one_clear_line(outcome, 3, "data directory", str(tmp_path / "file"))


def test_a_data_directory_that_cannot_be_made_is_told() -> None:
    """Exit code 3, and what to do; not even root may create folders in sysfs."""
    outcome = run("--data-dir", "/sys/lance-data", "--listen", "127.0.0.1:0")
    assert_one_clear_line(outcome, 3, "may write to")


def test_a_damaged_catalog_is_told(tmp_path: Path) -> None:
    """Both copies gone: the server does not guess which ids were used."""
    with serving(tmp_path) as server:
        with RawClient(server.address) as client:
            client.create_topic("one")
        server.end(signal.SIGTERM)
    for path in (tmp_path / "segments").glob("catalog.json*"):
        path.write_text("{}")
    outcome = run("--data-dir", str(tmp_path), "--listen", "127.0.0.1:0")
    assert_one_clear_line(outcome, 3, "catalog.json", "Restore")


def test_a_port_in_use_is_told(tmp_path: Path) -> None:
    """Exit code 4: the address cannot be listened on."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        outcome = run("--data-dir", str(tmp_path), "--listen", address)
    assert_one_clear_line(outcome, 4, address, "another server")


# Stopping --------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_it_cleanly(tmp_path: Path, number: signal.Signals) -> None:
    """Exit code 0, also with an idle client connected, and the next start has nothing to check."""
    with serving(tmp_path) as server, RawClient(server.address) as client:
        client.store([b"one"], batch_id=1)
        code, output, problems = server.end(number)
        assert (code, output) == (0, "lance-server stopped\n")
        assert "ERROR" not in problems
        assert client.wait_for_close() == []
    with running(tmp_path) as again:
        assert again.report.clean


def test_a_stop_under_load_keeps_every_acknowledged_batch(tmp_path: Path) -> None:
    """Acks that were sent are good, and all that was acknowledged is there."""
    with serving(tmp_path) as server:
        client = RawClient(server.address)
        acked = Producer(client)
        acked.start()
        acked.wait_for(200)
        code, _, _ = server.end(signal.SIGTERM)
        acked.join()
        client.close()
    assert code == 0
    with running(tmp_path) as again, RawClient(again.address) as reader:
        assert again.report.clean
        assert set(acked.values) <= set(values_of(reader.read_all()))


class Producer(threading.Thread):
    """Keeps sixteen batches under way until the connection ends.

    Attributes:
        values: what was acknowledged.
    """

    WINDOW = 16

    def __init__(self, client: RawClient, first: int = 1) -> None:
        super().__init__()
        self._client = client
        self._next = first
        self._enough = threading.Event()
        self._goal = 0
        self.values: list[bytes] = []

    def run(self) -> None:
        """Send and count acknowledgements."""
        acked = self._next
        try:
            while True:
                while self._next - acked < self.WINDOW:
                    value = self.value_of(self._next)
                    self._client.send(self._client.batch([value], batch_id=self._next))
                    self._next += 1
                frame = self._client.receive()
                if frame.kind is FrameKind.ACK:
                    assert frame.batch_id == acked, "acknowledged out of order"
                    self.values.append(self.value_of(acked))
                    acked += 1
                if len(self.values) >= self._goal > 0:
                    self._enough.set()
        except OSError:
            self._enough.set()

    @staticmethod
    def value_of(batch_id: int) -> bytes:
        """Return the record of a batch: its id, and some weight."""
        return b"%d " % batch_id + b"x" * (batch_id * 37 % 2000)

    def wait_for(self, count: int) -> None:
        """Wait until so many batches are acknowledged."""
        self._goal = count
        assert self._enough.wait(DEADLINE)


class Reader(threading.Thread):
    """Follows the end of the log until the connection ends.

    Attributes:
        seen: what was read, by offset.
    """

    def __init__(self, client: RawClient, start: int = 0) -> None:
        super().__init__()
        self._client = client
        self._start = start
        self.seen: dict[int, bytes] = {}

    def run(self) -> None:
        """Fetch and remember."""
        try:
            while True:
                request = Fetch(0, self._start, 1 << 20).encode()
                answer = FetchResponse.decode(self._client.ask(Command.FETCH, request).payload)
                if answer.bytes_returned:
                    self.seen[self._start] = bytes(answer.data)
                self._start = answer.next_offset
        except OSError:
            return


def values_of(data: bytes) -> list[bytes]:
    """Return the values of a chain of records."""
    return [value for _, value in decode_records(data)]


ROUNDS = int(os.environ.get("LANCE_KILL_ROUNDS", "3"))
"""For each way of writing; the long profile sets 170."""


@pytest.mark.parametrize(
    "options",
    [
        ("--storage", "pwritev2"),
        ("--storage", "io_uring"),
        ("--durability", "wal"),
        ("--durability", "wal", "--inline-commits"),
    ],
    ids=lambda options: " ".join(options[1:]),
)
def test_sigkill_under_load_loses_and_moves_nothing(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    """Killed again and again: what was acked stays, what was read keeps its offset."""
    if "io_uring" in options:
        require_io_uring()
    acked: set[bytes] = set()
    seen: dict[int, bytes] = {}
    first = 1
    for number in range(ROUNDS):
        with serving(tmp_path, "--segment-size", "64KiB", *options) as server:
            judge(server.address, acked, seen)
            clients = [RawClient(server.address) for _ in range(2)]
            producer = Producer(clients[0], first)
            reader = Reader(clients[1], max(seen, default=0))
            producer.start()
            reader.start()
            producer.wait_for(60 + 41 * number)
            server.end(signal.SIGKILL)
            producer.join()
            reader.join()
            for client in clients:
                client.close()
        acked.update(producer.values)
        seen.update(reader.seen)
        first = 1_000_000 * (number + 1)
    assert len(acked) > 60 * ROUNDS
    with serving(tmp_path, *options) as server:
        judge(server.address, acked, seen)


def require_io_uring() -> None:
    """Skip where the kernel does not offer io_uring."""
    try:
        UringStorage()
    except OSError as error:
        pytest.skip(f"io_uring is not available here: {error.strerror}")


def judge(address: tuple[str, int], acked: set[bytes], seen: dict[int, bytes]) -> None:
    """Compare what a server has with what its predecessors acknowledged and showed."""
    with RawClient(address) as client:
        data = client.read_all()
        values = values_of(data)
        assert acked <= set(values)
        assert len(values) == len(set(values))
        assert all(value == Producer.value_of(int(value.split()[0])) for value in values)
        for offset, piece in seen.items():
            assert client.fetch(offset, len(piece)).data == piece


def test_a_kill_leaves_the_lock_free(tmp_path: Path) -> None:
    """The lock goes with the process; no stale file keeps the next server out."""
    with serving(tmp_path) as server, RawClient(server.address) as client:
        client.store([b"one"], batch_id=1)
        server.end(signal.SIGKILL)
    with serving(tmp_path) as server, RawClient(server.address) as client:
        assert client.read_all() == encode_records([b"one"])
