"""Limits of a coordinator, and how it refuses requests."""

from dataclasses import dataclass

from lance_sdk._errors.base import LanceError
from lance_spec.messages.groups import GroupErrorCode


class Refusal(LanceError):  # noqa: N818 - it says what happened
    """A request that the coordinator refuses; it becomes a GroupError.

    Attributes:
        code: why.
    """

    def __init__(self, code: GroupErrorCode, message: str) -> None:
        self.code = code
        super().__init__(message)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much a coordinator takes in; what is over is refused, nothing else suffers.

    Attributes:
        groups: at most.
        members: of one group.
        topics: of one group.
        connections: at once.
        request_bytes: payload of one request.
        min_session_timeout: seconds; a shorter one is raised to it.
        max_session_timeout: seconds; a longer one is cut to it.
        max_rebalance_timeout: seconds; a longer one is cut to it.
    """

    groups: int = 1000
    members: int = 256
    topics: int = 4096
    connections: int = 1024
    request_bytes: int = 1024 * 1024
    min_session_timeout: float = 0.05
    max_session_timeout: float = 3600.0
    max_rebalance_timeout: float = 3600.0

    def exceeded(self, what: str, most: int) -> Refusal:
        """Return the refusal of one too many."""
        return Refusal(GroupErrorCode.LIMIT_EXCEEDED, f"there are {most} {what} already")

    def session_timeout(self, milliseconds: int) -> float:
        """Return the session timeout that a member gets for the one that it asks for."""
        return min(max(milliseconds / 1000, self.min_session_timeout), self.max_session_timeout)

    def rebalance_timeout(self, milliseconds: int) -> float:
        """Return the rebalance timeout that a member gets for the one that it asks for."""
        return min(milliseconds / 1000, self.max_rebalance_timeout)
