"""A cluster of three nodes over three Kafka brokers, against Kafka alone and against one second.

Brokers and nodes share the machine and its disk, so only ratios of one run say anything.
"""

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from bench.harness import Rate, Scenario
from bench.limit import Load, compiler, run_load, tools
from bench.peers import Server, data_directory, served
from bench.scenarios.latency import acknowledged, quantile
from lance_sdk import Client, Producer
from lance_sdk.errors import LanceError
from lance_server.cluster.applying.replica import Replica
from lance_server.cluster.applying.settings import Settings
from lance_server.cluster.records import encode
from lance_server.cluster.replicated_log import Entry
from lance_server.storage.pwritev import PwritevStorage
from lance_server.testing.kafka_brokers import KafkaCluster, brokers, lacks_broker
from lance_spec.checksum import CRC32C
from lance_spec.messages.replication import Append
from lance_spec.records import encode_records

_COUNT: Final = 200
_SMALL: Final = bytes(1024)
_LOAD: Final = Load(frames=512, records=624, size=100, window=128)
_FRAME: Final = _LOAD.total // _LOAD.frames
_CATCH_UP: Final = 32
"""Loads that a new node has to catch up with: a gigabyte."""
_STEP: Final = 4 << 20
_CALM: Final = 1.0
"""Seconds of writing before something is killed."""
_AFTER: Final = 3.0
_PATIENCE: Final = 60.0
_BARE: Final = "confluent-kafka alone with the same settings, at the same three brokers"
_NUMBERS: Final = (1, 2, 3)


def lacking() -> str | None:
    """Return what these scenarios would need, or None."""
    if find_spec("confluent_kafka") is None:
        return "Python client 'confluent_kafka'"
    return lacks_broker()


class _Cluster:
    """Three brokers, and nodes over them.

    Args:
        kafka: the brokers.
        folder: where nodes have their directories.
        stack: ends the nodes.
    """

    def __init__(self, kafka: KafkaCluster, folder: Path, stack: ExitStack) -> None:
        self.kafka = kafka
        self.url = f"kafka://{kafka.bootstrap()}/lance"
        self._folder = folder
        command = [sys.executable, "-m", "lance_sdk.cli", "cluster", "init", self.url]
        subprocess.run(command, check=True, capture_output=True)
        self.nodes = {number: stack.enter_context(self.node(number)) for number in _NUMBERS}

    @contextmanager
    def node(self, number: int) -> Iterator[Server]:
        """Run a node with an empty directory, which goes with it; it serves."""
        data = self._folder / f"node{number}-{uuid4().hex}"
        command = ("--cluster", self.url, "--node-id", str(number))
        try:
            with served(*command, data=data, kill=True) as server:
                _once_it_works(lambda: self._begun(server.address))
                yield server
        finally:
            shutil.rmtree(data, ignore_errors=True)

    def _begun(self, address: str) -> None:
        with Client(f"lance://{address}") as client:
            client.get_topic(0)

    def bare_topic(self) -> str:
        """Create a topic as that of the cluster, and return its name."""
        from lance_server.cluster.kafka_log.log import create_topic  # noqa: PLC0415 - optional
        from lance_server.cluster.kafka_log.settings import KafkaAddress  # noqa: PLC0415 - optional

        name = f"bare-{uuid4().hex}"
        create_topic(KafkaAddress(self.kafka.bootstrap(), name), 1)
        return name

    def client(self, kind: Any, settings: Any) -> Any:
        """Return a client of Kafka's with the settings that nodes use."""
        from lance_server.cluster.kafka_log.client import CLIENT  # noqa: PLC0415 - optional

        return kind({**CLIENT, **settings, "bootstrap.servers": self.kafka.bootstrap()})


def _once_it_works(step: Callable[[], object]) -> None:
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            step()
        except LanceError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
        else:
            return


@contextmanager
def _running() -> Iterator[_Cluster]:
    with data_directory() as folder, brokers(folder / "kafka", 3) as kafka, ExitStack() as stack:
        yield _Cluster(kafka, folder, stack)


# -- against Kafka alone ---------------------------------------------------------------------------


