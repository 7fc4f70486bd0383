"""Flights through a cluster of three nodes and three brokers, of which one after the other dies.

``python -m tests.cluster.demo`` sends the rows of the demo while brokers and nodes are killed, then
reads all of them from every node, and compares record by record.
"""

import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path

from tests.cluster.cluster import NUMBERS, Cluster

from lance_sdk import Consumer, Producer
from lance_sdk.demo.flights import read_flights
from lance_server.testing.kafka_brokers import lacks_broker

_TOPIC = "flights"
_PAUSE = 1.0
"""Seconds between a start and the next kill, and between a kill and the start."""
_PORTION = 2000
"""Rows that are sent before all of them have to be acknowledged: what dies, dies in the middle."""


def main() -> int:
    """Run the demo; return 0 if every node has every row once, in order."""
    lacking = lacks_broker()
    if lacking is not None:
        _tell(f"a cluster needs {lacking}: there is no demo")
        return 0
    rows = list(read_flights())
    with tempfile.TemporaryDirectory(prefix="lance-cluster-") as folder:
        cluster = Cluster(Path(folder))
        try:
            _tell("starting three brokers and three nodes")
            cluster.begin(_TOPIC)
            _send(cluster, rows)
            return _compare(cluster, rows)
        finally:
            cluster.end()


def _send(cluster: Cluster, rows: list[bytes]) -> None:
    """Send all rows while one thing after the other is killed and started again."""
    finished = threading.Event()
    harm = threading.Thread(target=_harm, args=(cluster, finished))
    harm.start()
    began = time.monotonic()
    try:
        with Producer(cluster.url(1, _TOPIC), max_in_flight=4, delivery_timeout=120) as producer:
            for number, row in enumerate(rows):
                producer.send(row)
                if number % _PORTION == 0:
                    producer.flush()
    finally:
        finished.set()
        harm.join()
    _tell(f"{len(rows):,} rows are acknowledged after {time.monotonic() - began:.1f} s")


def _harm(cluster: Cluster, finished: threading.Event) -> None:
    for step in _steps(cluster):
        if finished.wait(_PAUSE):
            return
        step()


def _steps(cluster: Cluster) -> Iterator[Callable[[], None]]:
    for number in cycle(NUMBERS):
        yield lambda number=number: _kill_node(cluster, number)  # type: ignore[misc]
        yield lambda number=number: _kill_broker(cluster, number)  # type: ignore[misc]


def _kill_node(cluster: Cluster, number: int) -> None:
    _tell(f"node {number} is killed")
    cluster.nodes[number].end(signal.SIGKILL)
    time.sleep(_PAUSE)
    cluster.start(number)
    cluster.await_ready(number)
    _tell(f"node {number} has caught up")


def _kill_broker(cluster: Cluster, number: int) -> None:
    _tell(f"broker {number} is killed")
    cluster.brokers.kill(number)
    time.sleep(_PAUSE)
    cluster.brokers.begin(number)
    cluster.brokers.await_ready(number)
    _tell(f"broker {number} is back")


def _compare(cluster: Cluster, rows: list[bytes]) -> int:
    """Read everything from each node; return how many have something else."""
    wrong = 0
    for number in NUMBERS:
        cluster.await_ready(number)
        url = cluster.url(number, _TOPIC).partition(",")[0] + f"/{_TOPIC}"
        with Consumer(url, start="beginning", stop_at_end=True) as consumer:
            found = [bytes(record.value) for record in consumer]
        wrong += found != rows
        words = "all of them, once, in order" if found == rows else "SOMETHING ELSE"
        _tell(f"node {number} has {len(found):,} rows: {words}")
    return wrong


def _tell(words: str) -> None:
    print(words, flush=True)  # noqa: T201 - a program


if __name__ == "__main__":
    sys.exit(main())
