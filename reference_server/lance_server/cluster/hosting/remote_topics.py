"""Topics in shards that a node does not host: what it tells of them, and who serves them."""

from typing import Final

from lance_server.cluster.applying.catalog import CatalogEntry
from lance_server.cluster.node import ClusterNode
from lance_server.config.settings import Address
from lance_server.lwp.refusals import Refusal, not_leader
from lance_spec.bodies import TopicInfo
from lance_spec.enums import ErrorCode

_MOST_BEHIND: Final = 10_000
"""Records that a host may lack of what another one has applied, to be named as one."""


class RemoteTopics:
    """The topics that other nodes of a cluster host. Belongs to the event loop's thread.

    Args:
        node: the node that is asked.
    """

    def __init__(self, node: ClusterNode) -> None:
        self._node = node
        self._shards = node.replica.shards

    def __repr__(self) -> str:
        return f"<RemoteTopics of {self._node!r}>"

    def find(self, topic_id: int) -> CatalogEntry | None:
        """Return a topic that exists and belongs to a shard that this node does not host."""
        entry = self._shards[0].state.catalog.topics.get(topic_id)
        return None if entry is None or entry.shard in self._shards else entry

    def check(self, topic_id: int) -> None:
        """Refuse a topic that another node hosts, and name that node.

        Raises:
            Refusal: another node hosts it.
        """
        entry = self.find(topic_id)
        if entry is not None:
            raise self._refusal(topic_id, entry)

    def check_name(self, name: str) -> None:
        """Refuse the topic with a name likewise.

        Raises:
            Refusal: another node hosts it.
        """
        topic_id = self._shards[0].state.catalog.id_of(name)
        if topic_id is not None:
            self.check(topic_id)

    def infos(self) -> list[TopicInfo]:
        """Return what the list of topics tells of them, by id."""
        topics = dict(self._shards[0].state.catalog.topics)  # another thread applies
        return [
            TopicInfo(
                id=topic_id,
                name=entry.name,
                created_at=entry.created_at,
                topic_epoch=entry.topic_epoch,
            )
            for topic_id, entry in sorted(topics.items())
            if entry.shard not in self._shards
        ]

    def host_of(self, topic_id: int) -> Address | None:
        """Return where a live host of a topic's shard is; None where this node is one, or none is.

        All nodes that know the same name the same host, and topics are spread over the hosts.
        """
        entry = self.find(topic_id)
        return None if entry is None else self._host(topic_id, entry.shard)

    def _host(self, topic_id: int, shard: int) -> Address | None:
        peers = self._node.peers
        if not peers.knows_own_shards():
            return None
        nodes, applied = peers.all(), dict[int, int]()
        for number in peers.hosts(shard):
            for each in nodes[number].status.positions:
                if each.shard == shard:
                    applied[number] = each.applied
        furthest = max(applied.values(), default=0)
        hosts = [key for key, end in applied.items() if furthest - end <= _MOST_BEHIND]
        if not hosts:
            return None
        return Address.parse(nodes[hosts[topic_id % len(hosts)]].status.address)

    def _refusal(self, topic_id: int, entry: CatalogEntry) -> Refusal:
        host, shard = self._host(topic_id, entry.shard), entry.shard
        if host is not None:
            return not_leader(
                str(host),
                f"This node does not host shard {shard}, to which topic '{entry.name}' belongs; "
                f"the node at {host} does",
            )
        if self._node.peers.knows_own_shards():
            words = f"no live node hosts shard {shard}, to which topic '{entry.name}' belongs"
        else:
            words = "this node has not told the cluster yet which shards it hosts"
        return Refusal(
            ErrorCode.CLUSTER_NOT_READY,
            f"Nothing was done: {words}; try again",
            ends_connection=True,
        )
