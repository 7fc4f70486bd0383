"""Three brokers and three nodes, killed, stopped and cut off at random while clients go on."""

import os
import resource
import shutil
import signal
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Final

import pytest
from tests.cluster.cluster import NUMBERS, Cluster
from tests.cluster.forwarder import BOTH, FROM, TO
from tests.cluster.history import History, problems
from tests.cluster.nodes import reasons

from lance_sdk import Client, Consumer, Producer
from lance_sdk.errors import LanceError
from lance_server.testing.process import eventually

SECONDS: Final = float(os.environ.get("LANCE_CLUSTER_SECONDS", "60"))
TOPIC: Final = "orders"
SEED: Final = int(os.environ.get("LANCE_CLUSTER_SEED", "1"))


@contextmanager
def running(
    folder: Path, hosted: Mapping[int, str] | None = None, options: Sequence[str] = ()
) -> Iterator[Cluster]:
    """Run a cluster with a topic."""
    found = Cluster(folder, hosted, options)
    try:
        found.begin(TOPIC)
        yield found
    finally:
        found.end()


class Nemesis:
    """Does harm at random, one thing at a time, and mends it.

    Args:
        cluster: what is harmed.
        random: decides.

    Attributes:
        done: what was done, in order.
    """

    def __init__(self, cluster: Cluster, random: Random) -> None:
        self._cluster = cluster
        self._random = random
        self._harms: list[Callable[[int, float], None]] = [
            self._kill_node,
            self._pause_node,
            self._cut_node,
            self._cut_clients,
            self._kill_broker,
            self._pause_broker,
            self._kill_both,
            self._fill_disk,
            self._lose_disk,
            self._damage_disk,
        ]
        self.done: list[str] = []

    def run(self, seconds: float) -> None:
        """Do harm for a while."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            harm, number = self._random.choice(self._harms), self._random.choice(NUMBERS)
            pause = self._random.uniform(0.2, 4.0)
            self.done.append(f"{harm.__name__} {number} for {pause:.1f} s")
            harm(number, pause)
            for each in NUMBERS:
                self._cluster.await_ready(each)

    def _kill_node(self, number: int, pause: float) -> None:
        self._cluster.nodes[number].end(signal.SIGKILL)
        time.sleep(pause)
        self._cluster.start(number)

    def _pause_node(self, number: int, pause: float) -> None:
        process = self._cluster.nodes[number].process
        process.send_signal(signal.SIGSTOP)
        time.sleep(pause)
        process.send_signal(signal.SIGCONT)

    def _cut_node(self, number: int, pause: float) -> None:
        self._cluster.cut(number, self._ways())
        time.sleep(2 * pause)
        self._cluster.heal(number)

    def _cut_clients(self, number: int, pause: float) -> None:
        self._cluster.cut_clients(number, self._ways())
        time.sleep(2 * pause)
        self._cluster.heal(number)

    def _ways(self) -> Collection[str]:
        """Return which way nothing goes any more, and note it."""
        ways = self._random.choice((BOTH, (TO,), (FROM,)))
        self.done[-1] += f" {' and '.join(ways)}"
        return ways

    def _kill_broker(self, number: int, pause: float) -> None:
        self._cluster.brokers.kill(number)
        time.sleep(pause)
        self._cluster.brokers.begin(number)
        self._cluster.brokers.await_ready(number)

    def _pause_broker(self, number: int, pause: float) -> None:
        self._cluster.brokers.pause(number)
        time.sleep(pause)
        self._cluster.brokers.resume(number)

    def _kill_both(self, number: int, pause: float) -> None:
        self._cluster.nodes[number].end(signal.SIGKILL)
        self._kill_broker(self._random.choice(NUMBERS), pause)
        self._cluster.start(number)

    def _fill_disk(self, number: int, pause: float) -> None:
        """Let no file of a node grow any more; it has to say so, and others have to go on."""
        node = self._cluster.nodes[number]
        resource.prlimit(node.process.pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
        eventually(lambda: any("stopped applying" in each for each in reasons(node)), 120)
        time.sleep(pause)
        code, _, trouble = node.end(signal.SIGTERM)
        assert code == 1, trouble
        self._cluster.start(number)

    def _lose_disk(self, number: int, pause: float) -> None:
        """Take everything that a node has; the log has not got its beginning any more."""
        self._cluster.nodes[number].end(signal.SIGKILL)
        shutil.rmtree(self._cluster.data_dir(number))
        time.sleep(pause)
        self._cluster.clone(number)
        self._cluster.start(number)

    def _damage_disk(self, number: int, pause: float) -> None:
        """Change a byte of a file of a node that does not run, and mend it."""
        self._cluster.nodes[number].end(signal.SIGKILL)
        time.sleep(pause)
        files = sorted(self._cluster.data_dir(number).glob("segments/*/*.lnc"))
        if filled := [each for each in files if each.stat().st_size]:  # none before the first batch
            self._change_a_byte(self._random.choice(filled))
        self._cluster.clone(number)
        self._cluster.start(number)

    def _change_a_byte(self, path: Path) -> None:
        with path.open("r+b") as file:
            file.seek(self._random.randrange(path.stat().st_size))
            (byte,) = file.read(1)
            file.seek(-1, 1)
            file.write(bytes([byte ^ 0xFF]))


class Writer:
    """Writes numbered records until it is told to stop, one batch at a time.

    Attributes:
        acked: values that were acknowledged, in the order of sending.
        maybe: values of which nobody knows whether they are stored.
    """

    def __init__(self, name: str, url: str) -> None:
        self._name = name
        self._url = url
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        self.acked: list[bytes] = []
        self.maybe: set[bytes] = set()
        self.longest_gap = 0.0

    def _run(self) -> None:
        number, last = 0, time.monotonic()
        with Producer(self._url, max_in_flight=1, delivery_timeout=90) as producer:
            while not self._stop.is_set():
                values = [b"%s %d" % (self._name.encode(), number + each) for each in range(20)]
                number += len(values)
                sent = [(value, producer.send(value)) for value in values]
                for value, delivery in sent:
                    try:
                        delivery.result(120)
                    except LanceError:
                        self.maybe.add(value)
                    else:
                        self.acked.append(value)
                self.longest_gap = max(self.longest_gap, time.monotonic() - last)
                last = time.monotonic()
                time.sleep(0.01)

    def stop(self) -> None:
        """Finish what was begun."""
        self._stop.set()
        self._thread.join()


class Reader:
    """Reads everything from the beginning, wherever it is served.

    Attributes:
        values: what it got, in order.
        error: what ended it, or None.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.values: list[bytes] = []
        self.error: LanceError | None = None
        self._thread.start()

    def _run(self) -> None:
        try:
            with Consumer(self._url, start="beginning") as consumer:
                while not self._stop.is_set():
                    batch = consumer.poll(0.2)
                    self.values += [bytes(record.value) for record in batch or ()]
        except LanceError as error:
            self.error = error

    def stop(self) -> None:
        """Read no more."""
        self._stop.set()
        self._thread.join()


