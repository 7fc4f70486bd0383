"""The data pipeline in Spark against Kafka's own connector, each at its own server on this machine.

Kafka acknowledges from the page cache, as it does by default; our server syncs. Beside Spark this
needs Java and the jars of broker and connector, which ``bench/install.sh`` brings.
"""

import importlib.util
import os
import queue
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from bench.brokers.kafka_server import broker, jars, lacks_broker
from bench.harness import Rate, Scenario, rate
from bench.peers import data_directory, server_process
from bench.scenarios.latency import quantile
from bench.scenarios.spark import SCENARIOS as OURS
from bench.scenarios.spark import drain, session

_BYTES = int(os.environ.get("LANCE_BENCH_MB", "256")) * 1_000_000
_KEYED = 1_000_000
"""Records with keys of one run: those of 100 bytes cost by number, not by size."""
_SENT = 40
"""Records that one run of the latency waits for, one by one."""
_PATIENCE = 60.0
_CONNECTOR = (
    "spark-sql-kafka*.jar",
    "spark-token-provider-kafka*.jar",
    "commons-pool2*.jar",
    "kafka-clients*.jar",
)
_SUBMIT = "PYSPARK_SUBMIT_ARGS"
"""What Spark's Java side is told at its start; all sessions of this process share it."""


def _lacking() -> str | None:
    if not OURS:
        return "Spark"
    if (broker_lacks := lacks_broker()) is not None:
        return broker_lacks
    folder = jars()
    assert folder is not None, "see `lacks_broker`"
    return next(
        (f"jar {each} of Kafka's connector" for each in _CONNECTOR if not _found(each)), None
    )


def _found(pattern: str) -> list[Path]:
    folder = jars()
    return [] if folder is None else sorted(folder.glob(pattern))


class _Beds:
    """A session, and a server of each kind."""

    def __init__(self, stack: ExitStack) -> None:
        self.spark = session(stack)
        self.folder = stack.enter_context(data_directory())
        self._ours = stack.enter_context(server_process())
        more = {"auto.create.topics.enable": "true"}
        self.kafka = f"127.0.0.1:{stack.enter_context(broker(self.folder / 'kafka', more))}"

    def places(self, topic: str) -> dict[str, dict[str, str]]:
        """Return where a topic is, by the name of the format."""
        return {
            "lwp": {"servers": self._ours, "topic": topic},
            "kafka": {"kafka.bootstrap.servers": self.kafka, "topic": topic},
        }

    def read(self, kind: str, topic: str, *columns: str) -> Any:
        """Return a topic as a frame with these columns."""
        said = self.places(topic)[kind]
        if kind == "kafka":
            said = said | {"subscribe": said["topic"]}
            del said["topic"]
            return self.spark.read.format(kind).options(**said).load().select(*columns)
        schema = ", ".join(f"{name} binary" for name in columns)
        return self.spark.read.format(kind).schema(schema).options(**said).load()

    def follow(self, kind: str, topic: str) -> Any:
        """Return what arrives in a topic from now on."""
        said = self.places(topic)[kind] | {"startingOffsets": "latest"}
        if kind == "kafka":
            said["subscribe"] = said.pop("topic")
        return self.spark.readStream.format(kind).options(**said).load().select("value")

    def write(self, frame: Any, kind: str, topic: str) -> None:
        """Append a frame to a topic, which is made if it is not there."""
        more = {"createTopic": "true"} if kind == "lwp" else {}
        said = self.places(topic)[kind] | more
        frame.write.format(kind).options(**said).mode("append").save()

    def rows(self, number: int, size: int, *, keyed: bool) -> Any:
        """Return rows that Spark holds already, in two partitions."""
        text = f"substring(repeat(sha2(cast(id AS string), 256), {-(-size // 64)}), 1, {size})"
        columns = [f"cast({text} AS binary) AS value"]
        if keyed:
            columns.append("cast(concat('key-', id % 10000) AS binary) AS key")
        frame = self.spark.range(0, number, numPartitions=2).selectExpr(*columns).cache()
        frame.count()
        return frame


@contextmanager
def _reading(size: int, *, keyed: bool = False) -> Iterator[tuple[Rate, Rate]]:
    with ExitStack() as stack:
        beds = _Beds(stack)
        number = _KEYED if keyed else _BYTES // size
        frame = beds.rows(number, size, keyed=keyed)
        for kind in ("lwp", "kafka"):
            beds.write(frame, kind, "bench")
        frame.unpersist()
        columns = ("key", "value") if keyed else ("value",)
        sides = [beds.read(kind, "bench", *columns) for kind in ("lwp", "kafka")]
        for side in sides:
            if (found := side.count()) != number:
                raise RuntimeError(f"{found} of {number} records were there")
        yield rate(number, partial(drain, sides[0])), rate(number, partial(drain, sides[1]))


