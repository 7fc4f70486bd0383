"""Roles that a node plays: leader, or simulated follower (AMB-43, design section 21)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lance_server.config.settings import Address
from lance_server.errors import ConfigError
from lance_server.http.json_body import JsonBody
from lance_server.lwp.refusals import Refusal, not_leader
from lance_spec.enums import ErrorCode


@dataclass(slots=True)
class Role:
    """The part this node plays.

    Attributes:
        is_follower: whether it refuses writes, or forwards them.
        leader: where the leader is, or None when that is not known.
        forwards: whether writes are handed on to the leader.
        behind: how many of the last bytes of each topic this node does not have yet.
    """

    is_follower: bool = False
    leader: Address | None = None
    forwards: bool = False
    behind: int = 0

    def __post_init__(self) -> None:
        if self.forwards and not (self.is_follower and self.leader):
            raise ConfigError("only a follower that knows its leader can forward to it")

    @classmethod
    def from_body(cls, body: Mapping[str, Any]) -> "Role":
        """Return the role that a request describes.

        Raises:
            ConfigError: it makes no sense; the message names the field.
        """
        fields = JsonBody("role", body, ("role", "leader", "forward", "behind"))
        leader = fields.text("leader")
        return cls(
            is_follower=fields.choice("role", ("leader", "follower")) == "follower",
            leader=None if leader is None else Address.parse(leader),
            forwards=fields.flag("forward"),
            behind=fields.whole("behind"),
        )

    def change_to(self, other: "Role") -> None:
        """Play another part from now on."""
        self.is_follower, self.leader = other.is_follower, other.leader
        self.forwards, self.behind = other.forwards, other.behind

    def to_body(self) -> dict[str, Any]:
        """Return what `from_body` takes."""
        return {
            "role": "follower" if self.is_follower else "leader",
            "leader": None if self.leader is None else str(self.leader),
            "forward": self.forwards,
            "behind": self.behind,
        }

    def refusal(self) -> Refusal | None:
        """Return the answer to a write, or None where it is served or forwarded."""
        if not self.is_follower or self.forwards:
            return None
        if self.leader is None:
            return Refusal(
                ErrorCode.LEADER_UNKNOWN,
                "This node is not the leader, and does not know which one is",
                text="NOT_LEADER: leader unknown",
            )
        return not_leader(str(self.leader), "Not leader - redirect to leader")

    def visible_end(self, start: int, end: int) -> int:
        """Return how far this node has a topic.

        Args:
            start: the first offset of the topic.
            end: the offset after its last byte.
        """
        return max(start, end - self.behind)