@pytest.mark.timeout(SECONDS * 3 + 600)
def test_nothing_acknowledged_is_lost(tmp_path: Path) -> None:
    """Every record is there once, in one order, on every node, and the files are equal."""
    with running(tmp_path) as cluster:
        harm_and_judge(cluster, SECONDS, NUMBERS)


@pytest.mark.timeout(SECONDS * 3 + 600)
@pytest.mark.parametrize("option", ["--forward", "--redirect"])
def test_nothing_is_lost_where_nodes_host_some_shards(tmp_path: Path, option: str) -> None:
    """The same at the two nodes that host the topic; the third one forwards, or redirects."""
    with running(tmp_path, {1: "1", 2: "1", 3: "0"}, [option]) as cluster:
        harm_and_judge(cluster, SECONDS / 4, (1, 2))


def harm_and_judge(cluster: Cluster, seconds: float, hosts: Collection[int]) -> None:
    """Do harm while clients write and read at all nodes; then judge the files of some."""
    nemesis = Nemesis(cluster, Random(SEED))
    writers = {
        f"writer{number}": Writer(f"writer{number}", cluster.url(number, TOPIC))
        for number in NUMBERS
    }
    readers = [Reader(cluster.url(number, TOPIC)) for number in NUMBERS]
    try:
        nemesis.run(seconds)
    finally:
        for each in (*writers.values(), *readers):
            each.stop()
    with Client(cluster.url(1)) as client:
        topic = client.get_topic(TOPIC).id
    await_equal_ends(cluster)
    for node in cluster.nodes.values():
        code, _, trouble = node.end(signal.SIGTERM)
        assert code == 0, trouble
    maybe = {value for each in writers.values() for value in each.maybe}
    acked = {name: each.acked for name, each in writers.items()}
    folders = [cluster.data_dir(number) for number in hosts]
    for reader in readers:
        assert reader.error is None, nemesis.done
        assert problems(History(acked, maybe, reader.values), folders, topic) == [], nemesis.done
    total = sum(map(len, acked.values()))
    assert total > 100
    gaps = ", ".join(f"{each.longest_gap:.1f} s" for each in writers.values())
    print(f"{total} acknowledged, {len(maybe)} maybe, longest gaps {gaps}: {nemesis.done}")  # noqa: T201


def await_equal_ends(cluster: Cluster) -> None:
    """Wait until all nodes have applied the same."""

    def ends() -> set[int]:
        found = set()
        for number in NUMBERS:
            with Client(cluster.url(number).split(",")[0]) as client:
                found.add(client.get_topic(TOPIC).end_offset)
        return found

    eventually(lambda: len(ends()) == 1, 120)