def _bare(cluster: _Cluster) -> Any:
    from confluent_kafka import Producer as KafkaProducer  # noqa: PLC0415 - optional

    from lance_server.cluster.kafka_log.producer import PRODUCER  # noqa: PLC0415 - optional

    return cluster.client(KafkaProducer, PRODUCER)


@contextmanager
def _single(share: float) -> Iterator[tuple[Rate, Rate]]:
    with _running() as cluster:
        topic, producer = cluster.bare_topic(), _bare(cluster)

        def bare() -> list[float]:
            times = []
            for _ in range(_COUNT):
                begun = time.perf_counter()
                producer.produce(topic, _SMALL, partition=0)
                producer.flush()
                times.append(time.perf_counter() - begun)
            return times

        address = cluster.nodes[1].address
        bare()  # connects
        yield (
            lambda: 1 / quantile([ended - begun for begun, ended in acknowledged(address)], share),
            lambda: 1 / quantile(bare(), share),
        )


def _publish_bare(producer: Any, topic: str, count: int) -> float:
    value, began = os.urandom(_FRAME), time.perf_counter()
    for _ in range(count):
        producer.produce(topic, value, partition=0)
        producer.poll(0)
    producer.flush()
    return count * _FRAME / (time.perf_counter() - began)


@contextmanager
def _publishing() -> Iterator[tuple[Rate, Rate]]:
    with _running() as cluster, tools() as folder:
        topic, producer = cluster.bare_topic(), _bare(cluster)
        _publish_bare(producer, topic, 1)  # connects
        yield (
            lambda: run_load(folder, cluster.nodes[1].address, _LOAD),
            lambda: _publish_bare(producer, topic, _LOAD.frames),
        )


@contextmanager
def _catching_up() -> Iterator[tuple[Rate, Rate]]:
    with _running() as cluster, tools() as folder:
        for _ in range(_CATCH_UP):
            run_load(folder, cluster.nodes[1].address, _LOAD)
        total = _CATCH_UP * _LOAD.total
        yield partial(_catch_up, cluster, total), partial(_consume_bare, cluster, total)


def _catch_up(cluster: _Cluster, total: int) -> float:
    with Client(f"lance://{cluster.nodes[1].address}") as client:
        end = client.get_topic(0).end_offset
    began = time.perf_counter()
    with cluster.node(4) as node:

        def arrive() -> None:
            with Client(f"lance://{node.address}") as client:
                if client.get_topic(0).end_offset != end:
                    raise LanceError("not there yet")

        _once_it_works(arrive)
        return total / (time.perf_counter() - began)


def _consume_bare(cluster: _Cluster, total: int) -> float:
    from confluent_kafka import Consumer as KafkaConsumer  # noqa: PLC0415 - optional
    from confluent_kafka import TopicPartition  # noqa: PLC0415 - optional

    from lance_server.cluster.kafka_log.reader import CONSUMER  # noqa: PLC0415 - optional

    consumer = cluster.client(KafkaConsumer, CONSUMER)
    try:
        began, size = time.perf_counter(), 0
        consumer.assign([TopicPartition("lance", 0, 0)])
        while size < total:
            for message in consumer.consume(256, timeout=_PATIENCE):
                size += len(message.value())
        return total / (time.perf_counter() - began)
    finally:
        consumer.close()


# -- applying alone --------------------------------------------------------------------------------


def _entries() -> list[Entry]:
    """Return a log in memory: a beginning, and batches of the size of the load's."""
    now = time.time_ns()
    settings = Settings(cluster_id="bench", created_ns=now)
    data = encode_records([bytes(_LOAD.size)] * _LOAD.records)
    records = [encode(settings.to_genesis(), 1, 0)]
    for number in range(1, _LOAD.frames + 1):
        body = Append(
            topic_id=0,
            batch_id=7 << 40 | number,
            client_timestamp_ns=now,
            accepted_ns=now,
            record_count=_LOAD.records,
            flags=0,
            stored_crc=CRC32C(data),
            data=data,
        )
        records.append(encode(body, 1, number))
    return [Entry(position, 0, now, each) for position, each in enumerate(records)]


