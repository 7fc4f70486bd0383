"""Leaving shards: a node that hosts a shard no more keeps its files until two others have them."""

import logging
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Final

from lance_server.cluster.applying.replica import Replica
from lance_server.cluster.node_options import NodeOptions
from lance_server.cluster.peers import FEWEST_HOSTS, Peers
from lance_server.cluster.records import encode
from lance_server.cluster.replicated_log import AppendError, LogUnavailableError, ReplicatedLog
from lance_server.runtime.scheduling import Job
from lance_spec.messages.replication import HostLeaves

_log = logging.getLogger(__name__)
_AGAIN: Final = 10.0
"""Seconds after which a HostLeaves that was not reported is sent again."""


class ShardLeaver:
    """Leaves the shards whose files a node has and which it hosts no more.

    Until it has left a shard, the node counts as one of its hosts, so the log keeps what follows
    its files. It leaves once two other live nodes host the shard and have made durable all that it
    has: however many nodes leave at once, two keep their files. The node's own status, without the
    shard, must have been applied first: of several that leave, a later one sees it.

    Args:
        options: what the node is told.
        log: the replicated log.
        replica: the node's data.
        peers: what it knows of the others.
        post: runs a job on the loop's thread; any thread may call it.
    """

    def __init__(
        self,
        options: NodeOptions,
        log: ReplicatedLog,
        replica: Replica,
        peers: Peers,
        post: Callable[[Job], object],
    ) -> None:
        self._options = options
        self._log = log
        self._replica = replica
        self._peers = peers
        self._post = post
        self._waiting = dict.fromkeys(replica.left, 0.0)
        self._to_drop: deque[int] = deque()
        for number in replica.left:
            _log.warning(
                "node %d does not host shard %d any more; it keeps its files until %d other nodes "
                "have them",
                options.node_id,
                number,
                FEWEST_HOSTS,
            )

    def __repr__(self) -> str:
        return f"<ShardLeaver of {sorted(self._waiting)}>"

    def look(self, now: float) -> None:
        """Leave what may be left (the loop's thread).

        Args:
            now: the loop's time in seconds.
        """
        for number, again in list(self._waiting.items()):
            if now >= again and self._may_leave(number):
                self._waiting[number] = now + _AGAIN
                self._leave(number)

    def _may_leave(self, number: int) -> bool:
        if not self._peers.knows_own_shards():
            return False
        needed, own = self._replica.left[number].state.position, self._options.node_id
        durable = self._peers.durable(number)
        others = [host for host in self._peers.hosts(number) if host != own]
        return sum(durable[host] >= needed for host in others) >= FEWEST_HOSTS

    def _leave(self, number: int) -> None:
        body = HostLeaves(node_id=self._options.node_id, shard=number)
        record = encode(body, self._options.process, 0)  # nobody waits for what comes of it
        try:
            self._log.append(number, record, partial(self._report, number))
        except LogUnavailableError:
            return  # it is tried again

    def _report(self, number: int, end: int | AppendError) -> None:
        """Take the log's report (any thread)."""
        if not isinstance(end, AppendError):
            self._post(partial(self._left, number))

    def _left(self, number: int) -> None:
        if self._waiting.pop(number, None) is not None:
            self._to_drop.append(number)

    def drop(self) -> None:
        """Remove the files of the shards that were left (the thread that applies).

        Raises:
            OSError: the disk refused.
        """
        while self._to_drop:
            number = self._to_drop.popleft()
            self._replica.drop(number)
            _log.info("node %d has left shard %d", self._options.node_id, number)
