"""The golden rules of a second node, which follows the first one (AMB-43)."""

from lance_conformance.server.golden.codec import Wire
from lance_conformance.server.golden.rules.groups import Groups
from lance_conformance.server.golden.state import Body, Refused, Replies

NOT_LEADER = 0x20
WRITES = frozenset({0x01, 0x02, 0x05, 0x06})
"""Commands that only a leader carries out."""


class Cluster(Groups):
    """Rules about nodes that follow. Every public method is a hook.

    Attributes:
        leader: Where the leader is; empty on the leader itself.
    """

    leader = ""

    def status_body(self) -> Body:
        """A follower knows who leads, and how many nodes there are."""
        body = super().status_body()
        if not self.leader:
            return body
        return {**body, "node_id": 1, "is_leader": False, "node_count": 2, "healthy_nodes": 2}

    def elsewhere(self, _frame: Wire, /) -> Replies:
        """A write is for the leader."""
        raise Refused(NOT_LEADER, f"NOT_LEADER: redirect to {self.leader}")

    def redirect(self, code: int, /) -> Body:
        """What NotLeader says about the leader."""
        return {"leader_addr": self.leader} if code == NOT_LEADER else {}
