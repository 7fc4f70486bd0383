"""Prometheus metrics, with the names of the design (sections 12.4, 16.7, 17.7)."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, Protocol

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)

from lance_server.log.clock import health_of
from lance_server.network.peer_log import PEER_LINES
from lance_server.runtime.circuit_breaker import CircuitState
from lance_server.telemetry.counters import Counters
from lance_server.telemetry.distribution import Distribution

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

_COUNTERS: Final = {
    "lance_records_ingested": ("records_in", "Records accepted for storing."),
    "lance_bytes_ingested": ("bytes_in", "Bytes of records accepted for storing."),
    "lance_batches": ("batches_in", "Batches accepted for storing."),
    "lance_batches_acked": ("batches_acked", "Batches acknowledged."),
    "lance_duplicates": ("duplicates", "Batches that were stored already."),
    "lance_opaque_batches": ("opaque_batches", "Batches stored that are not records."),
    "lance_reads": ("fetches", "Reads that were answered."),
    "lance_consumer_throttled": ("throttled", "Reads that came too early for their rate."),
    "lance_connections": ("connections_accepted", "Connections that were served."),
    "lance_connections_refused": ("connections_refused", "Connections that were turned away."),
    "lance_connections_shed": ("shed", "Connections closed because memory was short."),
    "lance_connections_idle_closed": ("idle_closed", "Connections closed for silence."),
    "lance_requests_refused_for_memory": ("refused_for_memory", "Requests refused for memory."),
    "lance_errors": ("errors", "Errors sent to clients."),
    "lance_protocol_faults": ("protocol_faults", "Connections that broke a rule."),
    "lance_requests_denied": ("denied", "Requests without the token or rule they need."),
    "lance_auth_failures": ("auth_failures", "Tokens that were not valid."),
}
_LWP: Final = {
    "lance_lwp_frames_received": ("frames_in", "Frames received."),
    "lance_lwp_invalid_magic": ("bad_magic", "Connections that did not begin a frame."),
    "lance_lwp_header_crc_fail": ("bad_header_crc", "Header checksums that were wrong."),
    "lance_lwp_payload_crc_fail": ("bad_payload_crc", "Payload checksums that were wrong."),
    "lance_lwp_keepalives": ("keepalives", "Keepalives received."),
}
_REPLICATION: Final = {
    "lance_replication_lag_bytes": (0, "Bytes behind the leader."),
    "lance_replication_last_sync_ms": (0, "Milliseconds since the last sync with the leader."),
    "lance_replication_pending_ops": (0, "Replication operations under way."),
    "lance_quorum_size": (1, "Nodes that decide."),
    "lance_cluster_healthy_nodes": (1, "Nodes that work."),
    "lance_cluster_is_leader": (1, "Whether this node leads."),
    "lance_cluster_quorum_available": (1, "Whether enough nodes work."),
}
"""One node leads itself."""


class MetricsText(Protocol):
    """What is measured: a server's service."""

    counters: Counters
    disk: Any


def render(figures: MetricsText, snapshot: Mapping[str, Any]) -> bytes:
    """Return all metrics as text.

    Args:
        figures: counts and distributions.
        snapshot: the rest, as `take_snapshot` has it.
    """
    registry = CollectorRegistry()
    registry.register(_Collector(figures, snapshot))
    return generate_latest(registry)


