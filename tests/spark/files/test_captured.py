"""What came in by other protocols: captured by a server, archived, and moved to other servers."""

import json
from collections.abc import Callable, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from lance_sdk.spark.options import Options
from lance_sdk.spark.pipelines import archive, replay
from lance_sdk.spark.pipelines.migrate import copy
from lance_server.testing import ServerProcess

At = Mapping[str, str]
Move = Callable[[str], None]
KEYED = [(b"sensor-%d" % (number % 3), b"%04d" % number) for number in range(200)]
FLUVIO = ("--fluvio-sc", "127.0.0.1:0", "--fluvio-spu", "127.0.0.1:0")


@pytest.fixture
def move(reader: Any, at: At) -> Move:
    """Copy every topic at a path to the other server, as the tasks of ``migrate`` do."""
    target = Options.parse({**at, "createTopic": "true"})

    def run(path: str) -> None:
        splits = reader.splits(path=path)
        for topic in sorted({split.topic for split in splits}):
            work = [split for split in splits if split.topic == topic]
            copy(target, [], work)

    return run


def test_what_fluvio_clients_wrote(reader: Any, at: At, move: Move, tmp_path: Path) -> None:
    """Keys, values and times."""
    pytest.importorskip("cramjam", reason="pip install 'lance-sdk[fluvio]'")
    from lance_sdk.fluvio import FluvioClient  # noqa: PLC0415 - an extra
    from lance_server.listeners.fluvio.testing import fluvio_servers  # noqa: PLC0415 - likewise

    path = str(tmp_path / "captured")
    with (
        fluvio_servers(tmp_path / "captured") as servers,
        FluvioClient("{}:{}".format(*servers.sc)) as client,
    ):
        client.create_topic("readings")
        with client.producer("readings") as producer:
            for key, value in KEYED:
                producer.send(value, key=key)
    move(path)
    columns = ("offset", "type", "value", "key", "ts_ns")
    moved = reader.rows(reader.splits(**at, topic="readings"), *columns)
    assert moved == reader.rows(reader.splits(path=path, topic="readings"), *columns)
    assert [row["key"] for row in moved] == [key for key, _ in KEYED]
    assert all(row["value"].endswith(value) for row, (_, value) in zip(moved, KEYED, strict=True))


def test_what_rustlog_clients_wrote(reader: Any, at: At, move: Move, tmp_path: Path) -> None:
    """Each partition is a topic, and stays one."""
    from lance_sdk.rustlog import RustlogClient  # noqa: PLC0415 - only here
    from lance_server.listeners.rustlog.testing import broker  # noqa: PLC0415 - likewise

    values = [value for _, value in KEYED]
    with (
        broker(tmp_path / "captured") as captured,
        RustlogClient("{}:{}".format(*captured.address)) as client,
    ):
        client.create_topic("orders", partitions=2)
        client.produce("orders", values)
        client.produce("orders", values[::-1], partition=1)
    move(str(tmp_path / "captured"))
    assert reader.values(**at, topic="orders") == values
    assert reader.values(**at, topic="orders.1") == values[::-1]


def test_what_qwp_senders_wrote(reader: Any, at: At, move: Move, tmp_path: Path) -> None:
    """A row is a record with its time; its columns are JSON."""
    pytest.importorskip("websockets", reason="pip install 'lance-sdk[qwp]'")
    from lance_sdk.journal.qwp import QwpSender, timestamp_nanos  # noqa: PLC0415 - an extra
    from lance_server.listeners.qwp.testing import endpoint  # noqa: PLC0415 - likewise

    start = 1_767_268_800_000_000_000
    with (
        endpoint(tmp_path / "captured") as captured,
        QwpSender.from_conf(f"ws::addr={captured.addr};") as sender,
    ):
        for number in range(100):
            sender.row("climate", columns={"v": number}, at=timestamp_nanos(start + number))
        sender.flush()
    move(str(tmp_path / "captured"))
    moved = reader.rows(reader.splits(**at, topic="climate"), "ts_ns", "value")
    assert [row["ts_ns"] for row in moved] == [start + number for number in range(100)]
    rows = [json.loads(row["value"]) for row in moved]
    assert [row["v"] for row in rows] == list(range(100))


class Fluvio:
    """Fluvio's published client with a server of ours."""

    def __init__(self, server: ServerProcess) -> None:
        import fluvio  # noqa: PLC0415 - an extra

        self._begin = fluvio.Offset.beginning()
        config = fluvio.FluvioConfig.new("{}:{}".format(*server.others["fluvio-sc"]))
        self._client = fluvio.Fluvio.connect_with_config(config)
        fluvio.FluvioAdmin.connect_with_config(config).create_topic(
            "readings", fluvio.TopicSpec.create().with_partitions(1).build()
        )

    def write(self, records: list[tuple[bytes, bytes]]) -> None:
        """Send keys and values."""
        producer = self._client.topic_producer("readings")
        for key, value in records:
            producer.send(key, value)
        producer.flush()

    def read(self, count: int) -> list[tuple[bytes, bytes]]:
        """Return keys and values from the beginning."""
        stream = self._client.partition_consumer("readings", 0).stream(self._begin)
        return [(bytes(each.key()), bytes(each.value())) for each in islice(stream, count)]


@pytest.mark.timeout(600)  # Spark starts in five seconds, or in a minute on a busy machine
def test_what_fluvios_own_client_wrote_is_archived_and_comes_back(
    spark: Any, tmp_path: Path
) -> None:
    """Written and read by the published client; in between files, Parquet, and another server."""
    pytest.importorskip("fluvio", reason="the published client fluvio is not installed")
    target, path = str(tmp_path / "archive"), tmp_path / "captured"
    with ServerProcess.running(path, *FLUVIO) as server:
        Fluvio(server).write(KEYED)
    done = archive(spark, {"path": str(path), "topics": "readings"}, target)
    rows = spark.read.parquet(target).orderBy("offset").collect()
    assert done.records == len(rows) == len(KEYED)
    assert all(bytes(row["value"]).endswith(v) for row, (_, v) in zip(rows, KEYED, strict=True))
    with ServerProcess.running(tmp_path / "other", *FLUVIO) as server:
        other = Fluvio(server)
        replay(spark, target, {"servers": "{}:{}".format(*server.address)})
        assert other.read(len(KEYED)) == KEYED
