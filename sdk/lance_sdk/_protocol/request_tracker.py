"""Control requests as calls: the application of a client's session."""

import math
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from lance_sdk._errors.base import LanceError
from lance_sdk._protocol.completion import Completion
from lance_sdk._protocol.connection import Connection, Request
from lance_sdk._protocol.events import Event
from lance_sdk._protocol.read_only_handler import ReadOnlyHandler
from lance_sdk._protocol.situation import Situation, about_access
from lance_sdk.errors import (
    ConnectionLost,
    DeadlineExceeded,
    NotLeader,
    RemoteProtocolError,
    ServerError,
)
from lance_spec.bodies import TopicInfo
from lance_spec.checksum import Buffer
from lance_spec.enums import Command
from lance_spec.errors import DecodeError

_MOST_MOVES: Final = 3
"""Servers that may name another one in answer to a call, before that is an error."""


class PendingRequest(Completion):
    """A control request, or a ping, that somebody waits for.

    Args:
        command: the request's code; None for a ping.
        payload: its bytes.
        expects: the code of the answer that fits.
        parse: turns the answer's payload into the result.
        repeatable: whether asking twice does no harm, so that a lost connection is not an error.

    Attributes:
        abandoned: whether who asked waits no more, so that closing need not wait either.
        moves: servers that named another one in answer.
    """

    __slots__ = (
        "abandoned",
        "command",
        "deadline",
        "expects",
        "moves",
        "parse",
        "payload",
        "repeatable",
        "request",
        "submitted",
    )

    def __init__(
        self,
        command: Command | None,
        payload: bytes,
        expects: Command | None,
        parse: Callable[[Buffer], Any],
        *,
        repeatable: bool,
    ) -> None:
        super().__init__()
        self.command = command
        self.payload = payload
        self.expects = expects
        self.parse = parse
        self.repeatable = repeatable
        self.request: Request | None = None
        self.submitted = 0.0
        self.deadline = math.inf
        self.abandoned = False
        self.moves = 0

    @property
    def name(self) -> str:
        """How messages call it."""
        return "Keepalive" if self.command is None else self.command.name


def ping_call() -> PendingRequest:
    """Return a call that measures a round trip."""
    return PendingRequest(None, b"", None, bytes, repeatable=True)


