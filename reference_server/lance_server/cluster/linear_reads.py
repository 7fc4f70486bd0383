"""Barriers of linear reads: a read waits until all that was acknowledged before it is applied."""

from lance_server.cluster.node import ClusterNode
from lance_server.log.partitioned_topics import wait_for_all
from lance_server.lwp.refusals import Refusal
from lance_server.runtime.completion import Completion
from lance_spec.enums import ErrorCode


class ReadBarriers:
    """Puts barriers into the log for reads; reads that come meanwhile share the next one.

    A read never joins a barrier that was handed to the log before the read came: what another
    node acknowledged in between may be after it. Belongs to the event loop's thread.

    Args:
        node: the node that is read from.
    """

    def __init__(self, node: ClusterNode) -> None:
        self._node = node
        self._under_way: Completion[None] | None = None
        self._next: Completion[None] | None = None

    def __repr__(self) -> str:
        return f"<ReadBarriers of {self._node!r}>"

    def wait(self) -> Completion[None]:
        """Return what is settled when a barrier that is appended from now on is applied here.

        It fails with a `Refusal` where the node cannot tell: nothing may be read then.
        """
        if self._under_way is None:
            return self._begin(Completion())
        if self._next is None:
            self._next = Completion()
        return self._next

    def _begin(self, outcome: Completion[None]) -> Completion[None]:
        node = self._node
        if not node.has_genesis:
            outcome.fail(
                Refusal(ErrorCode.CLUSTER_NOT_READY, "This node has not read the shared log yet")
            )
            return outcome
        self._under_way = outcome
        barriers = [node.propose(shard.number, None) for shard in node.replica.shards.values()]

        def end() -> None:
            failed = next((each.error for each in barriers if each.error is not None), None)
            self._end(outcome, failed)

        wait_for_all(barriers, end)
        return outcome

    def _end(self, outcome: Completion[None], failed: Exception | None) -> None:
        following, self._under_way, self._next = self._next, None, None
        if failed is None and following is not None:
            self._begin(following)
        if failed is None:
            outcome.settle(None)
            return
        refusal = _unknown(failed)
        for each in (outcome, following):
            if each is not None:
                each.fail(refusal)


def _unknown(error: Exception) -> Exception:
    """Say of a read what went wrong with its barrier."""
    if not isinstance(error, Refusal):
        return error
    return Refusal(
        error.code,
        "Nothing was read: this node cannot tell whether it has applied all that was "
        f"acknowledged ({error.message}); read from another node",
    )
