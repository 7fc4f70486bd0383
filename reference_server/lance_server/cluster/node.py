"""A node: puts records into the log, applies all of them, and says what came of its own.

The node belongs to the event loop's thread. Reading, applying and marks run on one worker thread,
one step after the other; what a step changed is published on the loop before the next one begins.
"""

import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from operator import attrgetter
from typing import Any, Final, NamedTuple

from lance_server.cluster.applying.replica import Replica
from lance_server.cluster.applying.results import Applied, Result
from lance_server.cluster.applying.shard import Changes, Shard
from lance_server.cluster.copies.marked_work import MarkedWork
from lance_server.cluster.hosting.leaving import ShardLeaver
from lance_server.cluster.housekeeping import LogTrimmer, proposals
from lance_server.cluster.node_options import NodeOptions
from lance_server.cluster.peers import Peers, clock_skew
from lance_server.cluster.records import encode
from lance_server.cluster.refusals import as_refusal, clock_problem, maybe_applied, told_of
from lance_server.cluster.replicated_log import (
    AppendError,
    LogReplacedError,
    LogUnavailableError,
    ReplicatedLog,
    ReplicatedLogError,
    ShardReader,
    StopNodeError,
)
from lance_server.errors import ConfigError
from lance_server.lwp.refusals import Refusal
from lance_server.runtime.completion import Completion
from lance_server.runtime.scheduling import Job, Scheduler, Timer
from lance_spec.enums import ErrorCode
from lance_spec.messages.replication import HostJoins, NodeStatus, ShardPosition

_log = logging.getLogger(__name__)
POOL: Final = "cluster"
"""The pool whose one thread reads and applies."""
TRIM_POOL: Final = "cluster-trim"
"""The pool whose one thread trims the log, which may take brokers seconds."""
_SECOND: Final = 1_000_000_000
_STEP_BYTES: Final = 4 * 1024 * 1024
_WAIT: Final = 0.25
_RETRY: Final = 0.25
_TICK: Final = 0.25


@dataclass(slots=True)
class _Pending:
    """A record of this node that is not settled.

    Attributes:
        completion: what waits for it.
        size: bytes of the record.
        deadline: when it is given up, in the loop's seconds.
        delivered: whether the log's quorum has it.
        result: what came of it, once it is applied.
    """

    completion: Completion[Result]
    size: int
    deadline: float
    delivered: bool = False
    result: Result | None = None


class Step(NamedTuple):
    """What one step on the worker thread did.

    Attributes:
        applied: what came of each record.
        changes: what readers may see from now on, of each shard.
        proposals: what this node proposes to do with the topics, if it does the housekeeping.
        positions: how far each shard is.
        end: records that the log has in all shards; None where that was not asked.
        lost: why the log could not be read to the end of the step, or None.
    """

    applied: Sequence[Applied]
    changes: Sequence[Changes]
    proposals: Sequence[tuple[int, Any]]
    positions: Sequence[ShardPosition]
    end: int | None
    lost: ReplicatedLogError | None


@dataclass(slots=True)
class _Marking:
    """When marks are due; belongs to the worker thread."""

    bytes: int = 0
    last: float = 0.0


@dataclass(slots=True)
class NodeFigures:
    """What is counted of a node.

    Attributes:
        appended: records that it sent.
        applied: records that it applied.
        timed_out: records that were given up.
        steps: steps of the worker thread.
        behind: records that the log has and the node has not applied, as of the last step.
    """

    appended: int = 0
    applied: int = 0
    timed_out: int = 0
    steps: int = 0
    behind: int = 0


