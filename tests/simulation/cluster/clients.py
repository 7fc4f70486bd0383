"""Clients of the simulation: what they want stored, and what came of it."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lance_server.runtime.completion import Completion

if TYPE_CHECKING:
    from tests.simulation.cluster.hosts import Host


@dataclass(slots=True)
class Sent:
    """A batch that a client wants stored.

    Attributes:
        number: among the client's.
        data: its bytes.
        state: ``new``, ``sent`` or ``acked``.
        attempt: the last completion.
        process: of the node that was asked.
        via: the node to which that one forwarded it, and its process; None for none.
    """

    number: int
    data: bytes
    state: str = "new"
    attempt: Completion[None] | None = None
    process: int = 0
    via: "tuple[Host, int] | None" = None

    @property
    def is_cut_off(self) -> bool:
        """Whether the node to which it was forwarded is gone."""
        return self.via is not None and (not self.via[0].alive or self.via[0].starts != self.via[1])


@dataclass(slots=True)
class Client:
    """A producer with ids of its own; it repeats what fails, in order, at any node.

    Attributes:
        nonce: of its ids.
        topic_id: where it writes.
        host: the node that it talks to.
        batches: what it wants stored.
        failed: whether anything ever failed.
        committed: the highest offset that was acknowledged as committed, or -1.
        committing: the offset of a commit that is on its way, or None.
        commit_at: the node that was asked, and its process.
    """

    nonce: int
    topic_id: int
    host: "Host"
    batches: list[Sent] = field(default_factory=list)
    failed: bool = False
    committed: int = -1
    committing: int | None = None
    commit_at: "tuple[Host, int] | None" = None

    def batch_id(self, number: int) -> int:
        """Return the id of a batch."""
        return (self.nonce << 40) + number + 1