def _apply(entries: list[Entry]) -> float:
    with data_directory() as folder:
        replica = Replica.open(PwritevStorage(), folder / "node", "bench", 1, lambda _shard: 0)
        try:
            at_once = _STEP // _FRAME
            replica.apply(0, entries[:1])
            began = time.perf_counter()
            for place in range(1, len(entries), at_once):
                replica.apply(0, entries[place : place + at_once])
                replica.shards[0].take_changes()
            return _LOAD.total / (time.perf_counter() - began)
        finally:
            replica.release()


@contextmanager
def _applying() -> Iterator[tuple[Rate, Rate]]:
    entries = _entries()
    with tools() as folder, served("--durability", "os") as server:
        yield partial(_apply, entries), lambda: run_load(folder, server.address, _LOAD)


# -- after a kill ----------------------------------------------------------------------------------


def _longest_gap(url: str, harm: Callable[[], object]) -> float:
    """Return the longest time between two acknowledgements around some harm, in seconds."""
    threading.Timer(_CALM, harm).start()
    longest, ends = 0.0, time.monotonic() + _CALM + _AFTER
    with Producer(url, create_topic=True, max_in_flight=1) as producer:
        producer.send(b"first").result(_PATIENCE)
        last = time.monotonic()
        while last < ends:
            producer.send(b"one").result(_PATIENCE)
            longest, last = max(longest, time.monotonic() - last), time.monotonic()
    return longest


def _gap_after_node(cluster: _Cluster) -> float:
    others = [cluster.nodes[number].address for number in _NUMBERS]
    with cluster.node(4) as victim:
        hosts = ",".join([victim.address, *others])
        kill = partial(os.kill, victim.pid, signal.SIGKILL)
        return 1 / _longest_gap(f"lance://{hosts}/gap", kill)


def _gap_after_broker(cluster: _Cluster) -> float:
    number = _leader(cluster)
    hosts = ",".join(each.address for each in cluster.nodes.values())
    try:
        return 1 / _longest_gap(f"lance://{hosts}/gap", partial(cluster.kafka.kill, number))
    finally:
        cluster.kafka.begin(number)
        cluster.kafka.await_ready(number)


def _leader(cluster: _Cluster) -> int:
    """Return the broker that takes what is written to the cluster's topic."""
    from confluent_kafka.admin import AdminClient  # noqa: PLC0415 - optional

    admin = AdminClient({"bootstrap.servers": cluster.kafka.bootstrap()})
    leader: int = admin.list_topics("lance", timeout=_PATIENCE).topics["lance"].partitions[0].leader
    return leader


@contextmanager
def _gap(measured: Callable[[_Cluster], float]) -> Iterator[tuple[Rate, Rate]]:
    with _running() as cluster:
        yield partial(measured, cluster), lambda: 1.0


def _scenarios() -> Iterator[Scenario]:
    if lacks := lacking():
        print(f"no {lacks}: the cluster scenarios are left out", file=sys.stderr)
        return
    for name, share in (("p50", 0.5), ("p99", 0.99)):
        yield Scenario(
            name=f"cluster/ack-{name}",
            unit=f"1/s, of the {name} of one batch of 1 KiB at a time",
            other=_BARE,
            sides=partial(_single, share),
            budget=60,
        )
    if compiler() is not None:
        yield Scenario(
            name="cluster/publish-64KiB", unit="B/s", other=_BARE, sides=_publishing, budget=60
        )
        yield Scenario(
            name="cluster/apply-64KiB",
            unit="B/s, of records that are in the log already, in memory",
            other="a single server that does not sync (`--durability os`), from its clients",
            sides=_applying,
        )
        yield Scenario(
            name="cluster/catch-up",
            unit="B/s, of a new node, from its start to the end of a gigabyte",
            other="confluent-kafka alone, which reads the same and keeps nothing",
            sides=_catching_up,
            budget=90,
        )
    for name, measured in (("node", _gap_after_node), ("broker", _gap_after_broker)):
        yield Scenario(
            name=f"cluster/gap-{name}-killed",
            unit=f"1/s, of the longest time without an acknowledgement when a {name} is killed",
            other="one second",
            sides=partial(_gap, measured),
            budget=60,
        )


SCENARIOS = tuple(_scenarios())
