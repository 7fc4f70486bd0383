"""Stopping: everyone gets a share of the time, nobody takes all of it (design section 9)."""

import signal
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from lance_server import running
from lance_server.config.settings import Address
from lance_server.errors import ListenError
from lance_server.log.log_manager import LogManager
from lance_server.lwp.connection import DRAIN_TIMEOUT
from lance_server.storage.pwritev import PwritevStorage
from lance_server.testing import FaultyStorage, RawClient, ServerProcess, eventually
from lance_spec.enums import Command
from lance_spec.messages.lwp import Fetch
from lance_spec.records import encode_records

if TYPE_CHECKING:
    from lance_server.listeners.listener_api import Listener

MIB = 1024 * 1024


def test_a_client_that_floods_and_never_reads_does_not_hold_up_the_end(tmp_path: Path) -> None:
    """It has a moment to take something; then the log is closed, cleanly."""
    with ServerProcess.running(tmp_path, "--drain-timeout", "20") as server:
        with RawClient(server.address) as client:
            client.store([bytes(8 * MIB)], batch_id=1)
        flood = RawClient(server.address)
        fetch = flood.control(Command.FETCH, Fetch(0, 0, 16 * MIB).encode())
        stop = threading.Event()

        def pour() -> None:
            try:
                while not stop.is_set():
                    flood.send(fetch * 100)
            except OSError:
                pass

        pouring = threading.Thread(target=pour)
        pouring.start()
        begun = time.monotonic()
        code, output, log = server.end(signal.SIGTERM)
        took = time.monotonic() - begun
        stop.set()
        flood.close()
        pouring.join()
    assert (code, "stopped" in output) == (0, True), log
    assert took < DRAIN_TIMEOUT + 6
    with running(tmp_path) as again:
        assert again.report.clean


def test_the_log_gets_its_share_of_the_time(tmp_path: Path) -> None:
    """A peer that trickles through the clients' share leaves enough to close the log."""
    with running(tmp_path, drain_timeout=3.0) as server, RawClient(server.address) as client:
        client.store([bytes(8 * MIB)], batch_id=1)
        client.send(client.control(Command.FETCH, Fetch(0, 0, 16 * MIB).encode()) * 4)
        eventually(lambda: server.stats()["fetches"] >= 1)
        stop = threading.Event()

        def trickle() -> None:
            while not stop.wait(0.05):
                try:
                    if not client.socket.recv(1000):
                        return
                except OSError:
                    return

        reading = threading.Thread(target=trickle)
        reading.start()
        server.stop()
        stop.set()
        reading.join()
    with running(tmp_path) as again:
        assert again.report.clean


def test_what_was_received_is_stored_although_its_client_never_reads(tmp_path: Path) -> None:
    """Batches in the socket's buffer that were taken in are in the log afterwards."""
    disk = FaultyStorage(PwritevStorage())
    with (
        running(tmp_path, storage=disk, inline_commits=False) as server,
        RawClient(server.address) as client,
    ):
        client.store([b"one"], batch_id=1)
        disk.block_syncs()
        client.send(client.batch([b"two"], batch_id=2))
        assert disk.sync_reached.wait(10)
        stopping = threading.Thread(target=server.stop)
        stopping.start()
        disk.release_syncs()
        stopping.join()
    with running(tmp_path) as again, RawClient(again.address) as client:
        assert client.read_all() == encode_records([b"one", b"two"])


class Recorder:
    """A listener that notes what happens to it.

    Args:
        name: what it is called.
        fails: whether it cannot start.
    """

    def __init__(self, name: str, *, fails: bool = False) -> None:
        self.name = name
        self.address = Address("127.0.0.1", 0)
        self.calls: list[str] = []
        self._fails = fails

    async def start(self, engine: LogManager) -> None:
        """Start, or not."""
        assert list(engine.topics()) == []
        self.calls.append("start")
        if self._fails:
            raise ListenError("cannot listen")

    async def stop(self, deadline: float) -> None:
        """Stop."""
        assert deadline > 0
        self.calls.append("stop")


def test_other_protocols_start_and_stop_with_the_server(tmp_path: Path) -> None:
    """Each once, with the log open."""
    first: Recorder = Recorder("first")
    listeners: list[Listener] = [first]
    with running(tmp_path, listeners=listeners):
        assert first.calls == ["start"]
    assert first.calls == ["start", "stop"]


def test_a_start_that_fails_stops_what_was_started(tmp_path: Path) -> None:
    """And frees the data directory and the port."""
    first, second, third = Recorder("1"), Recorder("2", fails=True), Recorder("3")
    try:
        with running(tmp_path, listeners=[first, second, third]):
            raise AssertionError("it started")
    except ListenError:
        pass
    assert (first.calls, second.calls, third.calls) == (["start", "stop"], ["start"], [])
    with running(tmp_path) as server:
        assert server.report.clean
