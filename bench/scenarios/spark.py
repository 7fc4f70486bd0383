"""The data pipeline in Spark, against what its parts could do at best (``bench`` needs the extra).

``LANCE_BENCH_MB`` says how large the log is; 256 MB by default.
"""

import importlib.util
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache, partial
from itertools import count
from pathlib import Path
from typing import Any

from bench import machine
from bench.harness import Rate, Scenario, rate
from bench.peers import data_directory, served, server_process

_MEGABYTES = int(os.environ.get("LANCE_BENCH_MB", "256"))
_VALUE = 550
_LARGE_VALUE = 1024
_VALUES_BESIDE_PARQUET = {"1KiB": 1024, "100B": 100}
TOPIC = "bench"
_CHUNK = 1 << 20
_SEGMENT = 32 << 20
_PARTS = machine.cores()
"""Tasks that the source in memory has: as many as the reader of files makes."""


def _missing() -> str | None:
    needed = ("pyspark", "pyarrow", "numpy")
    return next((name for name in needed if importlib.util.find_spec(name) is None), None)


def _values(megabytes: int, size: int = _VALUE) -> list[bytes]:
    noise = os.urandom(_CHUNK + size)
    places = range(0, megabytes * 1_000_000 // (size + 5) * 7, 7)
    return [noise[start % _CHUNK : start % _CHUNK + size] for start in places]


@contextmanager
def filled(megabytes: int = _MEGABYTES, value: int = _VALUE) -> Iterator[tuple[str, Path, int]]:
    """Yield a server's address, its data directory, and how many bytes are in the topic.

    The server is a process of its own, as users have it.
    """
    from lance_sdk import Producer  # noqa: PLC0415 - the sides that need nothing load nothing

    with data_directory() as folder:
        data = folder / "data"
        with served("--segment-size", str(_SEGMENT), data=data) as server:
            url = f"lance://{server.address}/{TOPIC}"
            with Producer(url, create_topic=True, batch_bytes=256 << 10) as producer:
                values = _values(megabytes, value)
                producer.send_many(values)
            yield server.address, data, sum(map(len, values)) + 5 * len(values)


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


def _fill_memory(path: Path, values: list[bytes]) -> None:
    """Write values as Arrow batches; a file that was just written is memory to who maps it."""
    import pyarrow as pa  # noqa: PLC0415 - an extra

    rows = _CHUNK // (_VALUE + 5)
    schema = pa.schema([("value", pa.binary())])
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, schema) as writer:
        for first in range(0, len(values), rows):
            column = pa.array(values[first : first + rows], pa.binary())
            writer.write_batch(pa.record_batch([column], schema=schema))


@cache
def _memory(path: str) -> Any:
    """Map the values, once in each of Spark's workers: its pages stay where they are."""
    import pyarrow as pa  # noqa: PLC0415 - in a task

    return pa.ipc.open_file(pa.memory_map(path))


def _memory_source(path: Path) -> Any:
    """Return a format that emits what `_fill_memory` has written, every byte of it once.

    A source that repeats one batch would send it out of the processor's cache, which no source of
    data can do.
    """
    import pyarrow as pa  # noqa: PLC0415 - an extra
    from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition  # noqa: PLC0415

    place = str(path)

    class Reader(DataSourceReader):
        def partitions(self) -> list[InputPartition]:
            return [InputPartition(part) for part in range(_PARTS)]

        def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
            batches = _memory(place)
            count = batches.num_record_batches
            part = partition.value
            for number in range(count * part // _PARTS, count * (part + 1) // _PARTS):
                yield batches.get_batch(number)

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
        _fill_memory(data.parent / "memory.arrow", _values(_MEGABYTES))
        spark.dataSource.register(_memory_source(data.parent / "memory.arrow"))
        files = spark.read.format("lwp").schema("value binary").load(str(data))
        memory = spark.read.format("bench_memory").load()
        yield rate(size, partial(drain, files)), rate(size, partial(drain, memory))


@contextmanager
def _reading_beside_parquet(value: int) -> Iterator[tuple[Rate, Rate]]:
    with ExitStack() as stack:
        _, data, size = stack.enter_context(filled(value=value))
        spark = session(stack)
        files = spark.read.format("lwp").schema("value binary").load(str(data))
        place = str(data.parent / "values.parquet")
        files.write.option("compression", "uncompressed").parquet(place)
        yield (
            rate(size, partial(drain, files)),
            rate(size, partial(drain, spark.read.parquet(place))),
        )


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
def _reading_partitions() -> Iterator[tuple[Rate, Rate]]:
    with ExitStack() as stack:
        address, _, size = stack.enter_context(filled())
        spark = session(stack)
        reader = spark.read.format("lwp").schema("value binary")

        def frame(partitions: int) -> Any:
            said = {"servers": address, "topic": TOPIC, "minPartitions": str(partitions)}
            return reader.options(**said).load()

        yield rate(size, partial(drain, frame(2))), rate(size, partial(drain, frame(1)))


@contextmanager
def _writing_once() -> Iterator[tuple[Rate, Rate]]:
    with ExitStack() as stack:
        address = stack.enter_context(server_process())
        spark = session(stack)
        values = _values(_MEGABYTES, _LARGE_VALUE)
        size = (_LARGE_VALUE + 5) * len(values)
        folder = stack.enter_context(data_directory())
        rows = _in_memory(spark, values, folder)
        names = (f"write-{number}" for number in count())

        def write(topic: str, **more: str) -> None:
            options = {"servers": address, "topic": topic, "createTopic": "true", **more}
            rows.write.format("lwp").options(**options).mode("append").save()

        def once() -> None:
            ledger = {"txnId": next(names), "ledgerPath": str(folder / "ledger")}
            write("once", semantics="exactly-once", **ledger)

        yield rate(size, once), rate(size, partial(write, "sink"))


@contextmanager
def _writing() -> Iterator[tuple[Rate, Rate]]:
    from lance_sdk import Producer  # noqa: PLC0415 - heavy

    with ExitStack() as stack:
        address = stack.enter_context(server_process())
        spark = session(stack)
        values = _values(_MEGABYTES)
        size = (_VALUE + 5) * len(values)
        rows = _in_memory(spark, values, stack.enter_context(data_directory()))

        def ours() -> None:
            options = {"servers": address, "topic": "sink", "createTopic": "true"}
            rows.write.format("lwp").options(**options).mode("append").save()

        def theirs() -> None:
            with Producer(f"lance://{address}/plain", create_topic=True) as producer:
                producer.send_many(values)

        yield rate(size, ours), rate(size, theirs)


def _in_memory(spark: Any, values: list[bytes], folder: Path) -> Any:
    """Return rows that Spark holds already, as the producer holds its values.

    Making rows costs Spark more than writing them: ``rpad`` of 550 bytes three times as much.
    """
    _fill_memory(folder / "memory.arrow", values)
    spark.dataSource.register(_memory_source(folder / "memory.arrow"))
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
        _scenario(
            "read-files", "an Arrow source that emits the same bytes from memory", _reading_files
        ),
        *(
            _scenario(
                f"read-parquet-{name}",
                "Spark's own reader of the same values in Parquet, uncompressed",
                partial(_reading_beside_parquet, size),
            )
            for name, size in _VALUES_BESIDE_PARQUET.items()
        ),
        _scenario("read-server", "reading the files", _reading_server),
        _scenario("read-partitions", "the same with minPartitions=1", _reading_partitions),
        _scenario("sink-once", "the at-least-once sink, 1 KiB", _writing_once),
        _scenario("sink", "our Producer.send_many, in one process", _writing),
    )


SCENARIOS = _scenarios()
