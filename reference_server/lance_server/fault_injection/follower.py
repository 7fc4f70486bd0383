"""What a follower does with writes: refuse them, or hand them to the leader (design section 21)."""

from collections.abc import Callable
from typing import Final, Protocol

from lance_server.fault_injection.role import Role
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


class LeaderConnection(Protocol):
    """A way to the leader.

    Attributes:
        is_closed: whether it has come to its end.
    """

    is_closed: bool

    def forward(self, frame: Frame) -> Completion[Answer]:
        """Send a request on; the outcome is the leader's answer."""
        ...

    def close(self) -> None:
        """Give up; whoever still waits is told."""
        ...


class FollowerRole:
    """Judges the requests of one connection by the node's role.

    Args:
        role: the node's.
        authorizer: judges the client.
        open_way: opens a way to a leader.
    """

    def __init__(
        self,
        role: Role,
        authorizer: Authorizer,
        open_way: Callable[[Role, Dialect], LeaderConnection],
    ) -> None:
        self._role = role
        self._authorizer = authorizer
        self._open_way = open_way
        self._way: LeaderConnection | None = None
        self.held = 0

    def __repr__(self) -> str:
        return f"<FollowerRole {self._role} {self._way!r}>"

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
        if self._way is None or self._way.is_closed:
            self._way = self._open_way(self._role, dialect)
        outcome = self._way.forward(frame)
        size = cost(frame)
        self.held += size
        outcome.wake(lambda: self._let_go(size))
        return outcome

    def _let_go(self, size: int) -> None:
        self.held -= size

    def close(self) -> None:
        """Need the leader no more."""
        if self._way is not None:
            self._way.close()
