"""One connection, without its socket: frames in, answers out, in order (AMB-28).

Ingest frames are stored as they come and answered when they are durable. A command is carried
out when everything before it has been answered, and what comes after it waits: the order of
receipt is the order of effects.
"""

from collections.abc import Callable
from typing import Any, Final

from lance_server.lwp.control import ControlHandler
from lance_server.lwp.fetch import FetchHandler
from lance_server.lwp.flow_control.heartbeat import Heartbeat
from lance_server.lwp.flow_control.stall_detector import StallDetector
from lance_server.lwp.flow_control.throttle import PostponedError, ReadGate, TokenBucket
from lance_server.lwp.forwarding.remote_requests import RemoteRequests
from lance_server.lwp.frame_refusals import (
    ambiguous,
    batch_of,
    encrypted,
    is_encrypted,
    no_kind,
    too_large,
)
from lance_server.lwp.ingest import Ingest
from lance_server.lwp.pending_requests import FRAME_COST, MOST_QUEUED, PendingRequests, cost
from lance_server.lwp.push import Subscriptions
from lance_server.lwp.refusals import Refusal
from lance_server.lwp.response_queue import ResponseQueue
from lance_server.lwp.responses import Answer, error_frame
from lance_server.lwp.service import Service
from lance_server.network.fairness import SLICE_REQUESTS, WorkSlice
from lance_server.network.idle_timeout import IdleTimeout
from lance_server.runtime.completion import Completion
from lance_server.security.authorizer import Authorizer
from lance_server.security.tls import PeerIdentity
from lance_spec.checksum import Buffer
from lance_spec.dialect import Dialect
from lance_spec.enums import Command, ErrorCode, Flag
from lance_spec.frames import FaultKind, Frame, FrameKind, FrameSplitter

_CONTROL: Final = int(Flag.CONTROL)
_NO_TOPIC: Final = frozenset({ErrorCode.TOPIC_NOT_FOUND, ErrorCode.TOPIC_DELETED})
_READS: Final = frozenset(
    {
        Command.FETCH,
        Command.GET_TOPIC,
        Command.LIST_TOPICS,
        Command.OFFSET_FOR_TIME,
        Command.BATCH_TIMES,
        Command.SUBSCRIBE,
    }
)
"""Commands that tell what the log holds: they wait for a barrier where reads are linear."""
_COMMIT_OFFSET: Final = int(Command.COMMIT_OFFSET)


