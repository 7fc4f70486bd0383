"""Writes at a simulated follower: refused, or forwarded to the leader (design section 21)."""

from typing import Final

from lance_server.fault_injection.role import Role
from lance_server.lwp.forwarding.node_connection import ConnectNode, NodeConnection
from lance_server.lwp.pending_requests import cost
from lance_server.lwp.responses import Answer
from lance_server.runtime.completion import Completion
from lance_server.security.access import Right
from lance_server.security.authorizer import Authorizer
from lance_spec.dialect import Dialect
from lance_spec.enums import Command
from lance_spec.frames import Frame, FrameKind

WRITES: Final = frozenset(
    {
        Command.CREATE_TOPIC,
        Command.CREATE_TOPIC_WITH_RETENTION,
        Command.DELETE_TOPIC,
        Command.SET_RETENTION,
    }
)
"""Commands that only a leader carries out (design section 21.3)."""


class FollowerRole:
    """Judges the requests of one connection by the node's role.

    Args:
        role: the node's.
        authorizer: judges the client.
        connect_node: opens a connection to the leader.
    """

    def __init__(
        self,
        role: Role,
        authorizer: Authorizer,
        connect_node: ConnectNode,
    ) -> None:
        self._role = role
        self._authorizer = authorizer
        self._connect_node = connect_node
        self._connection: NodeConnection | None = None
        self.held = 0

    def __repr__(self) -> str:
        return f"<FollowerRole {self._role} {self._connection!r}>"

    def concerns(self, frame: Frame) -> bool:
        """Whether this node does not carry out such a request itself."""
        if not self._role.is_follower:
            return False
        return frame.kind is FrameKind.INGEST or (
            frame.kind is FrameKind.CONTROL and frame.batch_id in WRITES
        )

    def take(self, frame: Frame, dialect: Dialect) -> Completion[Answer]:
        """Hand a write to the leader; the outcome is its answer.

        Raises:
            Refusal: this client may not write, or this node does not forward.
        """
        is_batch = frame.kind is FrameKind.INGEST
        self._authorizer.check(Right.WRITE if is_batch else Right.ADMIN, frame.topic_id)
        refusal = self._role.refusal()
        if refusal is not None:
            raise refusal
        if self._connection is None or self._connection.is_closed:
            assert self._role.leader is not None, "a role that forwards has a leader"
            self._connection = self._connect_node(self._role.leader, dialect, "the leader")
        outcome = self._connection.forward(frame)
        size = cost(frame)
        self.held += size
        outcome.wake(lambda: self._let_go(size))
        return outcome

    def _let_go(self, size: int) -> None:
        self.held -= size

    def close(self) -> None:
        """Need the leader no more."""
        if self._connection is not None:
            self._connection.close()
