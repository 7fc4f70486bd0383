"""What a node knows of all nodes of its cluster: what they told last, in the log."""

from typing import Final

from lance_server.cluster.applying.replica import Replica
from lance_server.cluster.applying.shard import NodeEntry
from lance_server.cluster.node_options import NodeOptions

_SECOND: Final = 1_000_000_000


class Peers:
    """The nodes of a cluster, as far as one of them has applied the log.

    Args:
        options: what that node is told.
        replica: its data.
    """

    def __init__(self, options: NodeOptions, replica: Replica) -> None:
        self._options = options
        self._replica = replica

    def __repr__(self) -> str:
        return f"<Peers {sorted(self.all())}, live {self.live()}>"

    def all(self) -> dict[int, NodeEntry]:
        """Return what the nodes told last, by number."""
        return dict(self._replica.shards[0].state.nodes)

    def live(self) -> list[int]:
        """Return the numbers of nodes that told of themselves lately, by the log's time."""
        state = self._replica.shards[0].state
        oldest = state.time_ns - int(5 * self._options.status_seconds * _SECOND)
        return sorted(key for key, each in self.all().items() if each.time_ns >= oldest)

    def leader(self) -> int | None:
        """Return the live node with the lowest number."""
        return next(iter(self.live()), None)

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


def clock_skew(sent_ns: int, appended_ns: int, applied_ns: int) -> int:
    """Return how far a clock is off the log's, at least: 0 where a late record explains it all.

    Args:
        sent_ns: what the clock showed when a record was sent.
        appended_ns: when the log took it, by the log's clock.
        applied_ns: what the clock showed when the record had come back.
    """
    return max(0, sent_ns - appended_ns) or min(0, applied_ns - appended_ns)
