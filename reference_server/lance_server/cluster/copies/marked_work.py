"""Work on a node's data that is done while all files are as a mark says."""

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from lance_server.cluster.applying.replica import Replica
from lance_server.runtime.completion import Completion


class _Waiting(NamedTuple):
    work: Callable[[Replica], None]
    outcome: Completion[None]


class MarkedWork:
    """What waits for a mark, and what came of it.

    It is asked for and settled on the event loop's thread, and done on the node's worker thread,
    never both at once.
    """

    def __init__(self) -> None:
        self._waiting: deque[_Waiting] = deque()
        self._done: list[tuple[Completion[None], Exception | None]] = []

    def __repr__(self) -> str:
        return f"<MarkedWork: {len(self._waiting)} wait>"

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def ask(self, work: Callable[[Replica], None]) -> Completion[None]:
        """Have work done at the next mark; what it raises, the completion fails with."""
        outcome: Completion[None] = Completion()
        self._waiting.append(_Waiting(work, outcome))
        return outcome

    def do(self, replica: Replica) -> None:
        """Do what waits; the files are as a mark says (worker thread)."""
        while self._waiting:
            each = self._waiting.popleft()
            error: Exception | None = None
            try:
                each.work(replica)
            except Exception as failed:  # noqa: BLE001 - it is told to whoever asked
                error = failed
            self._done.append((each.outcome, error))

    def settle(self) -> None:
        """Tell what came of what was done."""
        done, self._done = self._done, []
        for outcome, error in done:
            if error is None:
                outcome.settle(None)
            else:
                outcome.fail(error)

    def fail(self, error: Exception) -> None:
        """Tell that what still waits will not be done."""
        while self._waiting:
            self._waiting.popleft().outcome.fail(error)
