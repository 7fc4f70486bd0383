"""Kafka: one node in KRaft mode, with confluent-kafka and aiokafka.

Kafka acknowledges from the page cache unless a topic has ``flush.messages=1``. Both are measured,
and the scenario's words say which.
"""

import asyncio
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib import metadata
from importlib.util import find_spec
from threading import Barrier, Thread
from time import perf_counter
from typing import Any
from uuid import uuid4

from bench.brokers.kafka_server import broker, lacks_broker
from bench.harness import Rate, Scenario
from bench.peers import data_directory, server_process
from bench.scenarios.latency import quantile
from bench.usage import cpu_of_all
from lance_sdk import Client, Consumer, Producer

_SIZES = {"100B": 100, "1KiB": 1024}
_PUBLISHED = {100: 100_000, 1024: 40_000}
"""Records of one run in which Kafka syncs each batch, by their size."""
_COMPILED = 15
"""Runs after which the broker's virtual machine has compiled what it does."""
_CONSUMED = {100: 300_000, 1024: 100_000}
_SINGLE = 300
"""Records of one run in which each waits for its acknowledgement."""
_PRODUCERS = 16
_QUEUED = {"queue.buffering.max.messages": 1_000_000, "queue.buffering.max.kbytes": 1_048_576}
_WORDS = {
    True: "synced before every acknowledgement (flush.messages=1)",
    False: "acknowledged from the page cache, not yet synced (its default)",
}


def lacking() -> str | None:
    """Return what these scenarios would need, or None."""
    if (broker_lacks := lacks_broker()) is not None:
        return broker_lacks
    for client in ("confluent_kafka", "aiokafka"):
        if find_spec(client) is None:
            return f"Python client {client!r}"
    return None


class _Kafka:
    """A broker that runs.

    Args:
        port: of 127.0.0.1, where it listens.
        synced: whether topics are synced before every acknowledgement.
    """

    def __init__(self, port: int, *, synced: bool) -> None:
        self.address = f"127.0.0.1:{port}"
        self._synced = synced

    def create_topic(self) -> str:
        """Create a topic with one partition and return its name."""
        from confluent_kafka.admin import AdminClient, NewTopic  # noqa: PLC0415 - optional

        name = f"bench-{uuid4().hex}"
        config = {"flush.messages": "1"} if self._synced else {}
        topic = NewTopic(name, num_partitions=1, replication_factor=1, config=config)
        admin = AdminClient({"bootstrap.servers": self.address})
        admin.create_topics([topic])[name].result(30)
        return name

    def producer(self, **settings: object) -> Any:
        """Return a confluent-kafka producer."""
        from confluent_kafka import Producer as KafkaProducer  # noqa: PLC0415 - optional

        asked = {"bootstrap.servers": self.address, "acks": "all", **_QUEUED}
        return KafkaProducer(asked | {name.replace("_", "."): settings[name] for name in settings})


@contextmanager
def _served(*, synced: bool) -> Iterator[_Kafka]:
    with data_directory() as folder, broker(folder) as port:
        yield _Kafka(port, synced=synced)


# -- publishing ------------------------------------------------------------------------------------


def _publish(kafka: _Kafka, topic: str, value: bytes, count: int) -> float:
    """Publish with confluent-kafka; return how many a second were acknowledged."""
    producer = kafka.producer(linger_ms=5)
    failures: list[object] = []

    def delivered(error: object, _message: object) -> None:
        if error is not None:
            failures.append(error)

    began = perf_counter()
    for number in range(count):
        producer.produce(topic, value, on_delivery=delivered)
        if number % 1000 == 0:
            producer.poll(0)
    producer.flush()
    seconds = perf_counter() - began
    if failures:
        raise RuntimeError(f"Kafka refused {len(failures)} records: {failures[0]}")
    return count / seconds


