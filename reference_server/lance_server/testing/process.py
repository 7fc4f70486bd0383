"""The server as a process of its own, and waiting for what it does."""

import atexit
import random
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

COMMAND: Final = (sys.executable, "-m", "lance_server")
DEADLINE: Final = 60.0


def free_port() -> int:
    """Return a port of 127.0.0.1 that stays free while its server is away.

    No outgoing connection gets it, since it lies below the ports that systems give to those; and
    no other process that asks here, since a socket for UDP marks it as taken.

    Raises:
        AssertionError: none is free.
    """
    for port in random.sample(range(20_000, 32_000), 1000):
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            mark = socket.socket(type=socket.SOCK_DGRAM)
            atexit.register(mark.close)
            mark.bind(("127.0.0.1", port))
            return port
    raise AssertionError("no port is free")


class ServerProcess:
    """A running ``lance-server`` on a free port of this machine.

    Args:
        data_dir: where it keeps its data.
        options: further options.
        environment: what is set for it; by default what is set here.

    Attributes:
        process: the process.
        ready: the line it printed.
        address: where it listens.
        http: where it serves health, metrics and status, or None.
        others: where it serves other protocols, by name, such as ``fluvio-sc``.

    Raises:
        AssertionError: it did not start; the message is what it wrote.
    """

    def __init__(
        self, data_dir: Path, *options: str, environment: Mapping[str, str] | None = None
    ) -> None:
        arguments = ["--data-dir", str(data_dir), "--listen", "127.0.0.1:0", *options]
        self.process = subprocess.Popen(  # noqa: S603 - this interpreter, and the test's arguments
            [*COMMAND, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        assert self.process.stdout is not None, "it was asked for"
        self.ready = self.process.stdout.readline()
        if not self.ready:
            _, problem = self.process.communicate(timeout=DEADLINE)
            raise AssertionError(f"the server did not start: {problem}")
        port = self.ready.split(" on ")[1].split(" ")[0].rpartition(":")[2]
        self.address = ("127.0.0.1", int(port))
        facts = self.ready.rstrip(")\n").rpartition(", pid ")[2].split(", ")[1:]
        places = {name: at for name, _, at in (each.partition(" ") for each in facts)}
        self.others = {name: _place(at) for name, at in places.items()}
        self.http = self.others.pop("http", None)

    @classmethod
    @contextmanager
    def running(
        cls, data_dir: Path, *options: str, environment: Mapping[str, str] | None = None
    ) -> Iterator["ServerProcess"]:
        """Run a server; it is killed at the end if it still runs."""
        server = cls(data_dir, *options, environment=environment)
        try:
            yield server
        finally:
            with server.process as process:  # closes its pipes, also of one that ended by itself
                process.kill()

    def end(self, number: signal.Signals) -> tuple[int, str, str]:
        """Send a signal; return exit code, standard output and standard error."""
        self.process.send_signal(number)
        output, problems = self.process.communicate(timeout=DEADLINE)
        return self.process.returncode, output, problems

    def memory(self, figure: str) -> int:
        """Return a figure of the process's memory in bytes.

        Args:
            figure: ``VmRSS``, what it has now, or ``VmHWM``, the most it had.
        """
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        line = next(line for line in status.splitlines() if line.startswith(f"{figure}:"))
        return int(line.split()[1]) * 1024


def _place(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host, int(port)


def eventually(condition: Callable[[], bool], seconds: float = 40.0) -> None:
    """Wait until a condition holds that nobody tells of.

    Raises:
        AssertionError: it did not in time.
    """
    pause = threading.Event()
    for _ in range(int(seconds / 0.01)):
        if condition():
            return
        pause.wait(0.01)
    raise AssertionError("it did not happen in time")