class _Collector:
    """The metrics of one moment."""

    def __init__(self, figures: MetricsText, snapshot: Mapping[str, Any]) -> None:
        self._figures = figures
        self._snapshot = snapshot
        self._node = str(snapshot["node_id"])

    def collect(self) -> Iterator[Metric]:
        """Yield every metric."""
        yield from self._counts()
        yield from self._gauges()
        yield from self._distributions()
        yield from self._storage()
        yield from self._topics()

    def _counts(self) -> Iterator[Metric]:
        values = self._snapshot["counters"]
        for name, (source, meaning) in _COUNTERS.items():
            yield self._counter(name, meaning, values[source])
        for name, (source, meaning) in _LWP.items():
            # The design names these without the suffix that Prometheus gives its counters.
            metric = Metric(name, meaning, "unknown")
            metric.add_sample(name, {"node_id": self._node}, values[source])
            yield metric
        read = values["bytes_out"] + values["bytes_pushed"]
        yield self._counter("lance_read_bytes", "Bytes of records returned.", read)
        left_out = "Log lines about peers that were left out, because there were too many."
        yield self._counter("lance_log_lines_left_out", left_out, PEER_LINES.left_out)
        events = CounterMetricFamily(
            "lance_backpressure_events",
            "Advice to slow down, and requests refused.",
            labels=["node_id", "reason"],
        )
        events.add_metric([self._node, "advice"], values["backpressure"])
        events.add_metric([self._node, "memory"], values["refused_for_memory"])
        events.add_metric([self._node, "rate"], values["throttled"])
        yield events

    def _gauges(self) -> Iterator[Metric]:
        shown = self._snapshot
        memory, counters = shown["memory"], shown["counters"]
        yield self._gauge(
            "lance_connections_active", "Connections being served.", counters["connections_open"]
        )
        yield self._gauge("lance_uptime_seconds", "Since the start.", shown["uptime_seconds"])
        yield self._gauge("lance_ready", "Whether batches are stored.", int(not shown["unready"]))
        yield self._gauge("lance_heap_usage_bytes", "Memory of the process.", memory["resident"])
        yield self._gauge("lance_memory_used_bytes", "Held for clients.", memory["used"])
        yield self._gauge("lance_memory_limit_bytes", "What may be held.", memory["limit"])
        behind = shown["clock_behind_ns"]
        meaning = "Seconds that the clock is behind the newest batch."
        yield self._gauge("lance_clock_behind_seconds", meaning, behind / 1e9)
        meaning = "Whether the clock is believed when something is to expire by age."
        yield self._gauge("lance_clock_trusted", meaning, int(shown["clock_doubt"] is None))
        meaning = "The clock: 0 healthy, 1 behind by 100 ms or more, 2 by a second or more."
        yield self._gauge("lance_clock_health", meaning, int(health_of(behind)))
        depth = GaugeMetricFamily(
            "lance_channel_depth", "What waits, by where.", labels=["node_id", "channel"]
        )
        depth.add_metric([self._node, "ingestion"], shown["queue_depth"])
        yield depth
        yield from self._cluster()

    def _cluster(self) -> Iterator[Metric]:
        facts = self._snapshot["cluster"]
        told = {
            "lance_replication_pending_ops": facts.get("pending", 0),
            "lance_cluster_healthy_nodes": facts.get("healthy_nodes", 1),
            "lance_cluster_is_leader": int(facts.get("is_leader", True)),
            "lance_cluster_quorum_available": int(facts.get("quorum_available", True)),
        }
        alone = "" if facts else " One node is all there is."
        for name, (value, meaning) in _REPLICATION.items():
            yield self._gauge(name, f"{meaning}{alone}", told.get(name, value))
        labels = ["node_id", "peer"]
        lag = GaugeMetricFamily(
            "lance_replication_lag_records",
            "Records of the log that a node has not applied, by node.",
            labels=labels,
        )
        peers = facts.get("peer_states", {})
        most: dict[str, int] = {}
        for peer in peers.values():
            for shard, position in peer["applied"].items():
                most[shard] = max(most.get(shard, 0), position)
        for name, peer in peers.items():
            behind = sum(most[shard] - position for shard, position in peer["applied"].items())
            lag.add_metric([self._node, name], behind)
        yield lag
        if facts:
            yield from self._own_records(facts)
        yield HistogramMetricFamily(
            "lance_replication_latency_seconds", "Replication to each peer.", labels=labels
        )

    def _own_records(self, facts: Mapping[str, Any]) -> Iterator[Metric]:
        """Yield what a node of a cluster counts of the records of the log."""
        meaning = "Records of the log that this node has not applied."
        yield self._gauge("lance_cluster_behind_records", meaning, facts["behind"])
        for key, meaning in (("topics", "Topics of a shard."), ("bytes", "Bytes of its topics.")):
            gauge = GaugeMetricFamily(
                f"lance_cluster_shard_{key}", meaning, labels=["node_id", "shard"]
            )
            for shard, use in facts["shards"].items():
                gauge.add_metric([self._node, shard], use[key])
            yield gauge
        gauge = GaugeMetricFamily(
            "lance_cluster_shard_hosts",
            "Live nodes that host a shard; two at least are wanted.",
            labels=["node_id", "shard"],
        )
        for shard, nodes in facts["hosts"].items():
            gauge.add_metric([self._node, shard], len(nodes))
        yield gauge
        meaning = "Bytes that were appended to the log and are not applied."
        yield self._gauge("lance_cluster_outstanding_bytes", meaning, facts["outstanding_bytes"])
        for name, key, meaning in (
            ("lance_cluster_records_appended", "records_appended", "Records sent to the log."),
            ("lance_cluster_records_applied", "records_applied", "Records of the log applied."),
            ("lance_cluster_appends_timed_out", "appends_timed_out", "Appends given up."),
        ):
            yield self._counter(name, meaning, facts[key])

    def _distributions(self) -> Iterator[Metric]:
        counters = self._figures.counters
        yield self._histogram("lance_batch_size", "Records per batch.", counters.batch_size)
        meaning = "Nanoseconds from a batch's receipt to its acknowledgement."
        yield self._histogram("lance_ingestion_latency_ns", meaning, counters.ack_latency)
        meaning = "Nanoseconds from a read's beginning to its answer."
        yield self._histogram("lance_read_latency_ns", meaning, counters.read_latency)
        by_operation = HistogramMetricFamily(
            "lance_io_latency_ns",
            "Nanoseconds that an operation of the disk took.",
            labels=["node_id", "op"],
        )
        for operation, distribution in self._figures.disk.latency.items():
            buckets, total = distribution.cumulative()
            by_operation.add_metric([self._node, operation], buckets, total)
        yield by_operation

    def _storage(self) -> Iterator[Metric]:
        disk = self._snapshot["disk"]
        backend = GaugeMetricFamily(
            "lance_io_backend", "The storage backend in use.", labels=["node_id", "type"]
        )
        backend.add_metric([self._node, disk["backend"]], 1)
        yield backend
        trial = GaugeMetricFamily(
            "lance_io_trial_bytes_per_second",
            "What each storage backend managed when one was chosen.",
            labels=["node_id", "type"],
        )
        for name, rate in disk["trial"].items():
            trial.add_metric([self._node, name], rate)
        yield trial
        yield self._errors("lance_io_errors")
        yield self._errors("lance_iouring_errors", only="uring" in disk["backend"])
        written = self._figures.disk.bytes_written
        yield self._counter("lance_bytes_written", "Bytes written, sidecars included.", written)
        yield self._counter("lance_flushes", "Flushes that were begun.", disk["flushes"])
        yield from self._ways(disk)
        yield self._gauge("lance_pending_bytes", "Not durable yet.", disk["pending_bytes"])
        yield self._gauge("lance_disk_free_bytes", "Free on the disk.", disk["free"])
        state = CircuitState[disk["breaker"].upper()]
        meaning = "Circuit to the disk: 0 closed, 1 open, 2 on trial."
        yield self._gauge("lance_circuit_state", meaning, int(state))
        yield self._counter("lance_circuit_trips", "Times it opened.", disk["breaker_trips"])
        scans = int(not disk["clean_start"])
        yield self._counter("lance_recovery_scans", "Starts that had to check the log.", scans)
        replayed = "Writes repeated from a write-ahead log at the start."
        yield self._counter("lance_wal_replay_writes", replayed, disk["wal_writes"])
        dirty = GaugeMetricFamily(
            "lance_segment_dirty", "Segments found damaged.", labels=["node_id", "segment"]
        )
        for segment in disk["damaged"]:
            dirty.add_metric([self._node, segment], 1)
        yield dirty
        meaning = "Bytes of closed segments that were compared with their checksums."
        yield self._counter("lance_scrubbed_bytes", meaning, disk["scrubbed_bytes"])
        meaning = "How often all closed segments were compared."
        yield self._counter("lance_scrub_passes", meaning, disk["scrub_passes"])
        closed = GaugeMetricFamily(
            "lance_topic_closed",
            "Topics that the disk does not let be written to or served.",
            labels=["node_id", "topic_id"],
        )
        for topic_id in disk["closed_topics"]:
            closed.add_metric([self._node, topic_id], 1)
        yield closed

    def _ways(self, disk: Mapping[str, Any]) -> Iterator[Metric]:
        """Yield which way commits take, and what that is decided by."""
        commits = disk["commits"]
        by_way = CounterMetricFamily(
            "lance_commits",
            "Commits of topics, to the write-ahead log or to the files they belong to.",
            labels=["node_id", "way"],
        )
        for way in ("log", "file", "direct"):
            if (count := commits.get(f"{way}_commits")) is not None:
                by_way.add_metric([self._node, way], count)
        yield by_way
        direct = "Small commits for which the write-ahead log had no room."
        yield self._counter("lance_direct_commits", direct, commits.get("direct_commits", 0))
        if (limit := commits.get("log_limit")) is not None:
            meaning = "Bytes of a topic's commit up to which it takes the write-ahead log."
            yield self._gauge("lance_commit_log_limit_bytes", meaning, limit)
        lone = "Flushes of a lone batch that the event loop made itself."
        yield self._counter("lance_lone_flushes", lone, disk["lone_flushes"])
        here = "Whether the event loop flushes a lone batch itself, as the disk goes lately."
        yield self._gauge("lance_lone_flush_here", here, int(disk["lone_here"]))
        usual = "What the flush of a lone batch usually takes."
        yield self._gauge("lance_lone_flush_seconds", usual, disk["lone_seconds"])

    def _errors(self, name: str, *, only: bool = True) -> Metric:
        family = CounterMetricFamily(
            name, "Operations that the disk refused.", labels=["node_id", "errno"]
        )
        for number, count in self._figures.disk.errors.items() if only else ():
            family.add_metric([self._node, str(number)], count)
        return family

    def _topics(self) -> Iterator[Metric]:
        topics, consumers = self._snapshot["topics"], self._snapshot["consumers"]
        for name, field, meaning in (
            ("lance_topic_end_offset", "end_offset", "After the last byte of a topic."),
            ("lance_topic_start_offset", "start_offset", "The first byte of a topic."),
            ("lance_topic_records", "records", "Records that a topic ever had."),
            ("lance_topic_segments", "segments", "Segments of a topic."),
            ("lance_topic_excess_bytes", "excess_bytes", "Bytes beyond the limit of a topic."),
        ):
            yield self._by_topic(name, meaning, field, topics)
        lag = GaugeMetricFamily(
            "lance_consumer_lag_bytes",
            "Bytes after the last commit of a consumer.",
            labels=["node_id", "topic", "consumer"],
        )
        for each in consumers:
            consumer = each["name"] or str(each["consumer_id"])
            lag.add_metric([self._node, each["topic"], consumer], each["lag"])
        yield lag

    def _by_topic(
        self, name: str, meaning: str, field: str, topics: Iterable[Mapping[str, Any]]
    ) -> Metric:
        family = GaugeMetricFamily(name, meaning, labels=["node_id", "topic"])
        for topic in topics:
            family.add_metric([self._node, topic["name"]], topic[field])
        return family

    def _counter(self, name: str, meaning: str, value: float) -> Metric:
        family = CounterMetricFamily(name, meaning, labels=["node_id"])
        family.add_metric([self._node], value)
        return family

    def _gauge(self, name: str, meaning: str, value: float) -> Metric:
        family = GaugeMetricFamily(name, meaning, labels=["node_id"])
        family.add_metric([self._node], value)
        return family

    def _histogram(self, name: str, meaning: str, values: Distribution) -> Metric:
        family = HistogramMetricFamily(name, meaning, labels=["node_id"])
        buckets, total = values.cumulative()
        family.add_metric([self._node], buckets, total)
        return family
