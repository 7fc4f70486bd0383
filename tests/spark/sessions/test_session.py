"""The format inside Spark: what only a session can show; everything else is tested without."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import pyspark_lwp.pipeline
from lance_sdk import Client, Producer
from lance_sdk.cli import _app
from lance_sdk.cli.console.exit_codes import ExitCode
from lance_sdk.errors import ConfigError
from lance_sdk.spark.errors import DataDamaged
from lance_sdk.spark.failures import first_line
from lance_sdk.spark.pipelines import archive, audit, migrate, reindex, replay, report
from lance_sdk.spark.pipelines.archive_files import relocate
from lance_server.embedded import EmbeddedServer

pytestmark = [
    pytest.mark.timeout(600),  # sessions start in five seconds, or in forty on a busy machine
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas"),  # it says
]

Fill = Callable[..., list[bytes]]
At = Mapping[str, str]


def values(frame: Any) -> list[bytes]:
    """Return a frame's values in the order of their offsets."""
    return [bytes(row["value"]) for row in frame.orderBy("offset").select("value").collect()]


@pytest.fixture
def load(spark: Any, at: At) -> Callable[..., Any]:
    """Read a topic at the server as a frame; nothing is registered by hand."""

    def frame(topic: str, **more: str) -> Any:
        reader = spark.read.format("lwp").options(**at, **more)
        return reader.option("topic", topic).load()

    return frame


@pytest.fixture
def stream(spark: Any, at: At, tmp_path: Path) -> Callable[..., Any]:
    """Run a streaming query from topic to topic until nothing is left."""

    def run(source: str, target: str, *, checkpoint: str = "cp", **more: str) -> list[Any]:
        reading = {key: value for key, value in more.items() if key == "maxBytesPerTrigger"}
        writing = {key: value for key, value in more.items() if key not in reading}
        reader = spark.readStream.format("lwp").options(**at, **reading)
        rows = reader.option("topic", source).option("startingOffsets", "earliest").load()
        writer = rows.writeStream.format("lwp").options(**at, **writing, createTopic="true")
        writer = writer.option("checkpointLocation", str(tmp_path / checkpoint))
        query = writer.option("topic", target).trigger(availableNow=True).start()
        query.awaitTermination()
        return list(query.recentProgress)

    return run


def test_a_topic_is_a_frame(load: Callable[..., Any], produce: Fill) -> None:
    """Found by its name alone: installing the package registers the format."""
    expected = produce("orders", 1000)
    frame = load("orders", minPartitions="2")
    assert frame.dtypes == [
        ("topic", "string"),
        ("offset", "bigint"),
        ("type", "int"),
        ("key", "binary"),
        ("value", "binary"),
        ("timestamp", "timestamp"),
    ]
    assert values(frame) == expected


def test_columns_on_request(spark: Any, produce: Fill, server: EmbeddedServer) -> None:
    """By schema, as Spark prunes nothing for a Python source."""
    produce("orders", 100)
    reader = spark.read.format("lwp").schema("offset long, segment string, crc_ok boolean")
    rows = reader.load(str(server.data_dir)).collect()
    assert len(rows) == 100
    assert all(row["crc_ok"] and row["segment"].endswith(".lnc") for row in rows)


@pytest.mark.parametrize("place", ["server", "files"])
def test_a_topic_is_copied_as_it_is_read(  # noqa: PLR0917 - fixtures
    load: Callable[..., Any], reader: Any, at: At, server: EmbeddedServer, spark: Any, place: str
) -> None:
    """With the columns that a query has by default: a server's times stay the server's."""
    with Producer(f"{server.url}/orders", create_topic=True, dialect="specified") as producer:
        producer.send(b"plain")
        producer.send(b"keyed", key=b"k")
        producer.send(b"timed", timestamp=1_767_268_800_123_456_000)
        producer.send(None, key=b"k")
    frame = (
        load("orders") if place == "server" else spark.read.format("lwp").load(str(server.data_dir))
    )
    frame.write.format("lwp").options(**at, topic="copy", createTopic="true").mode("append").save()
    columns = ("type", "key", "raw", "time_source")
    there, back = (reader.rows(reader.splits(**at, topic=t), *columns) for t in ("orders", "copy"))
    assert back == there