def _publish_async(kafka: _Kafka, topic: str, value: bytes, count: int) -> float:
    """Publish with aiokafka; return how many a second were acknowledged."""

    async def run() -> float:
        from aiokafka import AIOKafkaProducer  # noqa: PLC0415 - optional

        producer = AIOKafkaProducer(bootstrap_servers=kafka.address, acks="all", linger_ms=5)
        await producer.start()
        try:
            began = perf_counter()
            sent = [await producer.send(topic, value) for _ in range(count)]
            await asyncio.gather(*sent)
            return count / (perf_counter() - began)
        finally:
            await producer.stop()

    return asyncio.run(run())


def _send(address: str, value: bytes, count: int) -> float:
    """Publish with our producer; return how many a second were acknowledged."""
    with _topic(address) as url, Producer(url) as producer:
        began = perf_counter()
        for _ in range(count):
            producer.send(value)
        producer.flush()
        return count / (perf_counter() - began)


@contextmanager
def _topic(address: str) -> Iterator[str]:
    """Yield the URL of a topic of its own at our server, deleted afterwards."""
    name = f"bench-{uuid4().hex}"
    with Client(f"lance://{address}") as client:
        client.create_topic(name)
        yield f"lance://{address}/{name}"
        client.delete_topic(name)


@contextmanager
def _publishing(
    theirs: Callable[[_Kafka, str, bytes, int], float], size: int, *, synced: bool
) -> Iterator[tuple[Rate, Rate]]:
    with server_process() as ours, _served(synced=synced) as kafka:
        value, topic = b"x" * size, kafka.create_topic()
        yield (
            partial(_send, ours, value, 4 * _PUBLISHED[size]),
            partial(theirs, kafka, topic, value, _PUBLISHED[size]),
        )


def _by_processor(publish: Callable[[], float], count: int) -> Rate:
    """Return what tells how many records a second of processor time publishes."""

    def run() -> float:
        before = cpu_of_all()
        publish()
        return count / (cpu_of_all() - before)

    return run


@contextmanager
def _costing(size: int) -> Iterator[tuple[Rate, Rate]]:
    """Compare what records cost, which does not depend on the disk, nor on who else is busy."""
    with server_process() as ours, _served(synced=True) as kafka:
        value, topic, count = b"x" * size, kafka.create_topic(), _PUBLISHED[size]
        for _ in range(_COMPILED):
            _publish(kafka, topic, value, count)
        yield (
            _by_processor(partial(_send, ours, value, 4 * count), 4 * count),
            _by_processor(partial(_publish, kafka, topic, value, count), count),
        )


# -- one record at a time --------------------------------------------------------------------------


def _send_singly(address: str) -> list[float]:
    with _topic(address) as url, Producer(url) as producer:
        return _timed(lambda: producer.send(b"x" * 100).result(30))


def _publish_singly(kafka: _Kafka, topic: str) -> list[float]:
    producer = kafka.producer(linger_ms=0)

    def step() -> None:
        producer.produce(topic, b"x" * 100)
        producer.flush()

    return _timed(step)


def _timed(step: Callable[[], object], count: int = _SINGLE) -> list[float]:
    step()  # connects
    times = []
    for _ in range(count):
        begun = perf_counter()
        step()
        times.append(perf_counter() - begun)
    return times


@contextmanager
def _singly(share: float, *, synced: bool) -> Iterator[tuple[Rate, Rate]]:
    with server_process() as ours, _served(synced=synced) as kafka:
        topic = kafka.create_topic()
        yield (
            lambda: 1 / quantile(_send_singly(ours), share),
            lambda: 1 / quantile(_publish_singly(kafka, topic), share),
        )


def _together(work: Callable[[], object]) -> float:
    """Run work in as many threads as there are producers; return acknowledgements a second."""
    ready, problems = Barrier(_PRODUCERS + 1), list[BaseException]()

    def run() -> None:
        ready.wait()
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - raised below, by the thread that waits
            problems.append(error)

    threads = [Thread(target=run) for _ in range(_PRODUCERS)]
    for thread in threads:
        thread.start()
    ready.wait()
    began = time.perf_counter()
    for thread in threads:
        thread.join()
    if problems:
        raise problems[0]
    return _PRODUCERS * _SINGLE / (time.perf_counter() - began)