@contextmanager
def _writing_keyed() -> Iterator[tuple[Rate, Rate]]:
    with ExitStack() as stack:
        beds = _Beds(stack)
        frame = beds.rows(_KEYED, 100, keyed=True)
        ours, theirs = (partial(beds.write, frame, kind, "sink") for kind in ("lwp", "kafka"))
        yield rate(_KEYED, ours), rate(_KEYED, theirs)


class _Echo:
    """A streaming query that hands each record to the one who waits for it.

    Args:
        beds: where it runs.
        kind: which format it reads.
        send: sends one value and waits for its acknowledgement.
        stack: ends the query.
    """

    def __init__(
        self, beds: _Beds, kind: str, send: Callable[[bytes], object], stack: ExitStack
    ) -> None:
        self._came: queue.Queue[bytes] = queue.Queue()
        self._send = send
        self._numbers = count()
        following = beds.follow(kind, "echo").writeStream.foreachBatch(self._take)
        query = following.option("checkpointLocation", str(beds.folder / f"echo-{kind}")).start()
        stack.callback(query.stop)
        until = time.monotonic() + _PATIENCE
        while self._came.empty():  # it follows from when it has begun to
            if time.monotonic() > until:
                raise RuntimeError(f"nothing arrived through {kind}")
            self._next()

    def _take(self, frame: Any, batch_id: int) -> None:
        del batch_id
        for row in frame.collect():
            self._came.put(bytes(row["value"]))

    def _next(self) -> bytes:
        value = b"%d" % next(self._numbers)
        self._send(value)
        return value

    def p50(self) -> float:
        """Return how many times a second the median record could make its way."""
        times = []
        for _ in range(_SENT):
            begun = time.perf_counter()
            value = self._next()
            while self._came.get(timeout=_PATIENCE) != value:
                pass
            times.append(time.perf_counter() - begun)
        return 1 / quantile(times, 0.5)


@contextmanager
def _arriving() -> Iterator[tuple[Rate, Rate]]:
    from confluent_kafka import Producer as KafkaProducer  # noqa: PLC0415 - optional

    from lance_sdk import Producer  # noqa: PLC0415 - the sides that need nothing load nothing

    with ExitStack() as stack:
        beds = _Beds(stack)
        url = f"lance://{beds.places('echo')['lwp']['servers']}/echo"
        ours = stack.enter_context(Producer(url, create_topic=True))
        theirs = KafkaProducer({"bootstrap.servers": beds.kafka, "acks": "all", "linger.ms": 0})

        def publish(value: bytes) -> None:
            theirs.produce("echo", value)
            theirs.flush()

        publish(b"first")  # so that the topic is there
        echoes = (
            _Echo(beds, "lwp", lambda value: ours.send(value).result(_PATIENCE), stack),
            _Echo(beds, "kafka", publish, stack),
        )
        yield echoes[0].p50, echoes[1].p50


def _scenario(name: str, unit: str, sides: Callable[[], Any]) -> Scenario:
    other = "Kafka's connector, at a broker that acknowledges from the page cache"
    return Scenario(name=f"spark/kafka-{name}", unit=unit, other=other, sides=sides)


def _scenarios() -> tuple[Scenario, ...]:
    if (lacking := _lacking()) is not None:
        print(f"no {lacking}: Spark is not compared with Kafka's connector", file=sys.stderr)
        return ()
    paths = ",".join(str(path) for pattern in _CONNECTOR for path in _found(pattern))
    os.environ.setdefault(_SUBMIT, f"--jars {paths} pyspark-shell")
    found = [
        _scenario("read-1KiB", "records/s", partial(_reading, 1024)),
        _scenario("read-100B", "records/s", partial(_reading, 100)),
        _scenario("read-keyed-100B", "records/s", partial(_reading, 100, keyed=True)),
        _scenario("write-keyed-100B", "records/s", _writing_keyed),
    ]
    if importlib.util.find_spec("confluent_kafka") is None:
        print("no confluent_kafka: no latency of a stream beside Kafka's", file=sys.stderr)
    else:
        found.append(_scenario("arrive-p50", "1/s", _arriving))
    return tuple(found)


SCENARIOS = _scenarios()
