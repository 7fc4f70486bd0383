"""Writing rows straight away: at least once."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lance_sdk import Producer
from lance_sdk.errors import ConfigError, UnsafeRecordType
from lance_sdk.spark.options import Options
from lance_sdk.spark.writing import sinks
from lance_server import running
from lance_server.embedded import EmbeddedServer

At = Mapping[str, str]
VALUES = [b"%06d" % number for number in range(1000)]


def batches(values: list[bytes]) -> Iterator[pa.RecordBatch]:
    """Yield rows as Spark hands them to a task."""
    for first in range(0, len(values), 300):
        yield pa.RecordBatch.from_pydict({"value": values[first : first + 300]})


def options(at: At, **more: str) -> Options:
    """Return the options of a query that writes to the topic ``copy``."""
    return Options.parse(
        {**at, "topic": "copy", "createTopic": "true", "batchBytes": "500", **more}
    )


def test_rows_arrive_in_order(reader: Any, at: At) -> None:
    """And the task tells how many."""
    sink = sinks.batch_sink(options(at), ["value"], overwrite=False)
    written = sink.write(batches(VALUES), sinks.Task())
    assert reader.values(**at, topic="copy") == VALUES
    assert written == sinks.Written(1000, 11_000)


def test_a_repeated_task_writes_again(reader: Any, at: At) -> None:
    """At least once is what it says."""
    sink = sinks.batch_sink(options(at), ["value"], overwrite=False)
    for attempt in range(2):
        sink.write(batches(VALUES), sinks.Task(attempt=attempt))
    assert reader.values(**at, topic="copy") == VALUES * 2


def test_a_log_cannot_be_overwritten(at: At) -> None:
    """Only appended to."""
    with pytest.raises(ConfigError, match="mode\\('append'\\)"):
        sinks.batch_sink(options(at), ["value"], overwrite=True)


def test_writing_needs_one_topic(at: At) -> None:
    """Or a column that names it."""
    several = Options.parse({**at, "topics": "a,b"})
    with pytest.raises(ConfigError, match="one topic to write to"):
        sinks.batch_sink(several, ["value"], overwrite=False)


def test_a_deployed_server_is_not_sent_what_it_cannot_keep(tmp_path: Path) -> None:
    """Recovery there cuts the log at a NULL record (AMB-13)."""
    with running(tmp_path / "old", dialect="deployed") as old:
        at = {"servers": "{}:{}".format(*old.address), "dialect": "deployed"}
        sink = sinks.batch_sink(options(at), ["value"], overwrite=False)
        rows = pa.RecordBatch.from_pydict({"value": [b"x", None]})
        with pytest.raises(UnsafeRecordType, match="0xff"):
            sink.write(iter([rows]), sinks.Task())


def test_a_slow_server_is_waited_for(at: At) -> None:
    """More than the sender may hold goes through all the same."""
    said = options(at, batchBytes="1MiB")
    rows = pa.RecordBatch.from_pydict({"value": [bytes(500_000)] * 100})
    sink = sinks.batch_sink(said, ["value"], overwrite=False)
    assert sink.write(iter([rows]), sinks.Task()).records == 100


def test_producers_and_sinks_write_the_same_bytes(
    reader: Any, at: At, server: EmbeddedServer
) -> None:
    """A consumer cannot tell them apart."""
    with Producer(f"{server.url}/plain", create_topic=True) as producer:
        producer.send_many(VALUES)
    sinks.batch_sink(options(at), ["value"], overwrite=False).write(batches(VALUES), sinks.Task())
    copies = [
        reader.rows(reader.splits(**at, topic=name), "offset", "type", "value")
        for name in ("plain", "copy")
    ]
    assert copies[0] == copies[1]
