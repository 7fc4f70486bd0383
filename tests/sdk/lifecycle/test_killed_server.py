"""A server that is killed with SIGKILL while a producer sends: nothing is lost, nothing doubled."""

import contextlib
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from lance_sdk import Client, Consumer, Producer


class ServerProcess:
    """A reference server that can be killed and started again on the same data and port."""

    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"lance://127.0.0.1:{self.port}/orders"

    def start(self) -> None:
        """Start it and wait until it answers."""
        listen = ["--listen", f"127.0.0.1:{self.port}"]
        command = [sys.executable, "-m", "lance_server", "--data-dir", str(self._data_dir), *listen]
        self._process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        with Client(self.url, open_timeout=30, backoff_cap=0.1):
            return

    def freeze(self) -> None:
        """Leave it without the processor: what is sent from now on is not answered."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def kill(self) -> None:
        """End it as a power cut would."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait(10)


@pytest.fixture
def victim(tmp_path: Path) -> Iterator[ServerProcess]:
    """Return a server process; it is killed in the end, too."""
    server = ServerProcess(tmp_path / "data")
    server.start()
    with contextlib.closing(_Killer(server)):
        yield server


class _Killer:
    """Kills a server when it is closed."""

    def __init__(self, server: ServerProcess) -> None:
        self.close = server.kill


def test_every_acknowledged_record_is_there_once_and_in_order(victim: ServerProcess) -> None:
    """Retries carry their first ids, and the server knows them again (AMB-25)."""
    values = [b"%07d" % number * 10 for number in range(60_000)]
    enough = threading.Semaphore(0)

    def acknowledged(_delivery: object) -> None:
        enough.release()

    options = {"create_topic": True, "backoff_cap": 0.1, "batch_bytes": 4000}
    with Producer(victim.url, close_timeout=60, **options) as producer:
        for part in range(3):
            chunk = values[part * 20_000 : (part + 1) * 20_000]
            producer.send_many(chunk[:10_000])
            producer.send(chunk[10_000]).add_done_callback(acknowledged)
            assert enough.acquire(timeout=60)
            producer.send_many(chunk[10_001:-1])
            victim.freeze()  # while the second half of the chunk is on its way
            producer.send(chunk[-1])
            victim.kill()
            victim.start()
        producer.flush(timeout=60)
        assert producer.stats().connects >= 4
    with Consumer(victim.url, stop_at_end=True) as consumer:
        found = [record.value for batch in consumer.batches() for record in batch]
    assert found == values
