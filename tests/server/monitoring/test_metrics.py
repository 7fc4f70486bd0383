"""Prometheus metrics (design sections 12.4, 16.7 and 17.7)."""

import signal
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from lance_server import EmbeddedServer, running
from lance_server.config.settings import Address
from lance_server.testing import RawClient, ServerProcess, ask_http, eventually
from lance_spec.enums import Command
from lance_spec.messages.lwp import CommitOffset

ANYWHERE = Address("127.0.0.1", 0)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[EmbeddedServer]:
    """A server with metrics, and some data."""
    with running(tmp_path, http=ANYWHERE, node_id=3) as running_server:
        with RawClient(running_server.address) as client:
            orders = client.create_topic("orders")
            client.store([b"one", b"two"], batch_id=1, topic_id=orders)
            client.ask(Command.COMMIT_OFFSET, CommitOffset(orders, 77, 8).encode())
            client.fetch(0, topic_id=orders)
        eventually(lambda: running_server.stats()["connections_open"] == 0)
        yield running_server


def metrics(server: EmbeddedServer) -> dict[str, dict[tuple[str, ...], float]]:
    """Return all samples: their values by name and labels other than the node."""
    samples: dict[str, dict[tuple[str, ...], float]] = {}
    for family in text_string_to_metric_families(ask_http(server, "/metrics").text):
        for sample in family.samples:
            assert sample.labels.pop("node_id") == "3"
            samples.setdefault(sample.name, {})[
                tuple(value for _, value in sorted(sample.labels.items()))
            ] = sample.value
    return samples


NAMES = [
    "lance_records_ingested_total",
    "lance_bytes_written_total",
    "lance_batch_size_bucket",
    "lance_ingestion_latency_ns_bucket",
    "lance_replication_lag_bytes",
    "lance_replication_last_sync_ms",
    "lance_replication_pending_ops",
    "lance_quorum_size",
    "lance_cluster_healthy_nodes",
    "lance_cluster_is_leader",
    "lance_cluster_quorum_available",
    "lance_backpressure_events_total",
    "lance_channel_depth",
    "lance_heap_usage_bytes",
    "lance_recovery_scans_total",
    "lance_clock_behind_seconds",
    "lance_clock_health",
    "lance_lwp_frames_received",
    "lance_lwp_invalid_magic",
    "lance_lwp_header_crc_fail",
    "lance_lwp_payload_crc_fail",
    "lance_lwp_keepalives",
    "lance_reads_total",
    "lance_read_bytes_total",
    "lance_read_latency_ns_bucket",
    "lance_consumer_throttled_total",
    "lance_log_lines_left_out_total",
    "lance_io_backend",
    "lance_connections_active",
    "lance_errors_total",
    "lance_wal_replay_writes_total",
]
LABELLED = [
    "lance_iouring_errors",
    "lance_replication_lag_records",
    "lance_replication_latency_seconds",
    "lance_segment_dirty",
    "lance_topic_closed",
]
"""Names that have samples only where there is something to tell."""


def test_metrics_have_the_names_of_the_design(server: EmbeddedServer) -> None:
    """Sections 12.4, 16.7 and 17.7; those without samples are declared, for dashboards."""
    assert set(NAMES) <= set(metrics(server))
    text = ask_http(server, "/metrics").text
    assert [name for name in LABELLED if f"# TYPE {name}" not in text] == []


def test_metrics_say_what_happened(server: EmbeddedServer) -> None:
    """Counts, distributions, topics, lag."""
    values = metrics(server)
    assert values["lance_records_ingested_total"][()] == 2
    assert values["lance_batch_size_sum"][()] == 2
    assert values["lance_batch_size_bucket"]["1",] == 0
    assert values["lance_batch_size_bucket"]["2",] == 1
    assert values["lance_ingestion_latency_ns_count"][()] == 1
    assert values["lance_reads_total"][()] == 1
    assert values["lance_read_bytes_total"][()] == 16
    assert values["lance_topic_end_offset"]["orders",] == 16
    assert values["lance_consumer_lag_bytes"]["77", "orders"] == 8
    assert values["lance_io_latency_ns_count"]["sync",] >= 1


def test_the_latency_of_a_batch_that_came_alone_has_its_flush(tmp_path: Path) -> None:
    """It is made durable while its read is taken, and that is most of what its client waits for."""
    with running(tmp_path, http=ANYWHERE, node_id=3) as server:
        flusher = server._running.engine.flusher
        flusher.clock = count(0, 0.0004).__next__
        with RawClient(server.address) as client:
            for number in range(1, 50):
                client.store([b"one"], batch_id=number)
        assert flusher.lone_flushes > 0
        assert metrics(server)["lance_ingestion_latency_ns_bucket"]["10000",] == 0


def test_what_a_kill_left_is_told(tmp_path: Path) -> None:
    """An unclean stop, and the writes that a write-ahead log repeated."""
    options = ["--durability", "wal", "--http", "127.0.0.1:0"]
    with ServerProcess.running(tmp_path, *options) as process:
        with RawClient(process.address) as client:
            client.store([b"one"], batch_id=1)
        process.end(signal.SIGKILL)
    with running(tmp_path, http=ANYWHERE, durability="wal", node_id=3) as server:
        values = metrics(server)
        assert values["lance_recovery_scans_total"][()] == 1
        assert values["lance_wal_replay_writes_total"][()] >= 1


def test_broken_streams_are_counted_by_kind(server: EmbeddedServer) -> None:
    """Magic, header checksum, payload checksum."""
    with RawClient(server.address) as client:
        good = client.batch([b"one"], batch_id=1)
        broken = [b"JUNK" + good[4:], good[:8] + b"\0\0\0\0" + good[12:], good[:-1] + b"\0"]
    for stream in broken:
        with RawClient(server.address) as client:
            client.send(stream)
            assert client.wait_for_close() == []
    values = metrics(server)
    names = ("invalid_magic", "header_crc_fail", "payload_crc_fail")
    assert [values[f"lance_lwp_{name}"][()] for name in names] == [1, 1, 1]