def test_keyed_json_is_read_as_a_user_would(
    load: Callable[..., Any], server: EmbeddedServer, at: At
) -> None:
    """The value is the payload; rows go back to a topic, and are the same records."""
    moment = 1_767_268_800_123_456_000
    with Producer(f"{server.url}/orders", create_topic=True, dialect="specified") as producer:
        for number in range(20):
            producer.send(b'{"n": %d}' % number, key=b"k%d" % number, timestamp=moment)
    frame = load("orders")
    (row,) = frame.selectExpr(
        "sum(from_json(cast(value as string), 'n int').n) as n",
        "max(cast(key as string)) as k",
        "max(unix_micros(timestamp)) as t",
    ).collect()
    assert (row["n"], row["k"], row["t"]) == (190, "k9", moment // 1000)
    columns = ["timestamp", "value", "key", "type"]
    writer = frame.select(*columns).write.format("lwp").options(**at, createTopic="true")
    writer.mode("append").option("topic", "copy").save()
    names = ("key", "value", "timestamp", "type")
    assert load("copy").select(*names).collect() == frame.select(*names).collect()


@pytest.fixture
def far_zone(spark: Any) -> Iterator[None]:
    """A session whose day is another one than in UTC, at noon."""
    spark.conf.set("spark.sql.session.timeZone", "Pacific/Kiritimati")
    yield
    spark.conf.set("spark.sql.session.timeZone", "UTC")


@pytest.mark.usefixtures("far_zone")
@pytest.mark.parametrize("where", ["server", "files"])
def test_an_archive_comes_back_field_by_field(
    spark: Any, server: EmbeddedServer, reader: Any, at: At, tmp_path: Path, *, where: str
) -> None:
    """Keys, times to the nanosecond and tombstones, of a topic whose name looks like a number."""
    url, moment = f"{server.url}/007", 1_767_268_800_123_456_789
    with Producer(url, create_topic=True, dialect="specified") as producer:
        producer.send(b"both", key=b"k", timestamp=moment)
        producer.send(b"key", key=b"k")
        producer.send(b"time", timestamp=moment)
        producer.send(b"plain")
        producer.send(None)
        producer.send(b"far", timestamp=2**63 // 1000 * 1000 + 1000)
    source = {**at, "topic": "007"} if where == "server" else {"path": str(server.data_dir)}
    target = str(tmp_path / "archive")
    archived = archive(spark, source, target, partition_by=("topic", "date", "hour"))
    assert (archived.records, archived.null_times) == (6, 1)
    assert not list(Path(target).rglob("*HIVE_DEFAULT*"))
    assert list(Path(target).glob("topic=007/date=2026-01-01/hour=2026-01-01-12"))
    assert list(Path(target).glob("topic=007/date=2262-04-11/hour=2262-04-11-23"))
    assert replay(spark, target, {**at, "topic": "copy", "createTopic": "true"}).records == 6
    names = ("offset", "type", "raw")
    expected = reader.rows(reader.splits(**at, topic="007"), *names)
    assert reader.rows(reader.splits(**at, topic="copy"), *names) == expected


def test_conditions_reach_the_source(spark: Any, load: Callable[..., Any], produce: Fill) -> None:
    """With pushdown, where Spark allows it; the answer is the same either way."""
    expected = produce("orders", 200)
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        frame = load("orders", pushdown="true")
        chosen = frame.where("offset >= 450 AND offset < 900 AND topic = 'orders'")
        assert values(chosen) == expected[10:20]
        assert values(frame.where("offset > 450 AND type = 1 AND offset <= 540")) == expected[11:13]
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")


def test_a_wrong_option_is_told_in_the_querys_error(load: Callable[..., Any]) -> None:
    """With the suggestion."""
    with pytest.raises(Exception, match="did you mean 'fetchBytes'"):
        load("orders", fetchBites="1")


def test_a_frame_is_written(load: Callable[..., Any], produce: Fill, reader: Any, at: At) -> None:
    """Append only."""
    expected = produce("orders", 500)
    rows = load("orders").select("value")
    rows.write.format("lwp").options(**at, topic="copy", createTopic="true").mode("append").save()
    assert reader.values(**at, topic="copy") == expected


@pytest.mark.parametrize("semantics", ["at-least-once", "exactly-once"])
def test_a_stream_goes_on_where_it_stopped(
    stream: Callable[..., Any], produce: Fill, reader: Any, at: At, semantics: str
) -> None:
    """From topic to topic, in several micro-batches and two runs."""
    expected = produce("orders", 400)
    first = stream("orders", "copy", semantics=semantics, maxBytesPerTrigger="9500")
    expected += produce("orders", 100, first=400)
    stream("orders", "copy", semantics=semantics)
    assert sorted(reader.values(**at, topic="copy")) == sorted(expected)
    assert len([each for each in first if each["numInputRows"]]) >= 2


def test_a_query_tells_how_far_it_is_behind(stream: Callable[..., Any], produce: Fill) -> None:
    """Its progress has the bytes left in the topic after each micro-batch, and none at its end."""
    from lance_sdk.spark.lag import lag_bytes  # noqa: PLC0415 - an extra

    produce("orders", 400)
    told = stream("orders", "copy", semantics="at-least-once", maxBytesPerTrigger="9000")
    assert [lag_bytes(each)["orders"] for each in told if each["numInputRows"]] == [9000, 0]


def test_a_task_that_fails_is_repeated_without_a_trace(
    spark: Any, produce: Fill, reader: Any, at: At, tmp_path: Path
) -> None:
    """The first attempt of a task dies after it has staged; the second one counts."""
    from pyspark.sql.functions import udf  # noqa: PLC0415 - an extra

    expected = produce("orders", 300)
    flag = str(tmp_path / "died")

    def die_once(value: bytes) -> bytes:
        if value.startswith(b"00000250") and not os.path.exists(flag):  # noqa: PTH110 - in a task
            with open(flag, "wb"):  # noqa: PTH123 - likewise
                os._exit(3)
        return value

    fragile = udf(lambda value: die_once(value), "binary")  # noqa: PLW0108 - Spark reads type hints
    rows = spark.readStream.format("lwp").options(**at, startingOffsets="earliest")
    frame = rows.option("topic", "orders").load().select(fragile("value").alias("value"))
    writer = frame.writeStream.format("lwp").options(**at, topic="copy", createTopic="true")
    writer = writer.options(semantics="exactly-once", checkpointLocation=str(tmp_path / "cp"))
    writer.trigger(availableNow=True).start().awaitTermination()
    assert Path(flag).exists()
    assert reader.values(**at, topic="copy") == expected


DRIVER = """
import glob, os, signal, sys
from lance_sdk.spark.pipelines.session import local_session
at, target = {at!r}, {target!r}
with local_session(cores=1) as spark:
    rows = spark.readStream.format("lwp").options(**at, startingOffsets="earliest")
    rows = rows.option("topic", "orders").option("maxBytesPerTrigger", "4000").load()
    writer = rows.writeStream.format("lwp").options(**at, topic="copy", createTopic="true")
    writer = writer.options(semantics="exactly-once", checkpointLocation=target)
    query = writer.trigger(availableNow=True).start()
    while not query.awaitTermination(0.05):
        if glob.glob(target + "/lwp-ledger/*/batch-1/manifest.json"):
            spark.sparkContext._gateway.proc.kill()
            os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_driver_that_is_killed_is_taken_over(
    stream: Callable[..., Any], produce: Fill, reader: Any, at: At, tmp_path: Path
) -> None:
    """SIGKILL of a driver and its Java side while a batch is committed; then another driver."""
    expected = produce("orders", 300)
    script = DRIVER.format(at=dict(at), target=str(tmp_path / "cp"))
    done = subprocess.run(
        [sys.executable, "-c", script], check=False, timeout=280, capture_output=True
    )
    assert done.returncode == -9, done.stderr
    stream("orders", "copy", semantics="exactly-once")
    assert reader.values(**at, topic="copy") == expected


def test_an_archive_goes_on_and_comes_back(
    spark: Any, produce: Fill, reader: Any, at: At, tmp_path: Path
) -> None:
    """Topic to Parquet in two runs, then to another topic, once, in order."""
    expected = produce("orders", 300)
    target = str(tmp_path / "archive")
    said = {**at, "topics": "orders", "maxBytesPerTrigger": "7000"}
    told: list[tuple[int, int]] = []
    first = archive(spark, said, target, tell=lambda *both: told.append(both))
    expected += produce("orders", 50, first=300)
    second = archive(spark, said, target)
    assert all(done <= total for done, total in told)
    assert (first.records, second.records) == (300, 50)
    assert second.topics == {"orders": 350 * 45}
    again = {"semantics": "exactly-once", "txnId": "again", "ledgerPath": str(tmp_path / "ledger")}
    to = {**at, **again, "topic": "copy", "createTopic": "true"}
    for session in (None, spark, None):  # whichever repeats what the other one did
        found = replay(session, target, to, tell=lambda *both: told.append(both))
        assert found.topics == {"orders": 350}
    assert told[-1] == (350, 350)
    assert reader.values(**at, topic="copy") == expected


@pytest.fixture
def first_release(spark: Any, at: At, tmp_path: Path) -> Callable[[], str]:
    """Archive the topic ``orders`` as the first release did; returns the folder."""
    schema = "topic string, offset bigint, type int, value binary, ts_ns bigint"

    def run() -> str:
        target = str(tmp_path / "old")
        said = {**at, "topic": "orders", "startingOffsets": "earliest", "recordFormat": "stored"}
        rows = spark.readStream.format("lwp").options(**said).schema(schema).load()
        writer = rows.writeStream.format("parquet").partitionBy("topic")
        writer = writer.option("checkpointLocation", f"{target}/_lwp_checkpoint")
        writer.trigger(availableNow=True).start(target).awaitTermination()
        return target

    return run


def test_an_archive_of_the_first_release_goes_on_and_comes_back(
    spark: Any, server: EmbeddedServer, reader: Any, at: At, first_release: Callable[[], str]
) -> None:
    """In its own form, with stored values and without keys; the records are the same."""
    with Producer(f"{server.url}/orders", create_topic=True, dialect="specified") as producer:
        producer.send(b"first", key=b"k")
        producer.flush()
        target = first_release()
        producer.send(b"second", key=b"k", timestamp=1_767_268_800_123_456_789)
    assert archive(spark, {**at, "topic": "orders"}, target).records == 1
    assert "key" not in spark.read.parquet(target).columns
    with pytest.raises(ConfigError, match="begun with recordFormat=stored and goes on so"):
        archive(spark, {**at, "topic": "orders", "recordFormat": "payload"}, target)
    assert replay(spark, target, {**at, "topic": "copy", "createTopic": "true"}).records == 2
    names = ("type", "raw")
    expected = reader.rows(reader.splits(**at, topic="orders"), *names)
    assert reader.rows(reader.splits(**at, topic="copy"), *names) == expected


@pytest.mark.parametrize("left", [True, False])
def test_an_archive_that_was_copied_is_read_and_appended_to(
    spark: Any, produce: Fill, reader: Any, at: At, tmp_path: Path, *, left: bool
) -> None:
    """At its new place, whether or not the old one is still there."""
    expected = produce("a topic", 30)
    old, new = str(tmp_path / "old place"), str(tmp_path / "new place")
    archive(spark, {**at, "topic": "a topic"}, old)
    assert relocate(old) == 0
    shutil.copytree(old, new)
    if left:
        archive(spark, {**at, "topic": "a topic"}, old)
        shutil.rmtree(next(Path(old).glob("topic=*")))
    else:
        shutil.rmtree(old)
    assert replay(spark, new, {**at, "topic": "copy", "createTopic": "true"}).records == 30
    expected += produce("a topic", 10, first=30)
    assert archive(spark, {**at, "topic": "a topic"}, new).records == 10
    assert spark.read.parquet(new).count() == 40
    assert replay(spark, new, {**at, "topic": "again", "createTopic": "true"}).records == 40
    assert reader.values(**at, topic="again") == expected


def test_a_folder_that_is_no_archive_is_refused(spark: Any, tmp_path: Path) -> None:
    """Whether it is empty, or not there."""
    for path in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(ConfigError, match=f"{path} is not an archive"):
            replay(spark, str(path), {"servers": "127.0.0.1:9"})


def test_what_fails_in_a_task_is_raised_as_what_it_is(
    spark: Any, produce: Fill, server: EmbeddedServer, disk: Any, tmp_path: Path
) -> None:
    """In a streaming query and in a pipeline's tasks."""
    produce("orders", 100)
    server.stop()
    data = str(server.data_dir)
    disk.spoil(disk.segments_of(data)[0], 10)
    for work in (
        lambda: archive(spark, {"path": data}, str(tmp_path / "archive")),
        lambda: report(spark, {"path": data}),
    ):
        with pytest.raises(DataDamaged, match=r"^[^\n]*do not match their checksum[^\n]*$"):
            work()


def first_line_of(work: Callable[[], object]) -> str:
    """Return the first line of what a program of one's own sees when something fails."""
    with pytest.raises(Exception, match=r"SQLSTATE|Python worker") as caught:
        work()
    return first_line(caught.value)


def test_the_first_line_of_an_error_says_what_is_wrong(
    load: Callable[..., Any], stream: Callable[..., Any], produce: Fill
) -> None:
    """When a query is made, planned and read, and in a stream; without a traceback."""
    produce("orders", 10)
    for work, told in (
        (lambda: load("orders", startingOffset="1"), "did you mean 'startingOffsets'?"),
        (lambda: load("ordesr").count(), "topic 'ordesr' does not exist"),
        (lambda: load("orders", startingOffsets='{"orders": 3}').count(), "inside a record"),
        (lambda: stream("ordesr", "copy"), "topic 'ordesr' does not exist"),
    ):
        assert told in first_line_of(work)


def test_a_condition_that_is_not_sql_is_refused(
    spark: Any, produce: Fill, at: At, tmp_path: Path
) -> None:
    """In one line."""
    produce("orders", 3)
    target = str(tmp_path / "archive")
    archive(spark, {**at, "topic": "orders"}, target)
    for condition in ("offset >>> ", "nonsense = 1"):
        with pytest.raises(ConfigError, match=f"condition '{condition}': [^\n]*$"):
            replay(spark, target, {**at}, condition=condition)


def test_files_are_archived_by_date(
    spark: Any, produce: Fill, server: EmbeddedServer, tmp_path: Path
) -> None:
    """The sidecars know when."""
    produce("orders", 100)
    found = archive(
        spark,
        {"path": str(server.data_dir)},
        str(tmp_path / "archive"),
        partition_by=("topic", "date"),
    )
    assert found.records == 100
    assert len(list((tmp_path / "archive").glob("topic=orders/date=20*/*.parquet"))) >= 1


def test_pipelines_run_in_tasks(
    spark: Any, produce: Fill, reader: Any, server: EmbeddedServer, at: At
) -> None:
    """Audit, report, reindex and migrate over a stopped server's files, and what they tell."""
    expected = produce("orders", 3000)
    told: list[tuple[int, int]] = []
    path = str(server.data_dir)
    found = audit(spark, path, lambda done, total: told.append((done, total)))
    assert found.clean
    assert found.totals["records"] == 3000
    assert told[-1] == (len(found.files), len(found.files))
    assert report(spark, {"path": path}).records == 3000
    moved = migrate(
        spark, {"path": path}, {**at, "createTopic": "true"}, rename=[("orders", "copy")]
    )
    assert moved.topics == {"copy": 3000}
    assert reader.values(**at, topic="copy") == expected
    server.stop()
    assert reindex(spark, path, dry_run=True).segments >= 1


@pytest.fixture
def lwp(spark: Any, capfd: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    """Call ``lwp pipeline`` with ``--json`` in the session there is; returns what it prints."""
    del spark

    def call(*arguments: str) -> Any:
        capfd.readouterr()
        assert _app.run(["pipeline", *arguments, "--json"]) == ExitCode.OK
        return json.loads(capfd.readouterr().out)

    return call


def test_a_dry_run_of_every_command_tells_and_changes_nothing(
    lwp: Callable[..., Any], produce: Fill, server: EmbeddedServer, tmp_path: Path
) -> None:
    """As one JSON object each; then the real run does what was told."""
    produce("orders", 3000)
    data, target, url = str(server.data_dir), str(tmp_path / "archive"), server.url
    dry = {
        "audit": lwp("audit", data, "--dry-run"),
        "report": lwp("report", data, "--dry-run"),
        "migrate": lwp("migrate", data, "--url", url, "--rename", "orders=copy", "--dry-run"),
        "archive": lwp("archive", "orders", "--url", url, "--to", target, "--dry-run"),
    }
    assert all(told["dry_run"] for told in dry.values())
    assert not Path(target).exists()
    assert {name: told["bytes"] for name, told in dry.items() if "bytes" in told} == {
        "audit": 3000 * 45,
        "migrate": 3000 * 45,
        "archive": 3000 * 45,
    }
    assert lwp("audit", data)["records"] == 3000
    assert sum(each["records"] for each in lwp("report", data)["volumes"]) == 3000
    assert lwp("archive", "orders", "--url", url, "--to", target)["records"] == 3000
    writing = ("--url", url, "--topic", "again", "--create-topic")
    assert lwp("replay", target, *writing, "--dry-run")["records"] == 3000
    with Client(url) as client:
        assert [topic.name for topic in client.list_topics()] == ["orders"]
        assert lwp("replay", target, *writing)["topics"] == {"orders": 3000}
        assert client.get_topic("again").record_count == 3000
    server.stop()
    assert lwp("reindex", data, "--dry-run") == lwp("reindex", data, "--dry-run")


@pytest.mark.usefixtures("sessions")
def test_all_that_a_command_says_is_ours(
    produce: Fill, server: EmbeddedServer, tmp_path: Path
) -> None:
    """Neither Java nor Spark puts a line before it, or behind."""
    produce("orders", 100)
    named = {"JAVA_TOOL_OPTIONS", "PYSPARK_PYTHON"}  # what the other tests have set
    line = ["archive", str(server.data_dir), "--to", str(tmp_path / "archive")]
    done = subprocess.run(
        [sys.executable, "-m", "lance_sdk.cli", "pipeline", *line],
        check=False,
        timeout=280,
        capture_output=True,
        text=True,
        env={name: value for name, value in os.environ.items() if name not in named},
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("archived 100 records (4.5 kB)")


@pytest.mark.usefixtures("sessions")
def test_spark_submit_runs_the_same_commands(produce: Fill, server: EmbeddedServer) -> None:
    """Where its command line says; it puts warnings into standard output, before the object."""
    produce("orders", 100)
    program = Path(sys.executable).with_name("spark-submit")
    where = [str(program), "--master", "local[1]", "--conf", "spark.ui.enabled=false"]
    done = subprocess.run(
        [*where, pyspark_lwp.pipeline.__file__, "audit", str(server.data_dir), "--json"],
        check=False,
        timeout=280,
        capture_output=True,
        text=True,
        env=os.environ | {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_MASTER": "nonsense"},
    )
    assert done.returncode == 0, done.stderr
    body = json.loads(done.stdout.splitlines()[-1])
    assert (body["clean"], body["records"]) == (True, 100)
