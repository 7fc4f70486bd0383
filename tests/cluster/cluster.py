"""Three brokers and three nodes, each of which can be kept from the brokers or from clients."""

import signal
import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Final

from tests.cluster.forwarder import BOTH, Forwarder
from tests.cluster.nodes import cloned, lwp_cluster, reasons

from lance_sdk import Client
from lance_server.testing.kafka_brokers import KafkaCluster, free_port
from lance_server.testing.process import ServerProcess

NUMBERS: Final = (1, 2, 3)


class Cluster:
    """Three brokers and three nodes.

    Args:
        folder: where all of them keep their data.
        hosted: what ``--shards`` of each node says; they host all shards where it is empty.
        options: further options of each node.

    Attributes:
        brokers: the brokers.
        nodes: the nodes that run, by number.
    """

    def __init__(
        self, folder: Path, hosted: Mapping[int, str] | None = None, options: Sequence[str] = ()
    ) -> None:
        self._folder = folder
        self._hosted = hosted or {}
        self._options = options
        self._ports = {number: free_port() for number in NUMBERS}
        self._clients = {number: Forwarder(port) for number, port in self._ports.items()}
        self._forwarders: dict[str, list[Forwarder]] = {f"NODE{number}": [] for number in NUMBERS}
        self.brokers = KafkaCluster(
            folder / "kafka", 3, listeners=list(self._forwarders), advertise=self._forward
        )
        self.nodes: dict[int, ServerProcess] = {}

    def _forward(self, listener: str, port: int) -> int:
        forwarder = Forwarder(port)
        self._forwarders[listener].append(forwarder)
        return forwarder.port

    def begin(self, topic: str) -> None:
        """Start everything and create a topic."""
        self.brokers.start_all()
        url = f"kafka://{self.brokers.bootstrap()}/lance"
        done = lwp_cluster("init", url, "--segment-size", "1MiB", "--shards", "2")
        assert done.returncode == 0, done.stderr
        for number in reversed(NUMBERS):  # the last one is the one that trims the log
            self.start(number)
        for number in NUMBERS:
            self.await_ready(number)
        with Client(self.url()) as client:
            client.create_topic(topic)

    def url(self, first: int = 1, path: str = "") -> str:
        """Return the URL of all nodes, one of them first."""
        numbers = sorted(NUMBERS, key=lambda number: (number - first) % len(NUMBERS))
        hosts = ",".join(f"127.0.0.1:{self._clients[number].port}" for number in numbers)
        return f"lance://{hosts}/{path}"

    def data_dir(self, number: int) -> Path:
        """Return where a node has its data."""
        return self._folder / f"node{number}"

    def start(self, number: int) -> None:
        """Start a node; it is not ready yet."""
        log = f"kafka://{self.brokers.bootstrap(f'NODE{number}')}/lance"
        self.nodes[number] = ServerProcess(
            self.data_dir(number),
            *("--listen", f"127.0.0.1:{self._ports[number]}", "--http", "127.0.0.1:0"),
            *("--cluster", log, "--node-id", str(number), "--ack-timeout", "5"),
            *("--advertise", f"127.0.0.1:{self._clients[number].port}"),
            *("--log-level", "error", "--offer-copies"),
            *(["--trim-log"] if number == 1 else []),
            *(["--shards", self._hosted[number]] if self._hosted else []),
            *self._options,
        )

    def await_ready(self, number: int) -> None:
        """Wait until a node says that it is ready."""
        deadline = time.monotonic() + 120
        while found := reasons(self.nodes[number]):
            assert time.monotonic() < deadline, f"node {number} is not ready: {found}"
            time.sleep(0.1)

    def clone(self, number: int) -> None:
        """Give a node that does not run the files of another one, as far as it lacks them."""
        own = self._hosted.get(number)
        alike = [each for each in NUMBERS if each != number and self._hosted.get(each) == own]
        source = self.nodes[alike[0] if alike else 1]
        assert source.http is not None, "it was asked for"
        done = cloned(self.data_dir(number), "{}:{}".format(*source.http))
        assert done.returncode == 0, done.stderr + done.stdout

    def cut(self, number: int, ways: Collection[str] = BOTH) -> None:
        """Keep a node from all brokers."""
        for forwarder in self._forwarders[f"NODE{number}"]:
            forwarder.cut(ways)

    def cut_clients(self, number: int, ways: Collection[str]) -> None:
        """Keep clients from a node."""
        self._clients[number].cut(ways)

    def heal(self, number: int) -> None:
        """Let a node reach the brokers again, and clients the node."""
        for forwarder in (*self._forwarders[f"NODE{number}"], self._clients[number]):
            forwarder.heal()

    def end(self) -> None:
        """End everything."""
        for node in self.nodes.values():
            if node.process.poll() is None:
                node.process.send_signal(signal.SIGCONT)
                node.end(signal.SIGKILL)
        self.brokers.stop_all()
        for forwarders in (*self._forwarders.values(), self._clients.values()):
            for forwarder in forwarders:
                forwarder.close()
