"""Housekeeping of a cluster: what the node that does it proposes.

Proposals are records like others: applying one twice, or late, changes nothing. Called on the
thread that applies.
"""

from typing import Any, Final

from lance_server.cluster.applying.replica import Replica
from lance_server.cluster.applying.shard import Shard
from lance_spec.messages.replication import DropBefore, Roll, TopicEnds

_SECOND: Final = 1_000_000_000
_FEWEST_HOSTS: Final = 2


def proposals(replica: Replica, now_ns: int, segment_age_secs: int) -> list[tuple[int, Any]]:
    """Return records that are due, each with its shard.

    Args:
        replica: the node's data.
        now_ns: what the node's clock shows.
        segment_age_secs: age at which an open segment is closed; 0 for never.
    """
    found: list[tuple[int, Any]] = []
    for shard in replica.shards:
        found += [
            (shard.number, body) for body in _topic_proposals(shard, now_ns, segment_age_secs)
        ]
    return found + _missing(replica)


def _topic_proposals(shard: Shard, now_ns: int, segment_age_secs: int) -> list[Any]:
    found: list[Any] = []
    for topic_id, topic in shard.topics.items():
        gone = topic.droppable(topic.state.end, now_ns)
        if gone:
            version = topic.state.retention_version
            found.append(
                DropBefore(topic_id=topic_id, offset=gone[-1].end, retention_version=version)
            )
        begun_ns = topic.state.last_start_ns
        is_old = segment_age_secs and begun_ns < now_ns - segment_age_secs * _SECOND
        if topic.active is not None and is_old:
            found.append(Roll(topic_id=topic_id, end=topic.state.end))
    return found


def _missing(replica: Replica) -> list[tuple[int, Any]]:
    """Return what carries creations and deletions on that stopped halfway."""
    if not replica.shards:
        return []
    catalog, found = replica.shards[0].state.catalog.topics, list[tuple[int, Any]]()
    for topic_id, entry in catalog.items():
        if topic_id not in replica.shards[entry.shard].topics:
            found.append((entry.shard, entry.begins(topic_id)))
    for shard in replica.shards:
        found += [
            (shard.number, TopicEnds(topic_id=topic_id))
            for topic_id in shard.topics
            if topic_id not in catalog
        ]
    return found


def trim_position(replica: Replica, number: int) -> int:
    """Return the position before which no host of a shard needs a record any more.

    It is 0 while a host has not told what it has, or while there are fewer than two.
    """
    shard, nodes = replica.shards[number], replica.shards[0].state.nodes
    if len(shard.state.hosts) < _FEWEST_HOSTS:
        return 0
    lowest = replica.durable(number)
    for host in shard.state.hosts:
        told = nodes.get(host)
        found = (
            [each.durable for each in told.status.positions if each.shard == number] if told else []
        )
        lowest = min(lowest, *found) if found else 0
    return lowest
