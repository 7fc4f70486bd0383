"""The data pipeline in Spark, against what its parts could do at best (``bench`` needs the extra).

``LANCE_BENCH_MB`` says how large the log is; 256 MB by default.
"""

import importlib.util
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from bench.harness import Rate, Scenario, rate
from bench.peers import data_directory, server_process

_MEGABYTES = int(os.environ.get("LANCE_BENCH_MB", "256"))
_VALUE = 550
TOPIC = "bench"
_CHUNK = 1 << 20
_PARTS = 8
"""Tasks that the source in memory has."""


def _missing() -> str | None:
    needed = ("pyspark", "pyarrow", "numpy")
    return next((name for name in needed if importlib.util.find_spec(name) is None), None)


def _values(megabytes: int, size: int = _VALUE) -> list[bytes]:
    noise = os.urandom(_CHUNK + size)
    count = megabytes * 1_000_000 // (size + 5)
    return [noise[start % _CHUNK : start % _CHUNK + size] for start in range(0, count * 7, 7)]


@contextmanager
def filled(megabytes: int = _MEGABYTES) -> Iterator[tuple[str, Path, int]]:
    """Yield a server's address, its data directory, and how many bytes are in the topic."""
    from lance_sdk import Producer  # noqa: PLC0415 - the sides that need nothing load nothing
    from lance_server import running  # noqa: PLC0415 - likewise

    with data_directory() as folder, running(folder / "data", segment_size=32 << 20) as server:
        url = f"{server.url}/{TOPIC}"
        with Producer(url, create_topic=True, batch_bytes=256 << 10) as producer:
            values = _values(megabytes)
            producer.send_many(values)
        size = sum(map(len, values)) + 5 * len(values)
        yield "{}:{}".format(*server.address), folder / "data", size


def session(stack: ExitStack) -> Any:
    """Return a session that ends with the stack."""
    from lance_sdk.spark import register  # noqa: PLC0415 - heavy
    from lance_sdk.spark.pipelines import local_session  # noqa: PLC0415 - likewise

    spark = stack.enter_context(local_session(memory="2g"))
    register(spark)
    return spark


def _raw_pass(path: str) -> int:
    from crc32c import crc32c  # noqa: PLC0415 - in a task

    crc = 0
    with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - the least there is
        while chunk := file.read(_CHUNK):
            crc = crc32c(chunk, crc)
    return crc


@contextmanager
def _auditing() -> Iterator[tuple[Rate, Rate]]:
    from lance_sdk.spark.pipelines.audit import audit_one, targets  # noqa: PLC0415 - heavy
    from lance_sdk.spark.pipelines.session import spread  # noqa: PLC0415 - likewise

    with ExitStack() as stack:
        _, data, size = stack.enter_context(filled(4 * _MEGABYTES))
        spark = session(stack)
        found = targets(str(data))
        paths = [path for path, _, _ in found]
        yield (
            rate(size, lambda: spread(spark, found, audit_one)),
            rate(size, lambda: spread(spark, paths, _raw_pass)),
        )


def _memory_source(count: int) -> Any:
    """Return a format that emits as many rows of the same size from memory."""
    import pyarrow as pa  # noqa: PLC0415 - an extra
    from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition  # noqa: PLC0415

    class Reader(DataSourceReader):
        def partitions(self) -> list[InputPartition]:
            return [InputPartition(count // _PARTS)] * _PARTS

        def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
            rows = _CHUNK // (_VALUE + 5)
            column = pa.array([bytes(_VALUE)] * rows, pa.binary())
            batch = pa.RecordBatch.from_arrays([column], names=["value"])
            left = partition.value
            while left > 0:
                yield batch.slice(0, min(left, rows))
                left -= rows

    class Memory(DataSource):
        @classmethod
        def name(cls) -> str:
            return "bench_memory"

        def schema(self) -> str:
            return "value binary"

        def reader(self, schema: Any) -> DataSourceReader:
            del schema
            return Reader()

    return Memory


def drain(frame: Any) -> None:
    """Read all of a frame, and keep nothing."""
    frame.write.format("noop").mode("overwrite").save()


@contextmanager
def _reading_files() -> Iterator[tuple[Rate, Rate]]:
    with ExitStack() as stack:
        _, data, size = stack.enter_context(filled())
        spark = session(stack)
        spark.dataSource.register(_memory_source(size // (_VALUE + 5)))
        files = spark.read.format("lwp").schema("value binary").load(str(data))
        memory = spark.read.format("bench_memory").load()
        yield rate(size, partial(drain, files)), rate(size, partial(drain, memory))


@contextmanager
def _reading_server() -> Iterator[tuple[Rate, Rate]]:
    with ExitStack() as stack:
        address, data, size = stack.enter_context(filled())
        spark = session(stack)
        reader = spark.read.format("lwp").schema("value binary")
        files = reader.load(str(data))
        options = {"servers": address, "topic": TOPIC}
        server = spark.read.format("lwp").schema("value binary").options(**options).load()
        yield rate(size, partial(drain, server)), rate(size, partial(drain, files))


@contextmanager
def _writing() -> Iterator[tuple[Rate, Rate]]:
    from lance_sdk import Producer  # noqa: PLC0415 - heavy

    with ExitStack() as stack:
        address = stack.enter_context(server_process())
        spark = session(stack)
        values = _values(_MEGABYTES)
        del values[len(values) // _PARTS * _PARTS :]
        size = (_VALUE + 5) * len(values)
        rows = _in_memory(spark, len(values))

        def ours() -> None:
            options = {"servers": address, "topic": "sink", "createTopic": "true"}
            rows.write.format("lwp").options(**options).mode("append").save()

        def theirs() -> None:
            with Producer(f"lance://{address}/plain", create_topic=True) as producer:
                producer.send_many(values)

        yield rate(size, ours), rate(size, theirs)


def _in_memory(spark: Any, count: int) -> Any:
    """Return rows that Spark holds already, as the producer holds its values.

    Making rows costs Spark more than writing them: ``rpad`` of 550 bytes three times as much.
    """
    spark.dataSource.register(_memory_source(count))
    rows = spark.read.format("bench_memory").load().coalesce(2).cache()
    rows.count()
    return rows


def _scenario(name: str, other: str, sides: Callable[[], Any]) -> Scenario:
    return Scenario(name=f"spark/{name}", unit="B/s", other=other, sides=sides)


def _scenarios() -> tuple[Scenario, ...]:
    if (name := _missing()) is not None:
        print(f"{name} is not installed: the Spark scenarios are left out", file=sys.stderr)
        return ()
    return (
        _scenario("audit", "read + CRC32C of the same files, in as many tasks", _auditing),
        _scenario("read-files", "an Arrow source that emits from memory", _reading_files),
        _scenario("read-server", "reading the files", _reading_server),
        _scenario("sink", "our Producer.send_many, in one process", _writing),
    )


SCENARIOS = _scenarios()