class Session:
    """The protocol state of one connection. It owns neither a clock nor a socket.

    Args:
        service: what all connections share.
        dialects: what the peer may speak.
        wake: called when `advance` may have something to do.
        now: the current time in seconds.

    Attributes:
        writable: whether the socket takes more; set by the connection.
        woken: whether something that was waited for has happened since `receive_data` last did
            what could be done; set by the connection.
        closing: why the connection is to be closed once `data_to_send` is written, or None.
    """

    def __init__(
        self,
        service: Service,
        dialects: tuple[Dialect, ...],
        *,
        wake: Callable[[], None],
        now: float,
    ) -> None:
        self._service = service
        self._config = service.config
        self._counters = service.counters
        self._flusher = service.engine.flusher
        self._dialects = dialects
        self._splitter = FrameSplitter(dialects)
        self._authorizer = Authorizer(service.security)
        self._reads = ReadGate(service.memory, TokenBucket(self._config.consumer_rate, now), wake)
        self._subscriptions = Subscriptions(service, self._authorizer, self._reads, wake)
        self._fetching, self._commands = self._handlers()
        self._ingest = Ingest(service, self._authorizer)
        self._remote = RemoteRequests(service.engine, self._reads, service.connect_node)
        self._answers = ResponseQueue(self._counters, wake)
        self._pending_requests = PendingRequests()
        self._slice = WorkSlice(service.work_clock)
        self._is_postponed = False
        self._engine, self._wake = service.engine, wake
        self._is_linear = service.engine.is_linear
        self._looked_up: Frame | None = None
        """A request that waits until this node has read the shared log: for a topic that it did
        not know, or a linear read."""
        self._lookup: Completion[Any] | None = None
        self._rejected: Refusal | None = None
        self._ending = False
        self._fault_seen = False
        self._idle_timeout = IdleTimeout(self._config.idle_timeout, now)
        self._stall_detector = StallDetector(now)
        self._heartbeat = Heartbeat(self._answers, self._counters, self._stall_detector, now)
        self.writable = True
        self.woken = False
        self.closing: str | None = None

    def __repr__(self) -> str:
        state = self.closing or ("ending" if self._ending else "open")
        return (
            f"<Session {state} dialect={self._splitter.dialect} {self._answers!r} "
            f"held={len(self._pending_requests)} owed={self._owed_bytes} bytes>"
        )

    def _handlers(self) -> tuple[FetchHandler, ControlHandler]:
        """Return the handlers of requests; a simulated role has others."""
        shared = (self._service, self._authorizer, self._subscriptions)
        fetching = FetchHandler(*shared, self._reads)
        return fetching, ControlHandler(*shared, fetching)

    def identify(self, client: PeerIdentity) -> None:
        """Note who TLS says is at the other end."""
        self._authorizer.client = client

    # What the owner of the socket asks ---------------------------------------------------------

    @property
    def owed(self) -> bool:
        """Whether the peer still waits for answers."""
        return bool(self._answers or self._pending_requests)

    @property
    def wants_data(self) -> bool:
        """Whether more may be read from the socket."""
        open_to_more = self.closing is None and not self._ending and self.writable
        return (
            open_to_more
            and self._owed_bytes < self._config.max_unacked_bytes
            and len(self._answers.waiting) + len(self._pending_requests.frames) < MOST_QUEUED
        )

    @property
    def yields(self) -> bool:
        """Whether it could go on, and lets others have their turn first: `advance` goes on."""
        if not self._slice.is_over or self.closing is not None or not self._has_room():
            return False
        return self._may_take_held() or bool(self._subscriptions.by_topic)

    @property
    def partial_bytes(self) -> int:
        """Bytes held of a frame that has not arrived whole."""
        return self._splitter.pending

    @property
    def request_bytes(self) -> int:
        """Bytes held of requests that are not being served yet."""
        return self._splitter.pending + self._pending_requests.size

    @property
    def remembered_bytes(self) -> int:
        """Bytes held of what is known of earlier batches."""
        return self._ingest.memory

    @property
    def other_bytes(self) -> int:
        """Bytes that this connection makes the server hold beside them, the log's excepted."""
        return self._answers.ready_bytes + self._reads.reserved

    @property
    def client(self) -> PeerIdentity:
        """Who TLS says is at the other end."""
        return self._authorizer.client

    @property
    def dialect(self) -> Dialect | None:
        """What the peer speaks, once it has said something."""
        return self._splitter.dialect

    @property
    def subscribed_topics(self) -> list[int]:
        """The topics that are pushed."""
        return self._subscriptions.topic_ids

    @property
    def unacked_batches(self) -> int:
        """Batches that were received and not acknowledged yet."""
        return self._answers.batches

    @property
    def _owed_bytes(self) -> int:
        return self._answers.owed_bytes + self._pending_requests.size

    def data_to_send(self) -> list[Answer]:
        """Return what is to be written now, and forget it."""
        answers = self._answers
        return answers.take_ready() if answers.ready_bytes else []

    # What happens ------------------------------------------------------------------------------

    def receive_data(self, data: Buffer, now: float) -> None:
        """Take bytes from the socket; they may be overwritten afterwards."""
        if not self._slice.is_over or not self.yields:  # else its next turn is due already
            self._slice.begin()
        frames = self._splitter.receive_data(data)
        if self._rejected is not None:
            self.close_with_rejection()
            return
        if not frames:
            self._idle_timeout.heard(len(data))
        else:
            self._idle_timeout.heard_frame(now)
            self._counters.frames_in += len(frames)
            answered = 0
            if frames[0].flags == _CONTROL and self._owes_nothing():
                self._stall_detector.begins(now)
                first = frames if len(frames) <= SLICE_REQUESTS else frames[:SLICE_REQUESTS]
                answered = self._fetching.fetch_plainly(first, self._dialect, self._answers)
                self._slice.take(answered)
            if answered < len(frames):
                self._ingest.begin(self._service.memory.level)
                self._take(frames, answered, now)
                now += self._flusher.flush_lone()
        if self._splitter.fault is not None and not self._fault_seen:
            self._on_fault(now)
        self.woken = False
        self.go_on(now)

    def end_of_stream(self, now: float) -> None:
        """Note that nothing more is read; what was received is still answered."""
        self._ending = True
        self.advance(now)

    def advance(self, now: float) -> None:
        """Make the answers ready that can be, and begin what waited for them: one slice of it."""
        self._slice.begin()
        self.go_on(now)

    def go_on(self, now: float) -> None:
        """Do what is left of this turn's slice."""
        self._is_postponed = self._lookup is not None and not self._lookup.done
        nothing_waits = not (self._answers.waiting or self._pending_requests.frames)
        if nothing_waits and not self._subscriptions.by_topic and not self._ending:
            return
        held, dialect = self._pending_requests, self._splitter.dialect
        while dialect is not None and self._splitter.proven:
            if self._collect(dialect, now):
                self._stall_detector.progresses(now)
            if self.closing is not None:
                return
            if not held.frames or self._slice.is_over or not self._has_room():
                break
            if not self._may_take_held():
                break
            self._ingest.begin(self._service.memory.level)
            self._take_held(held, now)
        if self._subscriptions.by_topic:
            self._push(now)
        if self._ending and not self.owed and self.closing is None:
            self._last_words()

    def _may_take_held(self) -> bool:
        """Whether a request waits whose turn it is; batches do not wait for acknowledgements."""
        frames, answers = self._pending_requests.frames, self._answers
        if not frames or self._is_postponed:
            return False
        if not answers.waiting:
            return True
        if frames[0].kind is FrameKind.INGEST:
            return not answers.command_running
        return self._joins_commits(frames[0])

    def _joins_commits(self, frame: Frame) -> bool:
        """Whether a request is a commit, and nothing waits before it but other commits."""
        is_commit = frame.flags == _CONTROL and frame.batch_id == _COMMIT_OFFSET
        return is_commit and self._answers.only_commits

    def tick(self, now: float) -> None:
        """Do what time alone brings about: late keepalives, stalls, the idle timeout."""
        if self._service.memory.is_short:
            self._ingest.give_back()
        if self._splitter.proven:
            if self._heartbeat.tick(self._dialect, now, pressure=bool(self._service.pressure)):
                for frame in self._pending_requests.take_all():
                    self._hold(frame, now)
            self._push(now)
        self._close_if_idle(now)

    def close(self, reason: str) -> None:
        """Stop serving; answers that are not ready are never sent."""
        if self.closing is None:
            self.closing = reason
        self._subscriptions.clear()
        self._commands.disconnect()
        self._reads.close()
        self._remote.close()
        self._answers.drop_waiting()
        self._splitter = FrameSplitter(self._dialects)  # the old one may hold megabytes
        self._pending_requests.clear()

    # Frames ------------------------------------------------------------------------------------

    def _owes_nothing(self) -> bool:
        """Whether a request may be answered at once: nothing waits before it."""
        return self.writable and not self._answers.waiting and not self._pending_requests.frames

    def _take(self, frames: list[Frame], position: int, now: float) -> None:
        """Take what one read brought; batches that go the same way go together."""
        answers, held, dialect = self._answers, self._pending_requests, self._dialect
        while position < len(frames):
            if held.frames or answers.command_running or self._slice.is_over:
                self._hold(frames[position], now)
            elif taken := self._take_together(frames, position, dialect, now):
                position += taken
                continue
            else:
                self._handle(frames[position], now)
            position += 1

    def _take_together(
        self, frames: list[Frame], position: int, dialect: Dialect, now: float
    ) -> int:
        """Take batches from a position on that can be judged together; return how many."""
        ingest, answers = self._ingest, self._answers
        run = ingest.accept_run(frames, position, dialect)
        if run is not None:
            outcome, ids, held_bytes = run
            self._stall_detector.produces(now, first=not answers.waiting)
            answers.add_batches(outcome, ids, held_bytes, now)
            self._slice.take()
            return len(ids)
        spread = ingest.accept_spread(frames, position, self._slice.left, dialect)
        if spread is None:
            return 0
        self._stall_detector.produces(now, first=not answers.waiting)
        answers.add_spread(spread.outcomes, spread.ids, spread.cost, now)
        self._slice.take(len(spread.ids))
        return len(spread.ids)

    def _take_held(self, held: PendingRequests, now: float) -> None:
        """Take the next of the requests that waited; batches that can be judged together."""
        if held.frames[0].kind is FrameKind.INGEST and len(held) > 1:
            frames = held.first(self._slice.left)
            if taken := self._take_together(frames, 0, self._dialect, now):
                held.drop(taken)
                return
        self._handle(held.take(), now)

    def _hold(self, frame: Frame, now: float) -> None:
        """Keep a frame until what came before it is done."""
        if frame.kind is FrameKind.KEEPALIVE and self._heartbeat.may_overtake(self._dialect):
            self._heartbeat.keepalive(self._dialect, now)
            return
        self._pending_requests.add(frame)

    def _handle(self, frame: Frame, now: float) -> None:
        self._slice.take()
        answers = self._answers
        if not answers.waiting:
            self._stall_detector.begins(now)
            may_fetch = frame.flags == _CONTROL and self._has_room()
            if may_fetch and self._fetching.fetch_plainly((frame,), self._dialect, answers):
                return
        kind = frame.kind
        if kind is FrameKind.INGEST:
            self._take_batch(frame, now)
        elif is_encrypted(frame, self._dialect):
            self._answers.add_error(self._dialect, encrypted(), None)
        elif kind is FrameKind.CONTROL:
            self._take_command(frame, now)
        elif kind is FrameKind.KEEPALIVE:
            self._heartbeat.keepalive(self._dialect, now)
        elif kind is FrameKind.AMBIGUOUS:
            self._answers.add_error(self._dialect, ambiguous(frame.flags), batch_of(frame))
        elif kind is FrameKind.NONE and frame.payload:
            self._answers.add_error(self._dialect, no_kind(), None)
        else:
            self._counters.ignored_frames += 1

    def _take_batch(self, frame: Frame, now: float) -> None:
        self._stall_detector.produces(now, first=False)
        if self._ingest.is_short:
            self._heartbeat.warn(self._dialect, now)
        host = self._remote.host_of_batch(frame)
        if host is not None:
            stored = self._remote.pass_batch(frame, self._dialect, host)
            self._answers.add_forwarded(stored, cost(frame), frame.batch_id)
            return
        try:
            outcome = self._ingest.accept(frame, self._dialect)
        except Refusal as refusal:
            said = self._looks_up(frame, refusal)
            if said is not None and said.ends_connection:
                refused: Completion[Answer] = Completion()
                refused.fail(said)
                self._answers.add_forwarded(refused, cost(frame), frame.batch_id)
            elif said is not None:
                self._answers.add_error(self._dialect, said, frame.batch_id)
            return
        if outcome is None:
            return
        self._answers.add_batches(outcome, (frame.batch_id,), cost(frame), now)

    def _collect(self, dialect: Dialect, now: float) -> bool:
        """Make ready what is decided; return whether there was any."""
        found = self._answers.collect(dialect, now)
        last = self._answers.last_refusal
        if last is not None:
            self.close(last.message)
        return found

    def _take_command(self, frame: Frame, now: float) -> None:
        self._collect(self._dialect, now)
        if self.closing is not None:
            return
        joins = self._joins_commits(frame)
        if (self._answers and not joins) or not self._has_room():
            self._hold(frame, now)
            return
        host = self._remote.host_of_command(frame, self._dialect)
        if host is None and self._is_linear and self._awaits_barrier(frame):
            return
        try:
            if host is not None:
                answer: Answer | Completion[Answer] = self._remote.pass_command(
                    frame, self._dialect, host
                )
            else:
                answer = self._commands.execute(frame, self._dialect, now)
        except PostponedError:
            self._postpone(frame)
            return
        except Refusal as refusal:
            if (said := self._looks_up(frame, refusal)) is not None:
                self._answers.add_error(self._dialect, said, None)
            return
        if self._authorizer.attempts_exhausted:
            self._ending = True
        if isinstance(answer, Completion):
            add = self._answers.add_commit if joins else self._answers.add_command
            add(answer, FRAME_COST)
        else:
            self._answers.send(answer)
            self._counters.answered += 1

    def _postpone(self, frame: Frame) -> None:
        """Keep a command, before all others, until there is memory for its answer."""
        self._is_postponed = True
        self._pending_requests.add_first(frame)

    def _looks_up(self, frame: Frame, refusal: Refusal) -> Refusal | None:
        """Keep a request for a topic that is not known until the node has read the shared log.

        A topic that another node has acknowledged is never said not to be there.

        Returns:
            The answer, or None where the request is kept.
        """
        if refusal.code not in _NO_TOPIC:
            self._looked_up = self._lookup = None
            return refusal
        lookup = self._lookup if self._looked_up is frame else self._engine.catch_up()
        if lookup is None:
            return refusal
        if lookup.done:
            self._looked_up = self._lookup = None
            known = lookup.error is None and lookup.result() is not False
            return refusal if known else _in_doubt(refusal)
        self._looked_up, self._lookup = frame, lookup
        self._postpone(frame)
        lookup.wake(self._wake)
        return None

    def _awaits_barrier(self, frame: Frame) -> bool:
        """Keep a read until the node has applied all that was acknowledged before it anywhere.

        Where the node cannot tell, the read is refused.
        """
        if frame.batch_id & 0xFF not in _READS:
            return False
        if self._looked_up is not frame or self._lookup is None:
            self._looked_up, self._lookup = frame, self._engine.read_barrier()
            self._postpone(frame)
            self._lookup.wake(self._wake)
            return True
        error = self._lookup.error
        if error is None:
            return False
        assert isinstance(error, Refusal), "a barrier fails with a refusal"
        self._looked_up = self._lookup = None
        self._answers.add_error(self._dialect, error, None)
        return True

    def _push(self, now: float) -> None:
        """Send subscribers what there is, as far as the socket takes it (AMB-21)."""
        while self._subscriptions and self.closing is None and self._has_room():
            if self._slice.is_over:
                break
            frame = self._subscriptions.next_push(self._dialect, now)
            if frame is None:
                break
            self._answers.send(frame)
            self._slice.take()

    @property
    def _dialect(self) -> Dialect:
        dialect = self._splitter.dialect
        assert dialect is not None, "a frame has arrived: its header proved a dialect"
        return dialect

    def _has_room(self) -> bool:
        return self.writable and self._answers.has_room

    # Time --------------------------------------------------------------------------------------

    def _close_if_idle(self, now: float) -> None:
        """Close when no frame arrives for too long after the last answer was taken."""
        if self.owed or self._heartbeat.owes_keepalives or not self.writable:
            self._idle_timeout.owes(now)
        if self.closing is not None or not self._idle_timeout.is_too_long(now):
            return
        self._counters.idle_closed += 1
        self.close(f"no frame for {self._idle_timeout.limit:g} s")

    # The end -----------------------------------------------------------------------------------

    def reject(self, refusal: Refusal) -> None:
        """Serve nothing; say why as soon as the peer's first header tells its dialect."""
        self._counters.connections_refused += 1
        self._rejected = refusal
        self.close_with_rejection()

    def close_with_rejection(self, dialect: Dialect | None = None) -> None:
        """Tell a peer that was turned away why, in its dialect or else in a given one."""
        spoken = self._splitter.dialect or dialect
        if self._rejected is not None and spoken is not None and self.closing is None:
            self._answers.send(error_frame(spoken, self._rejected))
            self.close(self._rejected.message)

    def close_with_error(self, refusal: Refusal) -> None:
        """Close, and say why if the peer's dialect is known."""
        if self.closing is None and self._splitter.dialect is not None:
            self._counters.errors += 1
            self._answers.send(error_frame(self._splitter.dialect, refusal))
        self.close(refusal.message)

    def _on_fault(self, now: float) -> None:
        """End a stream that broke a rule: with a word when it was a size, else without."""
        fault = self._splitter.fault
        assert fault is not None, "called when there is one"
        self._fault_seen = True
        self._counters.count_fault(fault.kind)
        if fault.kind is FaultKind.OVERSIZE and self._dialect.strict:
            self._ending = True
            return
        if self._splitter.proven:
            self._answers.collect(self._dialect, now)
        self.close(f"protocol fault: {fault}")

    def _last_words(self) -> None:
        """Everything is answered: say why the connection ends, if there is something to say."""
        fault = self._splitter.fault
        if fault is None:
            self.close("nothing more is read from it")
            return
        self._counters.errors += 1
        batch_id = None if fault.header is None else batch_of(fault.header)
        self._answers.send(error_frame(self._dialect, too_large(fault), batch_id))
        self.close(f"protocol fault: {fault}")


def _in_doubt(refusal: Refusal) -> Refusal:
    """Say of a topic that is not known here that it may be there all the same."""
    return Refusal(
        ErrorCode.CLUSTER_NOT_READY,
        f"{refusal.message}, as far as this node knows; it cannot read the shared log now: ask "
        "another node",
        ends_connection=True,
    )
