"""Planted faults of connections, sessions, memory and listeners, each of which is to be found."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from tests.simulation.mutants import Mutant, Patch, Search, always, nothing
from tests.simulation.server.plan import make_plan
from tests.simulation.server.run import carry_out

from lance_server.listeners.fluvio import produce as fluvio_produce
from lance_server.listeners.qwp import session as qwp_session
from lance_server.listeners.rustlog import service as rustlog_service
from lance_server.lwp import connection, ingest, pending_requests, push, session
from lance_server.lwp import response_queue as responses
from lance_server.lwp.flow_control import heartbeat, throttle
from lance_server.network import connection_manager, fairness
from lance_server.runtime import completion, memory_quota

SERVER: Final = Search(make_plan, carry_out, Path(__file__).with_name("matrix.json"))


def _not_given_back(right: Any) -> Callable[..., Any]:
    """Return an end of a connection that keeps its account."""

    def connection_lost(self: Any, exc: Exception | None) -> None:
        account, self._held_memory = self._held_memory, memory_quota.HeldMemory(self._memory)
        right(self, exc)
        self._held_memory = account

    return connection_lost


def _reserve_kept(_: Any) -> Callable[..., Any]:
    def end(self: Any, reserved: int, size: int) -> None:
        del reserved
        self._bucket.take(size)

    return end


def _requested_kept(right: Any) -> Callable[..., Any]:
    """Return a note of what is held that forgets requests where nothing is held any more."""

    def update(self: Any, size: int, idle: int = 0) -> None:
        right(self, size, idle if size else self.idle)

    return update


def _fits_only(_: Any) -> Callable[..., Any]:
    return lambda self, size: self.used + size <= self._high


def _wants_any_number(_: Any) -> Any:
    """Return whether a session wants data, however many requests wait."""

    def wants_data(self: Any) -> bool:
        open_to_more = self.closing is None and not self._ending and self.writable
        return bool(open_to_more and self._owed_bytes < self._config.max_unacked_bytes)

    return property(wants_data)


def _batches_count_as_answers(right: Any) -> Callable[..., Any]:
    """Return a keeping of accounts in which what is known of batches is about to be given back."""

    def keep_account(self: Any) -> None:
        right(self)
        account = self._held_memory
        account.update(account.size, account.idle - self.session.remembered_bytes)

    return keep_account


def _head_of_line(_: Any) -> Callable[..., Any]:
    """Return a serving of waiters that lets one that does not ask keep the others waiting."""

    def serve_waiters(self: Any) -> None:
        for waiter, size in list(self._waiters.items()):
            if not self._fits(size):
                break
            waiter()
            if waiter in self._waiters:
                break

    return serve_waiters


def _asks_aside(right: Any) -> Callable[..., Any]:
    """Return a question for memory whose yes leaves the one who asks among the waiters."""

    def may_hold(self: Any, size: int, waiter: Any) -> bool:
        small = size <= memory_quota._FEW and self.used < self._critical
        return small or bool(right(self, size, waiter))

    return may_hold


def _sent_twice(right: Any) -> Callable[..., Any]:
    def settle(self: Any, command: Any, dialect: Any) -> None:
        right(self, command, dialect)
        if self.waiting and len(self._ready) == 1:
            self.send(self._ready[0])

    return settle


def _unwatched(right: Any) -> Callable[..., Any]:
    """Return a look at the time that leaves closed connections alone."""

    def tick(self: Any, now: float) -> None:
        if not self._is_gone():
            right(self, now)

    return tick


def _at_once(_: Any) -> Callable[..., Any]:
    async def step(_: Any) -> None:
        """Let nobody else have a turn."""

    return step


def _one_woken(right: Any) -> Callable[..., Any]:
    """Return an end of a wait that forgets all sessions but the first."""

    def decide(self: Any, *outcome: Any, **error: Any) -> Any:
        return dict(list(right(self, *outcome, **error).items())[:1])

    return decide


def _borrowed(_: Any) -> Callable[..., Any]:
    """Return a keeping of requests that does not copy what stands in the shared buffer."""

    def kept(self: Any, frame: Any) -> Any:
        self.size += pending_requests.cost(frame)
        return frame

    return kept


def _acked_early(right: Any) -> Callable[..., Any]:
    def add_batches(self: Any, outcome: Any, ids: Any, cost: int, now: float) -> None:
        del outcome
        settled: completion.Completion[None] = completion.Completion()
        settled.settle(None)
        right(self, settled, ids, cost, now)

    return add_batches


def _only_pauses(right: Any) -> Callable[..., Any]:
    def set_reading(self: Any, wanted: bool) -> None:
        if not wanted or self._linger_until is not None:
            right(self, wanted)

    return set_reading


def _stays_blocked(right: Any) -> Callable[..., Any]:
    def resume_writing(self: Any) -> None:
        right(self)
        self.session.writable = False

    return resume_writing


def _counts_on(_: Any) -> Callable[..., Any]:
    """Return a farewell that leaves a connection among those that are served."""

    def forget(self: Any, each: Any) -> None:
        self._rejected.pop(each, None)

    return forget


def _pushed_again(right: Any) -> Callable[..., Any]:
    """Return a push that begins at the same place now and then."""

    def next_push(self: Any, dialect: Any, now: float) -> Any:
        before = {topic: each.cursor for topic, each in self.by_topic.items()}
        answer = right(self, dialect, now)
        for topic, each in self.by_topic.items():
            if topic in before and each.cursor - before[topic] > 300:
                each.cursor = before[topic]
        return answer

    return next_push


def _goes_on_once(_: Any) -> Callable[..., Any]:
    return lambda self: self.wake()


def _unsettled(_: Any) -> Callable[..., Any]:
    async def settled(_: Any) -> None:
        """Wait for nothing."""

    return settled


def _of_others(right: Any) -> Callable[..., Any]:
    """Return a taking of answers that gives one connection what another one is owed."""
    kept: list[Any] = []

    def take_ready(self: Any) -> list[Any]:
        answers: list[Any] = right(self)
        if len(answers) == 3:
            kept.append(answers.pop())
        elif kept and len(answers) == 2:
            answers.append(kept.pop())
        return answers

    return take_ready


SERVER_MUTANTS: Final = (
    Mutant("requests that wait for memory wait for what other requests hold",
           (Patch(memory_quota.MemoryBudget, "_fits", _fits_only),
            Patch(session.Session, "wants_data", _wants_any_number),
            Patch(connection.Connection, "_look_for_end", nothing))),
    Mutant("a read waits for what is known of earlier batches",
           (Patch(connection.Connection, "_keep_account", _batches_count_as_answers),)),
    Mutant("one that does not wait any more keeps others waiting for memory",
           (Patch(memory_quota.MemoryBudget, "serve_waiters", _head_of_line),
            Patch(memory_quota.MemoryBudget, "may_hold", _asks_aside))),
    Mutant("idle producers keep what they know while memory is short",
           (Patch(ingest.Ingest, "give_back", nothing),)),
    Mutant("answers that were not taken are left to a closed connection",
           (Patch(connection.Connection, "tick", _unwatched),)),
    Mutant("a listener serves a pipeline to its end in one turn",
           (Patch(fairness.WorkSlice, "take", nothing),)),
    Mutant("the other listeners serve a pipeline to its end in one turn",
           (Patch(fairness.WorkSlice, "step", _at_once),), ("others",)),
    Mutant("the other listeners never give memory back",
           (Patch(memory_quota.HeldQuota, "release", nothing),), ("others",)),
    Mutant("rows of QWP are acknowledged before they are stored",
           (Patch(qwp_session, "settled", _unsettled),), ("others",)),
    Mutant("records of RustLog are acknowledged before they are stored",
           (Patch(rustlog_service, "settled", _unsettled),), ("others",)),
    Mutant("records of Fluvio are acknowledged before they are stored",
           (Patch(fluvio_produce, "settled", _unsettled),), ("others",)),
    Mutant("memory of a connection is not given back at its end",
           (Patch(connection.Connection, "connection_lost", _not_given_back),
            Patch(connection.Connection, "abort", lambda _: lambda self: self._transport.abort()))),
    Mutant("memory set aside for an answer is not given back",
           (Patch(throttle.ReadGate, "end", _reserve_kept),)),
    Mutant("what requests hold is not given back at the end",
           (Patch(memory_quota.HeldMemory, "update", _requested_kept),)),
    Mutant("who waited for memory and left is waited for",
           (Patch(memory_quota.MemoryBudget, "forget", nothing),
            Patch(memory_quota.MemoryBudget, "serve_waiters", _head_of_line))),
    Mutant("an answer is sent twice",
           (Patch(responses.ResponseQueue, "_settle_command", _sent_twice),)),
    Mutant("an answer goes to another connection",
           (Patch(responses.ResponseQueue, "take_ready", _of_others),)),
    Mutant("a flush forgets all sessions but one",
           (Patch(completion.Completion, "decide", _one_woken),)),
    Mutant("a request that waits is not copied from the shared buffer",
           (Patch(pending_requests.PendingRequests, "_kept", _borrowed),)),
    Mutant("batches are acknowledged before they are stored",
           (Patch(responses.ResponseQueue, "add_batches", _acked_early),)),
    Mutant("requests are carried out before their turn",
           (Patch(session.Session, "_joins_commits", always(value=True)),)),
    Mutant("a peer that takes nothing is never let go",
           (Patch(connection.Connection, "_is_stuck", always(value=False)),
            Patch(connection.Connection, "stalled_for", always(0.0)))),
    Mutant("a peer that says nothing is never let go",
           (Patch(session.Session, "_close_if_idle", nothing),)),
    Mutant("a connection that was not read is never read again",
           (Patch(connection.Connection, "_set_reading", _only_pauses),)),
    Mutant("a connection that was slow gets no more answers",
           (Patch(connection.Connection, "resume_writing", _stays_blocked),)),
    Mutant("connections that ended count among those that are served",
           (Patch(connection_manager.ConnectionManager, "forget", _counts_on),)),
    Mutant("records are pushed twice", (Patch(push.Subscriptions, "next_push", _pushed_again),)),
    Mutant("a subscription is kept after its connection",
           (Patch(push.Subscriptions, "clear", nothing),)),
    Mutant("who has used up a turn gets no other one",
           (Patch(connection.Connection, "_go_on", _goes_on_once),)),
    Mutant("late keepalives are never answered",
           (Patch(heartbeat.KeepaliveGate, "due", always(0)),)),
    Mutant("a batch that is sent again on another connection is stored again",
           (Patch(ingest.Ingest, "_find", nothing),)),
)  # fmt: skip
