"""Kafka brokers on this machine, one or several, which a caller may kill, stop and start again.

Every broker is a controller, too. Each client gets listeners of its own, so that it can be cut off
from the brokers while others reach them: the addresses that a client is told may be those of
forwarders.
"""

import os
import shutil
import signal
import subprocess
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep
from uuid import uuid4

from lance_server.testing.process import free_port

_JAVA = ("-Xmx256m", "-Xms64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_READY = "Kafka Server started"
_START_SECONDS = 120.0
MAIN = "PLAINTEXT"
"""The listener of clients that are never cut off, and of the brokers among themselves."""

Advertise = Callable[[str, int], int]
"""Returns the port that clients of a listener are told, from its name and its real port."""


def jars() -> Path | None:
    """Return the folder with the brokers' jars, or None where they were not installed.

    The environment variable ``LANCE_KAFKA_JARS`` names it.
    """
    folder = os.environ.get("LANCE_KAFKA_JARS", "")
    return Path(folder) if folder and any(Path(folder).glob("kafka_*.jar")) else None


def lacks_broker() -> str | None:
    """Return what a broker would need here, or None."""
    if shutil.which("java") is None:
        return "Java 17 or later"
    if jars() is None:
        return "the jars of Kafka, in the folder that LANCE_KAFKA_JARS names"
    return None


class KafkaCluster:
    """Brokers that share a folder.

    Args:
        folder: where they keep their logs; a new one.
        count: how many there are.
        listeners: names of further listeners, in capital letters.
        advertise: returns the port that a listener's clients are told; by default its own.

    Attributes:
        processes: those that run, by number from 1 on.
    """

    def __init__(
        self,
        folder: Path,
        count: int,
        *,
        listeners: Sequence[str] = (),
        advertise: Advertise = lambda _name, port: port,
    ) -> None:
        self._folder = folder
        self._id = urlsafe_b64encode(uuid4().bytes).decode().rstrip("=")
        self._numbers = range(1, count + 1)
        self._controllers = {number: free_port() for number in self._numbers}
        self._ports = {
            (number, name): free_port() for number in self._numbers for name in (MAIN, *listeners)
        }
        self._told = {
            key: port if key[1] == MAIN else advertise(key[1], port)
            for key, port in self._ports.items()
        }
        self.processes: dict[int, subprocess.Popen[bytes]] = {}

    def bootstrap(self, listener: str = MAIN) -> str:
        """Return the addresses that clients of a listener begin with."""
        return ",".join(f"127.0.0.1:{self._told[number, listener]}" for number in self._numbers)

    @property
    def numbers(self) -> Sequence[int]:
        """The brokers' numbers."""
        return self._numbers

    def start_all(self) -> None:
        """Start all brokers and wait until they are ready."""
        for number in self._numbers:
            self.begin(number)
        for number in self._numbers:
            self.await_ready(number)

    def begin(self, number: int) -> None:
        """Start a broker; it is not ready yet."""
        home = self._folder / f"broker{number}"
        settings = home / "server.properties"
        if not home.exists():
            home.mkdir(parents=True)
            pairs = self._properties(number, home)
            settings.write_text("".join(f"{name}={value}\n" for name, value in pairs.items()))
            name = f"--cluster-id={self._id}"  # one argument: an id may begin with a dash
            self._run(["kafka.tools.StorageTool", "format", name, "-c", str(settings)])
        log = (home / "broker.log").open("wb")
        try:
            self.processes[number] = subprocess.Popen(  # noqa: S603 - Java, and our arguments
                self._command(["kafka.Kafka", str(settings)]), stdout=log, stderr=log
            )
        finally:
            log.close()

    def _command(self, arguments: Sequence[str]) -> list[str]:
        folder = jars()
        assert folder is not None, "see `lacks_broker`"
        return ["java", *_JAVA, "-cp", f"{folder}/*", *arguments]

    def _run(self, arguments: Sequence[str]) -> None:
        command = self._command(arguments)
        subprocess.run(command, check=True, capture_output=True)  # noqa: S603 - as above

    def _properties(self, number: int, home: Path) -> Mapping[str, str]:
        voters = ",".join(f"{each}@127.0.0.1:{port}" for each, port in self._controllers.items())
        mine = {name: port for (each, name), port in self._ports.items() if each == number}
        told = {name: self._told[number, name] for name in mine}
        count = str(min(3, len(self._numbers)))
        return {
            "process.roles": "broker,controller",
            "node.id": str(number),
            "controller.quorum.voters": voters,
            "listeners": _addresses({**mine, "CONTROLLER": self._controllers[number]}),
            "advertised.listeners": _addresses(told),
            "inter.broker.listener.name": MAIN,
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": ",".join(
                f"{name}:PLAINTEXT" for name in (*mine, "CONTROLLER")
            ),
            "log.dirs": str(home / "logs"),
            "offsets.topic.replication.factor": count,
            "offsets.topic.num.partitions": "1",
            "transaction.state.log.replication.factor": count,
            "transaction.state.log.min.isr": "1",
            "group.initial.rebalance.delay.ms": "0",
            "auto.create.topics.enable": "false",
            "num.network.threads": "2",
            "num.io.threads": "3",
            "log.cleaner.enable": "false",
            # A dead broker is noticed after 2 s, not 9.
            "broker.session.timeout.ms": "2000",
            "broker.heartbeat.interval.ms": "400",
            "controller.quorum.election.timeout.ms": "500",
            "controller.quorum.fetch.timeout.ms": "1000",
            "replica.lag.time.max.ms": "4000",
        }

    def await_ready(self, number: int) -> None:
        """Wait until a broker serves.

        Raises:
            RuntimeError: it ended, or was not ready in time; the message is what it logged.
        """
        path, process = self._folder / f"broker{number}" / "broker.log", self.processes[number]
        deadline = monotonic() + _START_SECONDS
        while _READY not in (logged := path.read_text(errors="replace")):
            if process.poll() is not None or monotonic() > deadline:
                raise RuntimeError(f"broker {number} did not start: {logged[-2000:]}")
            sleep(0.05)

    def kill(self, number: int) -> None:
        """End a broker at once."""
        process = self.processes.pop(number)
        process.kill()
        process.wait()

    def pause(self, number: int) -> None:
        """Stop a broker where it is."""
        os.kill(self.processes[number].pid, signal.SIGSTOP)

    def resume(self, number: int) -> None:
        """Let a broker go on."""
        os.kill(self.processes[number].pid, signal.SIGCONT)

    def stop_all(self) -> None:
        """End all brokers; their folder is of no use afterwards."""
        for number in list(self.processes):
            self.kill(number)


def _addresses(ports: Mapping[str, int]) -> str:
    return ",".join(f"{name}://127.0.0.1:{port}" for name, port in ports.items())


@contextmanager
def brokers(folder: Path, count: int) -> Iterator[KafkaCluster]:
    """Run brokers until the block ends.

    Raises:
        OSError: Java is not there.
        RuntimeError: one ended before it was ready.
    """
    found = KafkaCluster(folder, count)
    try:
        found.start_all()
        yield found
    finally:
        found.stop_all()