class ClusterNode:
    """One node of a cluster.

    Args:
        options: what it is told.
        log: the replicated log.
        replica: its data, opened.
        scheduler: the loop and its worker threads.
        clock: the wall clock in nanoseconds.
        now: the loop's time in seconds; any thread may ask.
        post: runs a job on the loop's thread; any thread may call it.
        publish: shows readers what changed; called on the loop's thread.

    Attributes:
        options: what it is told.
        replica: its data.
        peers: what it knows of the nodes.
        problem: why the node does not apply any more, or None.
        told: the same for operators and clients, with what to do.
        unavailable_since: when the log went out of reach, in the loop's seconds, or None.
        unreachable: what was wrong when the log could not be reached last.
        outstanding: bytes that were appended and not settled.
        figures: what is counted.
        on_break: called once the node has stopped applying.
    """

    def __init__(
        self,
        options: NodeOptions,
        log: ReplicatedLog,
        replica: Replica,
        *,
        scheduler: Scheduler,
        clock: Callable[[], int],
        now: Callable[[], float],
        post: Callable[[Job], object],
        publish: Callable[[Sequence[Changes]], None],
    ) -> None:
        self._log = log
        self._scheduler = scheduler
        self._clock = clock
        self._now = now
        self._post = post
        self._publish = publish
        self._pending: dict[int, _Pending] = {}
        self._counter = 0
        self._reader: ShardReader | None = None
        self._marking = _Marking(last=now())
        self._planned = now()
        self._is_stepping = False
        self._stopping: Completion[None] | None = None
        self._ticking: Timer | None = None
        self._next_status = 0.0
        self._own_status = -1
        self._target: int | None = None
        self._lags_since = -math.inf
        self._proposed: dict[Any, float] = {}
        self._marked_work = MarkedWork()
        self.peers = Peers(options, replica)
        self._leaver = ShardLeaver(options, log, replica, self.peers, post)
        self._trimmer = LogTrimmer(log, replica)
        self._held: list[ShardPosition] | None = None
        self.skew_ns = 0
        self.options = options
        self.replica = replica
        self.problem: Exception | None = None
        self.told = ""
        self.unavailable_since: float | None = None
        self.unreachable = ""
        self.outstanding = 0
        self.figures = NodeFigures()
        self.on_break: Callable[[], object] = lambda: None
        self._positions = [self._position(shard) for shard in replica.shards.values()]

    def __repr__(self) -> str:
        return f"<ClusterNode {self.options.node_id} of {self._log!r}: {self.replica!r}>"

    @property
    def shard_count(self) -> int:
        """How many shards the log has, hosted here or not."""
        return self._log.shards

    # Life --------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to apply."""
        self._step()
        self._tick()

    def stop(self) -> Completion[None]:
        """Stop applying and write a last mark; the completion fails where that was not possible.

        Records that are not settled by now fail as maybe applied.
        """
        if self._stopping is None:
            self._stopping = Completion()
            if self._ticking is not None:
                self._ticking.cancel()
            self._fail_pending("the node stops")
            if not self._is_stepping:
                self._finish()
        return self._stopping

    def _finish(self) -> None:
        assert self._stopping is not None, "it stops"
        self._fail_pending("the node stops")
        stopping = self._stopping
        if self.problem is not None:
            self._close()
            stopping.fail(self.problem)
            return
        finished = self._scheduler.run(POOL, self._mark_all)

        def end() -> None:
            self._close()
            if finished.error is not None:
                stopping.fail(finished.error)
            else:
                stopping.settle(None)

        finished.wake(end)

    def _close(self) -> None:
        if self._reader is not None:
            self._reader.close()
        self._log.close()

    def at_mark(self, work: Callable[[Replica], None]) -> Completion[None]:
        """Do work on the worker thread while all files are as a mark says, and nothing is applied.

        Args:
            work: gets the data. What it raises, the completion fails with.
        """
        if self.problem is not None or self._stopping is not None:
            outcome: Completion[None] = Completion()
            outcome.fail(ConfigError(f"the node does not apply: {self.told or 'it stops'}"))
            return outcome
        return self._marked_work.ask(work)

    def _fail_pending(self, reason: str) -> None:
        if not self._is_stepping:
            self._marked_work.fail(ConfigError(reason))
        pending, self._pending = self._pending, {}
        self.outstanding = 0
        for each in pending.values():
            each.completion.fail(maybe_applied(reason))

    # Proposing ---------------------------------------------------------------------------------

    def propose(self, shard: int, body: Any) -> Completion[Result]:
        """Put a record into the log; the completion is settled when it is applied here.

        It fails with a `Refusal`: QuorumNotReached where the record may be applied or not.
        """
        completion: Completion[Result] = Completion()
        if self.problem is not None or self._stopping is not None:
            completion.fail(self.refusal() or maybe_applied("the node stops"))
            return completion
        counter = self._counter = self._counter + 1
        record = encode(body, self.options.process, counter)
        deadline = self._now() + self.options.ack_timeout
        self._pending[counter] = _Pending(completion, len(record), deadline)
        self.outstanding += len(record)
        self.figures.appended += 1
        try:
            self._log.append(shard, record, partial(self._report, counter))
        except LogUnavailableError as error:
            self._drop(counter)
            completion.fail(Refusal(ErrorCode.QUORUM_NOT_REACHED, f"Nothing was stored: {error}"))
        return completion

    def _report(self, counter: int, end: int | AppendError) -> None:
        """Take the log's report of an append (any thread).

        The loop is not woken for a record that is not applied yet: the step that applies it is.
        """
        pending = self._pending.get(counter)
        if pending is None:
            return  # it was given up
        if not isinstance(end, AppendError):
            pending.delivered = True
            if pending.result is None:
                return
        self._post(partial(self._told, counter, end))

    def _drop(self, counter: int) -> _Pending | None:
        pending = self._pending.pop(counter, None)
        if pending is not None:
            self.outstanding -= pending.size
        return pending

    def _told(self, counter: int, end: int | AppendError) -> None:
        """Take the log's report of an append."""
        if isinstance(end, AppendError):
            pending = self._drop(counter)
            if pending is not None:
                pending.completion.fail(as_refusal(end))
            return
        if (known := self._pending.get(counter)) is not None:
            self._settle_if_done(counter, known)

    def _settle_if_done(self, counter: int, pending: _Pending) -> None:
        if pending.delivered and pending.result is not None:
            self._drop(counter)
            pending.completion.settle(pending.result)

    def _give_up_late(self) -> None:
        """Answer appends that the log has not reported in time, oldest first."""
        now = self._now()
        late = [key for key, each in self._pending.items() if each.deadline <= now]
        for counter in late:
            pending = self._drop(counter)
            assert pending is not None, "it was just listed"
            self.figures.timed_out += 1
            seconds = f"{self.options.ack_timeout:g} s"
            pending.completion.fail(maybe_applied(f"no quorum confirmed it within {seconds}"))

    def refusal(self) -> Refusal | None:
        """Return the answer to a write that cannot be taken now, or None."""
        if self.problem is not None:
            return Refusal(
                ErrorCode.CLUSTER_NOT_READY,
                f"This node has stopped applying: {self.told}; write to another node",
                ends_connection=True,
            )
        if (clock := clock_problem(self.skew_ns)) is not None:
            text = f"{clock}; write to another node"
            return Refusal(ErrorCode.CLUSTER_NOT_READY, text, ends_connection=True)
        if self.outstanding >= self.options.max_outstanding:
            return Refusal(
                ErrorCode.BACKPRESSURE,
                "Nothing was stored: the node waits for the log; slow down, then retry",
            )
        return None

    # Applying ----------------------------------------------------------------------------------

    def _step(self) -> None:
        if self.problem is not None:
            return
        self._is_stepping = True
        done = self._scheduler.run(POOL, self._work)
        done.wake(lambda: self._stepped(done))

    def _work(self) -> Step:
        """Mark, read and apply (worker thread).

        A mark comes first, so that nobody waits for it whose record is applied already.
        """
        is_due = self._mark_is_due()
        if is_due or self._marked_work:
            self._mark_all()
            self._marked_work.do(self.replica)
        self._leaver.drop()
        applied: list[Applied] = []
        proposed: list[tuple[int, Any]] = []
        lost: ReplicatedLogError | None = None
        end: int | None = None
        try:
            applied += self._apply_more()
            if is_due or not applied:
                end = sum(self._log.end(shard.number) for shard in self.replica.shards.values())
            if self._now() - self._planned >= self.options.housekeeping_seconds:
                self._planned = self._now()
                proposed = self._plan()
        except LogReplacedError:  # it was read to its end: only the nodes have its records now
            self._mark_all()
            raise
        except StopNodeError:
            raise
        except ReplicatedLogError as error:  # nothing is skipped by asking again
            lost = error
        changes = [shard.take_changes() for shard in self.replica.shards.values()]
        positions = [self._position(shard) for shard in self.replica.shards.values()]
        return Step(applied, changes, proposed, positions, end, lost)

    def _apply_more(self) -> list[Applied]:
        if self._reader is None:
            self._reader = self.replica.open_reader(self._log)
        entries = self._reader.read(_STEP_BYTES, _WAIT)
        self._marking.bytes += sum(len(entry.record) for entry in entries)
        applied: list[Applied] = []
        for number, several in groupby(entries, attrgetter("shard")):
            applied += self.replica.apply(number, list(several))
        return applied

    def _position(self, shard: Shard) -> ShardPosition:
        return ShardPosition(
            shard=shard.number,
            applied=shard.state.position,
            digest=shard.state.digest,
            durable=self.replica.durable(shard.number),
        )

    def _mark_is_due(self) -> bool:
        marking, options = self._marking, self.options
        return (
            marking.bytes >= options.mark_bytes
            or self._now() - marking.last >= options.mark_seconds
        )

    def _mark_all(self) -> None:
        for shard in self.replica.shards.values():
            self.replica.mark(shard.number)
            shard.index()
        self._marking.bytes, self._marking.last = 0, self._now()

    def _plan(self) -> list[tuple[int, Any]]:
        """Return what is to be proposed for the shards of which this node does the housekeeping."""
        own = self.options.node_id
        led = [number for number in self.replica.shards if self.peers.leader(number) == own]
        if self.options.trims:
            self._trimmer.plan(led)
        if clock_problem(self.skew_ns) is not None:
            return []
        return proposals(self.replica, led, self._clock(), self.options.segment_age_secs)

    def _stepped(self, done: Completion[Step]) -> None:
        self._is_stepping = False
        self._marked_work.settle()
        lost: ReplicatedLogError | None = None
        if done.error is not None:
            self._break(done.error)
        else:
            lost = done.result().lost
            self._take(done.result())
        if self._stopping is not None:
            self._finish()
        elif lost is not None:
            self._scheduler.call_later(_RETRY, self._step_again)
        else:
            self._step()

    def _lose_log(self, error: Exception) -> None:
        self.unreachable = str(error)
        if self.unavailable_since is None:
            self.unavailable_since = self._now()
            _log.warning("node %d: %s; reads go on", self.options.node_id, error)

    def _find_log(self) -> None:
        if self.unavailable_since is not None:
            _log.info("node %d reaches the log again", self.options.node_id)
            self.unavailable_since = None

    def _step_again(self) -> None:
        if self._stopping is None and not self._is_stepping:
            self._step()

    def _break(self, error: Exception) -> None:
        """Stop applying for good: never skip, never guess."""
        self.problem, self.told = error, told_of(error)
        _log.error("node %d stops applying: %s", self.options.node_id, self.told)
        self._fail_pending(f"the node stopped applying: {self.told}")
        self.on_break()

    def _take(self, step: Step) -> None:
        """Publish what a step did, then settle what waited for it."""
        if step.lost is not None:
            self._lose_log(step.lost)
        else:
            self._find_log()
        self._positions = list(step.positions)
        self.figures.steps += 1
        self.figures.applied += len(step.applied)
        if step.end is not None:
            self._note_end(step.end)
        self._publish(step.changes)
        for each in step.applied:
            if each.process == self.options.process:
                pending = self._pending.get(each.counter)
                if pending is not None:
                    pending.result = each.result
                    self._settle_if_done(each.counter, pending)
        self._look_at_nodes()
        for shard, body in step.proposals:
            self._propose_once(shard, body)
        if self._trimmer.begin():
            trimmed = self._scheduler.run(TRIM_POOL, self._trimmer.trim)
            trimmed.wake(lambda: self._trimmed(trimmed))

    def _trimmed(self, done: Completion[None]) -> None:
        if done.error is not None and self.problem is None and self._stopping is None:
            self._break(done.error)

    def _note_end(self, end: int) -> None:
        """Note where the log ends: the node lags until it has applied that much."""
        applied = sum(each.applied for each in self._positions)
        self.figures.behind = max(0, end - applied)
        if self._target is None and end > applied:
            self._target = end  # a node that starts lags from the beginning
        elif self._target is None or applied >= self._target:
            self._target = end
            self._lags_since = self._now() if end > applied else math.inf

    def _propose_once(self, shard: int, body: Any) -> None:
        """Propose housekeeping, but not again while an earlier proposal may be on its way."""
        key, now = (shard, body.encode()), self._now()
        if self._proposed.get(key, 0.0) > now:
            return
        self._proposed = {each: until for each, until in self._proposed.items() if until > now}
        self._proposed[key] = now + self.options.ack_timeout
        self.propose(shard, body)

    # Nodes -------------------------------------------------------------------------------------

    @property
    def pending(self) -> int:
        """Records that were appended and not settled."""
        return len(self._pending)

    @property
    def durability(self) -> str:
        """Which losses the log survives."""
        return self._log.durability()

    def _look_at_nodes(self) -> None:
        """Compare clocks; stop where a newer process has this number, or the logs differ."""
        told = self.peers.own()
        if told is None or self.problem is not None:
            return
        if told.process == self.options.process and told.position > self._own_status:
            self._own_status = told.position
            before = clock_problem(self.skew_ns)
            self.skew_ns = clock_skew(told.status.clock_ns, told.time_ns, self._clock())
            if before is None and (problem := clock_problem(self.skew_ns)) is not None:
                _log.warning("node %d: %s; it takes no writes", self.options.node_id, problem)
        if (different := self.peers.problem()) is not None:
            self._break(different)

    def _tick(self) -> None:
        self._give_up_late()
        if self.problem is None and self._now() >= self._next_status and self.has_genesis:
            self._next_status = self._now() + self.options.status_seconds
            self._tell_status()
        if self._stopping is None:
            self._ticking = self._scheduler.call_later(_TICK, self._tick)

    @property
    def has_genesis(self) -> bool:
        """Whether the log holds a cluster, as far as it is applied."""
        return self.replica.shards[0].state.settings is not None

    def _tell_status(self) -> None:
        options = self.options
        if self.unavailable_since is not None:
            return
        for shard in self.replica.shards.values():
            if options.node_id not in shard.state.hosts:
                self._propose_once(
                    shard.number, HostJoins(node_id=options.node_id, shard=shard.number)
                )
        self.propose(0, self.status())
        self._leaver.look(self._now())

    def status(self) -> NodeStatus:
        """Return what this node tells of itself."""
        return self.peers.status(self._clock(), self._held_positions())

    def hold_durable(self) -> None:
        """Tell the others from now on that no more is durable here than is by now.

        So the log keeps what follows a copy that is being handed out.
        """
        self._held = self._positions

    def release_durable(self) -> None:
        """Tell the others again how much is durable here."""
        self._held = None

    def _held_positions(self) -> list[ShardPosition]:
        if self._held is None:
            return self._positions
        return [
            replace(now, durable=min(now.durable, held.durable))
            for now, held in zip(self._positions, self._held, strict=True)
        ]

    @property
    def lags(self) -> bool:
        """Whether the node has been after the log for longer than it may."""
        return self._now() - self._lags_since > self.options.max_lag_secs
