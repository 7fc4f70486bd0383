"""Faults that are planted, to see whether the search finds them.

Each is a mistake that somebody could make, or made: those of the first release among them.
"""

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final
from unittest.mock import patch

from lance_sdk._api.commit_policy import CommitPlan
from lance_sdk._errors.base import LanceError
from lance_sdk._protocol.events import OffloadedTask
from lance_sdk._protocol.produce import sender as sender_module
from lance_sdk._protocol.produce.delivery_failures import FailureLog
from lance_sdk._protocol.produce.sender import Sender
from lance_sdk.offsets import Commit, MemoryStore, TopicIdentity

_lost, _send, _make, _pending = Sender.lost, Sender._send, CommitPlan.make, CommitPlan.pending
_expired, _requeue = sender_module.expired, Sender._requeue


def _run_strictly(task: OffloadedTask) -> tuple[Any, LanceError | None]:
    try:
        return task.work(), None
    except LanceError as error:
        return None, error


def _without_reason(*arguments: Any, **keywords: Any) -> Any:
    failure = _expired(*arguments, **keywords)
    failure.__cause__ = None
    return failure


def _forgetful(sender: Sender, now: float) -> None:
    sender._in_flight.clear()
    _lost(sender, now)


def _backwards(sender: Sender, batches: Any) -> None:
    _requeue(sender, batches)
    sender._again = deque(reversed(sender._again))


def _new_identity(sender: Sender, batch: Any, connection: Any, now: float) -> None:
    if batch.batch_id and batch.attempts:
        sender._counter += 1
        batch.batch_id = sender._nonce | sender._counter
    _send(sender, batch, connection, now)


def _silently(sender: Sender, topic: Any) -> None:
    sender._topic_id = topic.id


def _one_too_far(plan: CommitPlan, offset: int) -> Commit:
    made = _make(plan, offset)
    return replace(made, offset=made.offset + 13, fingerprint=None)


def _end_not_committed(plan: CommitPlan, *, failed: bool = False) -> int | None:
    return None if plan._cursor.position is None else _pending(plan, failed=failed)


def _unlocked(store: MemoryStore, consumer: str, topic: TopicIdentity, generation: int = 0) -> Any:
    del generation
    return store._commits.get((consumer, topic.label))


PLANTED: Final[dict[str, tuple[Any, str, Any]]] = {
    "L4: the end is looked for by every consumer": (CommitPlan, "pending", _end_not_committed),
    "L6: an error of the journal's disk ends the driver": (OffloadedTask, "run", _run_strictly),
    "L10: an attempt without an answer is forgotten": (
        Sender,
        "_leave_unanswered",
        lambda _: None,
    ),
    "L11: a batch expires and nobody says why": (sender_module, "expired", _without_reason),
    "L13: flush says nothing of what failed before": (FailureLog, "take_unseen", lambda _: None),
    "L13: records go into a topic created again without a word": (Sender, "_use_topic", _silently),
    "L13: two consumers of one name are let in": (MemoryStore, "claim", _unlocked),
    "a lost connection forgets what it carried": (Sender, "lost", _forgetful),
    "what is sent again is sent backwards": (Sender, "_requeue", _backwards),
    "what is sent again gets another number": (Sender, "_send", _new_identity),
    "a commit is one record too far": (CommitPlan, "make", _one_too_far),
}
"""By what it does, what is patched."""


@contextmanager
def planted(name: str) -> Iterator[None]:
    """Plant a fault."""
    owner, attribute, value = PLANTED[name]
    with patch.object(owner, attribute, value):
        yield
