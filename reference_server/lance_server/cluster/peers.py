"""The last reports of all nodes of a cluster, as a node reads them in the log."""

from collections.abc import Mapping, Sequence
from typing import Final

from lance_server.cluster.applying.replica import Replica
from lance_server.cluster.applying.settings import APPLY_VERSION
from lance_server.cluster.applying.shard import NodeEntry
from lance_server.cluster.node_options import NodeOptions
from lance_server.cluster.replicated_log import StopNodeError
from lance_spec.messages.replication import NodeStatus, ShardPosition

FEWEST_HOSTS: Final = 2
"""Nodes that must have a shard before the log, or one more node, may forget it."""
_STATUSES: Final = 5
"""Times in which nodes tell of themselves after which one that has not is no live one."""
_SECOND: Final = 1_000_000_000


class Peers:
    """The nodes of a cluster, as far as one of them has applied the log.

    Args:
        options: what that node is told.
        replica: its data.
    """

    def __init__(self, options: NodeOptions, replica: Replica) -> None:
        self._options = options
        self._told_ns = 0
        """When this process told of itself first, by its own clock."""
        self._replica = replica

    def __repr__(self) -> str:
        return f"<Peers {sorted(self.all())}, live {self.live()}>"

    def all(self) -> dict[int, NodeEntry]:
        """Return what the nodes told last, by number."""
        return dict(self._replica.shards[0].state.nodes)

    def live(self) -> list[int]:
        """Return the numbers of nodes that told of themselves lately, by the log's time."""
        state = self._replica.shards[0].state
        oldest = state.time_ns - int(_STATUSES * self._options.status_seconds * _SECOND)
        return sorted(key for key, each in self.all().items() if each.time_ns >= oldest)

    def hosts(self, shard: int) -> list[int]:
        """Return the numbers of live nodes that host a shard, as they told last."""
        durable = self.durable(shard)
        return [each for each in self.live() if each in durable]

    def durable(self, shard: int) -> dict[int, int]:
        """Return the position up to which each node that hosts a shard has it durably."""
        return durable_of(self.all(), shard)

    def leader(self, shard: int = 0) -> int | None:
        """Return the live node with the lowest number of those that host a shard."""
        return next(iter(self.hosts(shard)), None)

    def knows_own_shards(self) -> bool:
        """Whether the log says, as far as it is applied, which shards this process hosts.

        Of nodes that host less than before, each that comes later sees then what the earlier host.
        """
        own = self.own()
        return own is not None and own.process == self._options.process

    def own(self) -> NodeEntry | None:
        """Return what the node, or a process that had its number before, told last."""
        return self._replica.shards[0].state.nodes.get(self._options.node_id)

    def silence(self, clock_ns: int) -> float:
        """Return the seconds since the log took what this process tells of itself; 0 while it does.

        Args:
            clock_ns: what the node's clock shows.
        """
        own, since = self.own(), self._told_ns
        if own is not None and own.process == self._options.process:
            since = own.time_ns
        seconds = (clock_ns - since) / _SECOND if since else 0.0
        return seconds if seconds > _STATUSES * self._options.status_seconds else 0.0

    def status(self, clock_ns: int, positions: Sequence[ShardPosition]) -> NodeStatus:
        """Return what the node tells of itself.

        Args:
            clock_ns: what its clock shows.
            positions: how far it is with each shard.
        """
        options, told = self._options, self.own()
        self._told_ns = self._told_ns or clock_ns
        return NodeStatus(
            node_id=options.node_id,
            replaces=0 if told is None or told.process == options.process else told.process,
            address=options.address,
            release=options.release,
            apply_version=APPLY_VERSION,
            clock_ns=clock_ns,
            positions=list(positions),
        )

    def problem(self) -> StopNodeError | None:
        """Return why the node must stop: a newer process has its number, or the logs differ."""
        own, number = self.own(), self._options.node_id
        if own is not None and self._options.process in own.former:
            return StopNodeError(
                f"another process has begun as node {number}, at {own.status.address}; give each "
                "node its own number"
            )
        other = self.disagreeing()
        if other is None:
            return None
        return StopNodeError(
            f"the records that this node has applied are not those of node {other}: one has read "
            "another log; compare their files with `lance-server verify DIR --against URL`, and "
            "mend the wrong one with `lance-server clone DIR --from HOST:PORT`"
        )

    def disagreeing(self) -> int | None:
        """Return a node that has read something else, if more have than have read the same."""
        nodes, same, others = self.all(), 0, list[int]()
        for node_id in self.live():
            if node_id == self._options.node_id or node_id not in nodes:
                continue
            for each in nodes[node_id].status.positions:
                if each.shard not in self._replica.shards:
                    continue
                digest = self._replica.shards[each.shard].digest_at(each.applied)
                if digest is not None and digest != each.digest:
                    others.append(node_id)
                same += digest == each.digest
        return others[0] if len(others) > same else None


def durable_of(nodes: Mapping[int, NodeEntry], shard: int) -> dict[int, int]:
    """Return the position up to which each node has a shard durably, of those that host it."""
    return {
        node_id: each.durable
        for node_id, told in nodes.items()
        for each in told.status.positions
        if each.shard == shard
    }


def clock_skew(sent_ns: int, appended_ns: int, applied_ns: int) -> int:
    """Return how far a clock is off the log's, at least: 0 where a late record explains it all.

    Args:
        sent_ns: what the clock showed when a record was sent.
        appended_ns: when the log took it, by the log's clock.
        applied_ns: what the clock showed when the record had come back.
    """
    return max(0, sent_ns - appended_ns) or min(0, applied_ns - appended_ns)