class RequestTracker(ReadOnlyHandler):
    """Sends calls in order and settles them with their answers.

    Args:
        timeout: seconds a call may take, from its submission.
        backoff: reset upon every answer.
        progress: called upon every answer.
        events: where settled calls are announced.

    Attributes:
        completed: calls settled so far.
        situation: tells how the session stands, for the texts of errors.
    """

    def __init__(
        self, *, timeout: float, progress: Callable[[], object], events: list[Event]
    ) -> None:
        self._timeout = timeout
        self._progress = progress
        self._events = events
        self._queue: deque[PendingRequest] = deque()
        self._sent: deque[PendingRequest] = deque()
        self._elsewhere: NotLeader | None = None
        self._ready_at = 0.0
        self.completed = 0
        self.situation: Callable[[], Situation] = Situation

    def __repr__(self) -> str:
        return f"<RequestTracker queued={len(self._queue)} sent={len(self._sent)}>"

    def submit(self, call: PendingRequest, now: float) -> None:
        """Queue a call."""
        call.submitted = now
        call.deadline = now + self._timeout
        self._queue.append(call)

    @property
    def drained(self) -> bool:
        """Nobody waits for anything."""
        return all(call.abandoned for call in (*self._queue, *self._sent))

    def ready(self, connection: Connection, topic: TopicInfo | None, now: float) -> None:
        """Note since when calls can be answered: `fill` sends what is queued."""
        del connection, topic
        self._ready_at = now

    def fill(self, connection: Connection, now: float) -> None:
        """Send what is queued."""
        while self._queue and (self._elsewhere is None or not self._sent):
            call = self._queue.popleft()
            self._sent.append(call)
            if call.command is None or call.expects is None:
                connection.ping(now, partial(self._ponged, call, now))
            else:
                call.request = self._request(call, call.command, call.expects)
                # From its submission on, so that no later call is sent behind one that is given up.
                connection.ask(call.request, max(call.submitted, self._ready_at))

    def _ponged(self, call: PendingRequest, sent_at: float, now: float) -> None:
        self._settle(call, now - sent_at)

    def _request(self, call: PendingRequest, command: Command, expects: Command) -> Request:
        def answered(_code: int, payload: memoryview, _now: float) -> None:
            self._answered(call, payload)

        def failed(error: ServerError, _now: float) -> None:
            if isinstance(error, NotLeader) and error.leader and call.moves < _MOST_MOVES:
                self._move(call, error)
            else:
                self._settle(call, None, about_access(error, self.situation().server))
            self._go_elsewhere()

        return Request(command, call.payload, frozenset({expects}), answered, failed)

    def _answered(self, call: PendingRequest, payload: memoryview) -> None:
        try:
            result = call.parse(payload)
        except DecodeError as error:
            wrong = RemoteProtocolError(f"the answer to {call.name} cannot be read: {error}")
            self._settle(call, None, wrong)
        else:
            self._settle(call, result)
        self._go_elsewhere()

    def _move(self, call: PendingRequest, error: NotLeader) -> None:
        """Ask again where the server says (LWP section 12.4): nothing was done here."""
        call.moves += 1
        call.request = None
        self._sent.remove(call)
        self._queue.appendleft(call)
        self._elsewhere = error

    def _go_elsewhere(self) -> None:
        """Leave the connection once what was asked over it is answered.

        Raises:
            RemoteProtocolError: the session is to go where the server said.
        """
        if self._elsewhere is not None and not self._sent:
            raise RemoteProtocolError(str(self._elsewhere)) from self._elsewhere

    def _settle(
        self, call: PendingRequest, result: object, error: LanceError | None = None
    ) -> None:
        self._progress()
        if call in self._sent:
            self._sent.remove(call)
        if call.settle(result, error):
            self.completed += 1
            self._events.append(call)

    def lost(self, now: float) -> None:
        """Ask again where that does no harm; fail the others, whose fate is unknown."""
        del now
        self._elsewhere = None
        sent, self._sent = self._sent, deque()
        self._queue.extendleft(call for call in reversed(sent) if call.repeatable)
        for call in sent:
            if not call.repeatable:
                where = self.situation().server
                message = (
                    f"the connection to {where} was lost before the answer to {call.name}: it may "
                    f"have been done; look before you ask again"
                )
                self._settle(call, None, ConnectionLost(message, maybe_applied=True))

    def next_deadline(self) -> float:
        """Return when the oldest call is given up."""
        heads = [queue[0].deadline for queue in (self._sent, self._queue) if queue]
        return min(heads, default=math.inf)

    def handle_timeout(self, now: float) -> None:
        """Give up calls that are too old; their answers fall into tombstones."""
        for queue in (self._sent, self._queue):
            while queue and now >= queue[0].deadline:
                self._give_up(queue.popleft())

    def _give_up(self, call: PendingRequest) -> None:
        doubtful = call.request is not None and not call.repeatable
        if call.request is not None:
            call.request.abandoned = True
        done = " It may have been done." if doubtful else ""
        message = f"no answer to {call.name} in {self._timeout:.1f} s (request_timeout).{done}"
        message = f"{self.situation().server}: {message} {self.situation().sentence()}"
        if call.settle(None, DeadlineExceeded(message, maybe_applied=doubtful)):
            self._events.append(call)

    def close(self, now: float) -> None:
        """Nothing to finish but what was asked already."""

    def abort(self, error: LanceError, now: float) -> None:
        """Fail every call."""
        del now
        for call in (*self._sent, *self._queue):
            if call.settle(None, error):
                self._events.append(call)
        self._sent.clear()
        self._queue.clear()
