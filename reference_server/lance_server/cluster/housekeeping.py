"""Housekeeping of a cluster: what the node that does it proposes.

Proposals are records like others: applying one twice, or late, changes nothing. Called on the
thread that applies, but for the trimming itself.
"""

import logging
from collections.abc import Collection
from typing import Any, Final

from lance_server.cluster.applying.replica import Replica
from lance_server.cluster.applying.shard import Shard
from lance_server.cluster.peers import FEWEST_HOSTS, durable_of
from lance_server.cluster.replicated_log import ReplicatedLog, ReplicatedLogError, StopNodeError
from lance_spec.messages.replication import DropBefore, Roll, TopicEnds

_log = logging.getLogger(__name__)
_SECOND: Final = 1_000_000_000


def proposals(
    replica: Replica, led: Collection[int], now_ns: int, segment_age_secs: int
) -> list[tuple[int, Any]]:
    """Return records that are due, each with its shard.

    Args:
        replica: the node's data.
        led: the shards for which this node does the housekeeping.
        now_ns: what the node's clock shows.
        segment_age_secs: age at which an open segment is closed; 0 for never.
    """
    found: list[tuple[int, Any]] = []
    for number in led:
        found += [
            (number, body)
            for body in _topic_proposals(replica.shards[number], now_ns, segment_age_secs)
        ]
    return found + _missing(replica, led)


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


def _missing(replica: Replica, led: Collection[int]) -> list[tuple[int, Any]]:
    """Return what carries creations and deletions on that stopped halfway.

    A topic that shard 0 has not created yet, as far as it is applied here, is left alone.
    """
    catalog, found = replica.shards[0].state.catalog, list[tuple[int, Any]]()
    for topic_id, entry in catalog.topics.items():
        if entry.shard in led and topic_id not in replica.shards[entry.shard].topics:
            found.append((entry.shard, entry.begins(topic_id)))
    for number in led:
        found += [
            (number, TopicEnds(topic_id=topic_id))
            for topic_id in replica.shards[number].topics
            if topic_id not in catalog.topics and topic_id < catalog.next_id
        ]
    return found


def trim_position(replica: Replica, number: int) -> int:
    """Return the position before which no host of a shard needs a record any more.

    It is 0 while a host has not told what it has, or while there are fewer than two. A node that
    tells how far it is with the shard is a host, too, before its HostJoins is applied here.
    """
    shard = replica.shards[number]
    durable = durable_of(replica.shards[0].state.nodes, number)
    hosts = shard.state.hosts | durable.keys()
    if len(hosts) < FEWEST_HOSTS:
        return 0
    return min(replica.durable(number), *(durable.get(host, 0) for host in hosts))


class LogTrimmer:
    """Lets the log delete what no host needs any more, on a thread of its own.

    `plan` is called on the thread that applies, `begin` on the event loop's, `trim` on its own.
    A plan that waits for its turn stays right: what hosts have made durable only grows.

    Args:
        log: the replicated log.
        replica: the node's data.
    """

    def __init__(self, log: ReplicatedLog, replica: Replica) -> None:
        self._log = log
        self._replica = replica
        self._planned: dict[int, int] = {}
        self._is_trimming = False

    def __repr__(self) -> str:
        return f"<LogTrimmer to {self._planned}>"

    def plan(self, led: Collection[int]) -> None:
        """Note what may go of the shards of which this node does the housekeeping."""
        places = {number: trim_position(self._replica, number) for number in led}
        self._planned = {number: before for number, before in places.items() if before}

    def begin(self) -> bool:
        """Whether there is something to trim and nothing trims; then `trim` is to be called."""
        if self._is_trimming or not self._planned:
            return False
        self._is_trimming = True
        return True

    def trim(self) -> None:
        """Delete it (a thread that may wait). Where brokers refuse, the next plan tries again.

        Raises:
            StopNodeError: the log is not the one that the node has applied.
        """
        planned, self._planned = self._planned, {}
        try:
            for number, before in planned.items():
                if before > self._log.earliest(number):
                    self._log.trim(number, before)
        except StopNodeError:
            raise
        except ReplicatedLogError as error:
            _log.debug("the log was not trimmed: %s", error)
        finally:
            self._is_trimming = False
