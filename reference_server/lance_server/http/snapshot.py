"""A snapshot of the server's figures, for people and for machines."""

import resource
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from lance_server.http.health import unready_reasons
from lance_server.http.observed_server import ObservedServer
from lance_server.listeners.shared_offsets import counts_records
from lance_server.log.recovery.recovery_report import Finding

if TYPE_CHECKING:
    from lance_server.log.log_manager import LogManager
    from lance_server.log.partition import Partition

MOST_TOPICS: Final = 1000
MOST_CONSUMERS: Final = 1000
MOST_CONNECTIONS: Final = 200
"""How many are told one by one; totals count all."""


def take_snapshot(server: ObservedServer) -> dict[str, Any]:
    """Return what the server is doing now, as JSON could have it."""
    service = server.service
    topics = server.engine.topics_with_default()
    return {
        "node_id": service.config.node_id,
        "address": str(server.address),
        "dialect": service.config.dialect,
        "uptime_seconds": round(time.monotonic() - service.started_at, 1),
        "unready": unready_reasons(service),
        "pressure": service.pressure,
        "counters": service.counters.snapshot(),
        "rates": service.sampler.rates(),
        "history": service.sampler.history(),
        "memory": {
            "used": service.memory.used,
            "limit": service.memory.limit,
            "level": service.memory.level.name.lower(),
            "resident": _resident(),
        },
        "clock_doubt": server.engine.expiry.doubt,
        "clock_behind_ns": server.engine.clock_behind_ns,
        "queue_depth": server.connection_manager.queue_depth,
        "disk": _disk(server),
        "topic_count": len(topics),
        "topics": [_topic(server, topic) for topic in topics[:MOST_TOPICS]],
        "consumers": _consumers(server.engine, service.consumer_names)[:MOST_CONSUMERS],
        "connections": [
            each.describe() for each in list(server.connection_manager)[:MOST_CONNECTIONS]
        ],
        "cluster": server.engine.cluster_facts(),
        "listeners": [{"name": name, "address": str(at)} for name, at in server.addresses()],
    }


def _disk(server: ObservedServer) -> dict[str, Any]:
    disk, data_dir = server.service.disk, server.config.data_dir
    flusher = server.engine.flusher
    sync = disk.latency["sync"]
    try:
        usage = shutil.disk_usage(data_dir)
        total, free = usage.total, usage.free
    except OSError:
        total = free = 0
    return {
        "backend": disk.name,
        "trial": server.storage_rates,
        "data_dir": str(data_dir),
        "total": total,
        "free": free,
        "sync_p50_ms": sync.percentile(0.5) / 1e6,
        "sync_p99_ms": sync.percentile(0.99) / 1e6,
        "flushes": flusher.flushes,
        "lone_flushes": flusher.lone_flushes,
        "lone_here": flusher.quick_disk.is_quick,
        "lone_seconds": flusher.quick_disk.usual,
        "commits": dict(disk.figures()),
        "pending_bytes": server.engine.backlog.size,
        "errors": sum(disk.errors.values()),
        "breaker": disk.breaker.state.name.lower(),
        "breaker_trips": disk.breaker.trips,
        "in_flight": disk.in_flight,
        "recovery": str(server.report),
        "wal_writes": server.repeated_writes,
        "clean_start": server.report.clean,
        "scrubbed_bytes": server.engine.scrubber.size,
        "scrub_passes": server.engine.scrubber.passes,
        "closed_topics": {
            str(topic_id): reason
            for topic_id, reason in list(server.engine.problems.items())[:MOST_TOPICS]
        },
        "findings": [str(finding) for finding in server.report.findings[:20]],
        "damaged": sorted({each.path.name for each in server.report.findings if _is_damage(each)}),
    }


def _is_damage(finding: Finding) -> bool:
    return finding.kind == "damage"


def _topic(server: ObservedServer, topic: Any) -> dict[str, Any]:
    info = topic.info()
    return {
        "id": info.id,
        "name": info.name,
        "records": info.record_count,
        "start_offset": info.start_offset,
        "end_offset": info.end_offset,
        "segments": topic.partition.segments,
        "max_age_secs": info.max_age_secs,
        "max_bytes": info.max_bytes,
        "excess_bytes": topic.partition.excess,
        "bytes_per_second": server.service.sampler.topic_rate(info.id),
    }


def _consumers(engine: "LogManager", names: Mapping[int, str]) -> list[dict[str, Any]]:
    """Return who has committed an offset, the largest lag first."""
    found = [
        {
            "topic_id": topic.id,
            "topic": topic.file.identity.name,
            "consumer_id": consumer,
            "name": names.get(consumer),
            "committed": committed,
            "lag": max(0, topic.partition.end_offset - place),
            "share": _share(topic.partition, place),
        }
        for topic in engine.topics_with_default()
        for consumer, committed in topic.consumers.offsets().items()
        for is_record in (engine.is_replicated and counts_records(consumer),)
        for place in (_place(topic.partition, committed, is_record=is_record),)
    ]
    return sorted(found, key=lambda each: -int(each["lag"]))


def _place(partition: "Partition", committed: int, *, is_record: bool) -> int:
    """Return how many bytes a consumer has read; for a count of records, about as many."""
    if not is_record:
        return committed
    for segment in reversed(partition.segment_list):
        number = committed - segment.base_record
        if number >= 0 and segment.records:
            part = min(number, segment.records) * segment.size // segment.records
            return segment.base_offset + part
    return partition.start_offset


def _share(partition: Any, committed: int) -> float:
    """Return which part of the kept bytes a consumer has read, 0 to 1."""
    size = partition.end_offset - partition.start_offset
    return 1.0 if size <= 0 else min(1.0, max(0.0, (committed - partition.start_offset) / size))


def _resident() -> int:
    """Return the memory of this process in bytes."""
    pages = Path("/proc/self/statm").read_text().split()[1]
    return int(pages) * resource.getpagesize()