@contextmanager
def _many_producers() -> Iterator[tuple[Rate, Rate]]:
    with server_process() as ours, _served(synced=True) as kafka:
        topic = kafka.create_topic()
        yield (
            lambda: _together(lambda: _send_singly(ours)),
            lambda: _together(lambda: _publish_singly(kafka, topic)),
        )


# -- consuming -------------------------------------------------------------------------------------


def _consume(url: str, count: int) -> float:
    """Read records of our server into objects; return how many a second."""
    with Consumer(url, stop_at_end=True) as consumer:
        began, size = perf_counter(), 0
        for record in consumer:
            size += len(record.value)
        seconds = perf_counter() - began
    if not size:
        raise RuntimeError(f"{url} has no records")
    return count / seconds


def _consume_kafka(kafka: _Kafka, topic: str, count: int) -> float:
    """Read messages with confluent-kafka; return how many a second."""
    from confluent_kafka import Consumer as KafkaConsumer  # noqa: PLC0415 - optional
    from confluent_kafka import TopicPartition  # noqa: PLC0415 - optional

    consumer = KafkaConsumer(
        {"bootstrap.servers": kafka.address, "group.id": "bench", "enable.auto.commit": False}
    )
    try:
        began, read = perf_counter(), 0
        consumer.assign([TopicPartition(topic, 0, 0)])
        while read < count:
            for message in consumer.consume(10_000, timeout=30):
                if message.error():
                    raise RuntimeError(f"Kafka: {message.error()}")
                message.value()
                read += 1
        return count / (perf_counter() - began)
    finally:
        consumer.close()


@contextmanager
def _consuming(size: int) -> Iterator[tuple[Rate, Rate]]:
    count, value = _CONSUMED[size], os.urandom(size)
    with server_process() as ours, _served(synced=False) as kafka, _topic(ours) as url:
        with Producer(url) as producer:
            for _ in range(count):
                producer.send(value)
        topic = kafka.create_topic()
        _publish(kafka, topic, value, count)
        yield partial(_consume, url, count), partial(_consume_kafka, kafka, topic, count)


# -- the scenarios ---------------------------------------------------------------------------------


def _client(name: str) -> str:
    return f"Kafka 4.1.0, {name} {metadata.version(name)}"


def scenarios() -> Iterator[Scenario]:
    """Yield what is compared with Kafka; every need was found (`lacking`)."""
    confluent = _client("confluent-kafka")
    for label, size in _SIZES.items():
        for kind, synced in (("synced", True), ("cached", False)):
            yield Scenario(
                name=f"brokers/kafka-{kind}-publish-{label}",
                unit="records/s",
                other=f"{confluent}, acks=all, linger 5 ms; {_WORDS[synced]}",
                sides=partial(_publishing, _publish, size, synced=synced),
            )
        yield Scenario(
            name=f"brokers/kafka-synced-cost-{label}",
            unit="records, published in a second of processor time of client and server",
            other=f"{confluent}, acks=all, linger 5 ms; {_WORDS[True]}",
            sides=partial(_costing, size),
        )
        yield Scenario(
            name=f"brokers/aiokafka-synced-publish-{label}",
            unit="records/s",
            other=f"{_client('aiokafka')}, acks=all, linger 5 ms; {_WORDS[True]}",
            sides=partial(_publishing, _publish_async, size, synced=True),
        )
        yield Scenario(
            name=f"brokers/kafka-consume-{label}",
            unit="records/s",
            other=f"{confluent}, consume(10,000), one partition",
            sides=partial(_consuming, size),
        )
    for kind, synced in (("synced", True), ("cached", False)):
        for name, share in (("p50", 0.5), ("p99", 0.99)):
            yield Scenario(
                name=f"brokers/kafka-{kind}-single-{name}",
                unit=f"1/s, of the {name} of send().result(), everything by default",
                other=f"{confluent}, produce and flush, linger 0; {_WORDS[synced]}",
                sides=partial(_singly, share, synced=synced),
            )
    yield Scenario(
        name="brokers/kafka-synced-16-producers",
        unit="acknowledgements/s, one in flight for each of 16 producers",
        other=f"{confluent}, the same; {_WORDS[True]}",
        sides=_many_producers,
    )
