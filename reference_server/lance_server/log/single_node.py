"""Answers of a single server's log where a node of a cluster asks other nodes."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from lance_server.runtime.completion import Completion
from lance_spec.bodies import TopicInfo

if TYPE_CHECKING:
    from lance_server.config.settings import Address


class SingleNode:
    """A log that no other node shares."""

    def remote_topics(self) -> list[TopicInfo]:
        """Return the topics that only other nodes of a cluster serve, by id."""
        return []

    def remote_name(self, topic_id: int) -> str | None:
        """Return the name of a topic that only other nodes of a cluster serve, or None."""
        del topic_id
        return None

    def host_of(self, topic_id: int) -> "Address | None":
        """Return the node to which requests for a topic are forwarded; None: they are served here.

        A topic that another node serves, and to which nothing is forwarded, `topic` refuses.
        """
        del topic_id
        return None

    @property
    def forwards(self) -> bool:
        """Whether there may be topics whose requests are forwarded."""
        return False

    def catch_up(self) -> Completion[bool] | None:
        """Return what is settled when all that was acknowledged is known here; None: it is.

        It is False where that cannot be found out.
        """
        return None

    def on_dismissal(self, dismiss: Callable[[], object]) -> None:
        """Call something once clients are better served elsewhere; never by a single server."""
        del dismiss

    @property
    def is_replicated(self) -> bool:
        """Whether nodes of a cluster share this log: what stands beside it stays on this node."""
        return False

    @property
    def is_linear(self) -> bool:
        """Whether a read waits for `read_barrier` first: a single server knows all there is."""
        return False

    def read_barrier(self) -> Completion[None]:
        """Return what is settled when all that was acknowledged before this call is known here."""
        known: Completion[None] = Completion()
        known.settle(None)
        return known

    def cluster_facts(self) -> dict[str, Any]:
        """Return what GetClusterStatus tells beside a single server's facts: nothing."""
        return {}

    def unready_reasons(self) -> list[str]:
        """Return why batches are not stored now, beside what the disk says: there is nothing."""
        return []
