"""A session: one purpose over as many connections as it takes.

It owns which host is tried, in which dialect, when; the handshake of each connection; the end.
What travels once a connection is ready is its application's business: a sender, a fetcher, or
a caller of control requests.

::

    IDLE ── open ──> WAITING ── due ──> DIALING ── connected ──> HANDSHAKE ── done ──> READY
                        ^                  │                         │                   │
                        └── dial failed ───┴────── disconnected ─────┴─── disconnected ──┘
    any ── closed and drained, or failed for good ──> CLOSED
"""

import dataclasses
import math
from collections import deque

from lance_sdk._api.arguments.redaction import Redaction
from lance_sdk._errors.advice import words
from lance_sdk._errors.base import LanceError
from lance_sdk._protocol.backoff import Backoff
from lance_sdk._protocol.completion import Completion
from lance_sdk._protocol.connection import Connection, Request
from lance_sdk._protocol.events import (
    Action,
    Close,
    Connect,
    Connected,
    Disconnected,
    Event,
    Notice,
    OffloadedTask,
)
from lance_sdk._protocol.handshake import Handshake, Pause, Ping, Plan, Step, handshake
from lance_sdk._protocol.hosts import Hosts
from lance_sdk._protocol.session_handler import (
    LINKED,
    SessionHandler,
    SessionSettings,
    SessionState,
)
from lance_sdk._protocol.situation import Situation, about_access
from lance_sdk.errors import (
    Attempt,
    ClosedError,
    ConnectFailed,
    ConnectionLost,
    DeadlineExceeded,
    NotLeader,
    RemoteProtocolError,
    ServerError,
)
from lance_spec.bodies import TopicInfo
from lance_spec.checksum import Buffer
from lance_spec.dialect import Dialect
from lance_spec.errors import DecodeError

_SILENCE = 0.4
"""Seconds without a byte after which a server is asked whether it speaks HTTP."""
_LONG_SILENCE = 1.0
"""Seconds without a byte after which the log says so; the connection waits on."""
_MAX_ATTEMPTS_KEPT = 64
"""Attempts remembered for the error message; older ones repeat themselves."""


class Session:
    """Satisfies `lance_sdk._io.driver_contract.ProtocolCore`; see there for the verbs.

    Args:
        app: what the session carries.
        plan: the handshake of every connection.
        hosts: the servers.
        settings: deadlines.
        backoff: delays between rounds; the application resets it upon progress.
        events: where this core's events collect; shared with the application.
        target: the URL without secrets, for messages.

    Attributes:
        state: where it stands.
        opened: settles at the first readiness, or when there will be none.
        connection: the connection in use.
        failure: the error that ended the session for good.
        connects: number of times a connection became ready.
    """

    def __init__(
        self,
        app: SessionHandler,
        plan: Plan,
        *,
        hosts: Hosts,
        settings: SessionSettings,
        backoff: Backoff,
        events: list[Event],
        target: str,
    ) -> None:
        self._app = app
        self._plan = plan
        self._hosts = hosts
        self._settings = settings
        self._backoff = backoff
        self._events = events
        self._target = target
        self._steps: Handshake | None = None
        self._step: Step | None = None
        self._attempts: deque[Attempt] = deque(maxlen=_MAX_ATTEMPTS_KEPT)
        self._address = ""
        self._doom: LanceError | None = None
        self._cause: Exception | None = None
        self._told, self._needed, self._closing = False, True, False
        self._resume_at = self._open_until = self._close_at = math.inf
        self._handshake_until = self._step_at = self._probe_at = self._warn_at = math.inf
        self._dialect: Dialect | None = None
        self.state = SessionState.IDLE
        self.opened = Completion()
        self.connection: Connection | None = None
        self.failure: LanceError | None = None
        self.connects = 0
        self._sent_before = self._received_before = 0
        """Bytes of the connections before this one."""

    @property
    def sent_bytes(self) -> int:
        """Bytes sent over all connections."""
        return self._sent_before + (0 if self.connection is None else self.connection.sent_bytes)

    @property
    def received_bytes(self) -> int:
        """Bytes received over all connections."""
        now = 0 if self.connection is None else self.connection.received_bytes
        return self._received_before + now

    def _leave_connection(self) -> None:
        """Forget the connection, and keep what it counted."""
        self._sent_before, self._received_before = self.sent_bytes, self.received_bytes
        self.connection = None

    def __repr__(self) -> str:
        return f"<Session {self._target} {self.state.name} {self.connection!r}>"

    # What the client calls

    def open(self, now: float, *, need: bool = True, dial: bool = True) -> None:
        """Start connecting; `opened` tells how it went.

        Args:
            now: the time.
            need: whether no server is a failure; without it, hosts are tried for ever.
            dial: whether to connect at all.
        """
        self.state = SessionState.WAITING
        self._needed = need
        self._resume_at = now if dial else math.inf
        self._open_until = now + self._settings.open_timeout
        if not dial:
            self._settle_opened(None)

    def close(self, now: float, timeout: float) -> None:
        """Finish what is there, within ``timeout`` seconds; `finished` tells when it is over."""
        if not self._closing:
            self._closing = True
            self._app.close(now)
        self._close_at = min(self._close_at, now + timeout)
        if self.state is SessionState.IDLE or (not self.opened.done and self._app.drained):
            self.fail(ClosedError("closed before it was open"), now)

    def fail(self, error: LanceError, now: float) -> None:
        """End the session for good."""
        if self.failure is None:
            self.failure = error
            self._settle_opened(error)
            self._app.abort(error, now)
        self._end(error)

    @property
    def finished(self) -> bool:
        """Whether nothing will ever happen again and the driver may stop."""
        return self.state is SessionState.CLOSED

    @property
    def dialect(self) -> Dialect | None:
        """The dialect of the last connection that became ready."""
        return self._dialect

    def situation(self) -> Situation:
        """Return where it stands, for the texts of errors."""
        return Situation(str(self._hosts.current), self.state is SessionState.READY, self._cause)

    # What the driver calls

    def next_action(self, now: float) -> Action | None:
        """Return what the driver must do about the connection, once."""
        if self._closing and self._app.drained and self._doom is None:
            self._end(ClosedError("closed"))
        if self._doom is not None and self.state in LINKED:
            told, self._told = self._told, True
            return None if told else Close()
        if self.state is SessionState.WAITING and now >= self._resume_at:
            self.state = SessionState.DIALING
            endpoint, settings = self._hosts.current, self._settings
            return Connect(endpoint.host, endpoint.port, settings.tls, settings.connect_timeout)
        return None

    def connected(self, address: str, now: float, token: str | None = None) -> None:
        """Take note that the connection is made, TLS included, with a fresh token for it."""
        pinned = self._pin()
        self.state = SessionState.HANDSHAKE
        self._address = address
        self._handshake_until = now + self._settings.connect_timeout
        asks = self._settings.speaks_http and not self._settings.tls and not self.connects
        self._probe_at = now + _SILENCE if asks else math.inf
        self._warn_at = now + _LONG_SILENCE
        plan = self._plan if token is None else dataclasses.replace(self._plan, token=token)
        spoken, speaking = self._hosts.candidates(pinned), self._hosts.dialect(pinned)
        self._leave_connection()
        self.connection = Connection(spoken, speaking, self, self._settings.connection, now)
        self.connection.redaction = Redaction(plan.token)
        self._steps = handshake(plan)
        self._advance(None, now)

    def dial_failed(self, tries: list[tuple[str, str | None, Exception]], now: float) -> None:
        """Take note that no address of the host could be reached.

        Args:
            tries: (phase, address, cause) of each address.
            now: the time.
        """
        endpoint = str(self._hosts.current)
        for phase, address, cause in tries:
            self._attempts.append(Attempt(endpoint, phase, cause, address))
        self._cause = tries[-1][2]
        self._next_host(tries[-1][2], now)

    def disconnected(self, error: Exception | None, now: float) -> None:
        """Take note that the connection is gone; without an error, that the peer closed it."""
        connection, was_ready = self.connection, self.state is SessionState.READY
        unheard = connection is not None and connection.received_bytes == 0 and self._doom is None
        cause = self._cause = self._doom or self._as_lost(error)
        self._leave_connection()
        self._doom, self._steps = None, None
        if was_ready:
            self._app.lost(now)
        elif connection is not None:
            self._note_attempt(connection, cause)
        if unheard and self._hosts.closed_unheard(self._pin()):
            self._resume(now, cause, 0.0)
        else:
            self._next_host(cause, now)

    def room(self) -> memoryview:
        """Return memory to receive what comes next into, where a frame has begun; else nothing."""
        return memoryview(b"") if self.connection is None else self.connection.room()

    def receive_data(self, data: Buffer, now: float) -> None:
        """Take bytes from the peer."""
        if self.connection is not None and self._doom is None:
            self.connection.receive_data(data, now)
            self._check()

    def data_to_send(self, now: float) -> list[Buffer]:
        """Take the bytes that may leave now."""
        if self.connection is None or self._doom is not None:
            return []
        if self.state is SessionState.READY:
            self._app.fill(self.connection, now)
        return self.connection.data_to_send(now)

    def next_deadline(self) -> float:
        """Return when `handle_timeout` or `next_action` may have something to do."""
        if self.state is SessionState.CLOSED:
            return math.inf
        waiting = self._resume_at if self.state is SessionState.WAITING else math.inf
        due = min(self._app.next_deadline(), self._close_at, waiting)
        if self.connection is not None and self._doom is None:
            due = min(due, self.connection.next_deadline(), self._handshake_until)
            due = min(due, self._step_at, self._probe_at, self._warn_at)
        return due

    def handle_timeout(self, now: float) -> None:
        """Do what is due."""
        self._app.handle_timeout(now)
        if self.connection is not None:
            self.connection.handle_timeout(now)
            self._check()
        if now >= self._step_at and self._doom is None:
            self._step_at = math.inf
            self._advance(None, now)
        if now >= self._probe_at:
            self._probe()
        if now >= self._warn_at:
            self._warn_of_silence()
        if now >= self._handshake_until:
            limit = f"{self._settings.connect_timeout:.1f} s"
            self._drop(DeadlineExceeded(f"no answer to the handshake in {limit}"))
        if now >= self._close_at:
            self._close_at = math.inf
            self.fail(ClosedError("closed before everything was acknowledged"), now)

    def _warn_of_silence(self) -> None:
        """Have the log say early what the connection waits for, and what it may be."""
        self._warn_at = math.inf
        if self.connection is None or self.connection.received_bytes or self._doom is not None:
            return
        text = (
            f"{self._hosts.current} took the connection and has said nothing for "
            f"{_LONG_SILENCE:g} s; waiting up to {self._settings.connect_timeout:g} s for it. "
            "Check that the port is a LANCE server's (1992 by default), and that the server is not "
            "stopped"
        )
        self._events.append(Notice(text, "silent server"))

    def _probe(self) -> None:
        """Have a server that says nothing asked whether it speaks HTTP."""
        self._probe_at = math.inf
        connection, ask = self.connection, self._settings.speaks_http
        if ask is None or connection is None or connection.received_bytes or self._doom is not None:
            return
        where = self._hosts.current

        def told(http: object, _error: LanceError | None, _now: float) -> None:
            if http and self.connection is connection and not connection.received_bytes:
                self._drop(RemoteProtocolError(f"an HTTP server answers at {where}"))

        self._events.append(OffloadedTask(lambda: ask(where.host, where.port), told))

    def take_events(self) -> list[Event]:
        """Take what happened since the last call."""
        events = self._events[:]
        self._events.clear()
        return events

    # What the connection calls

    def acked(self, batch_id: int, now: float) -> None:
        """Take an Ack (LWP section 4.2)."""
        if self.state is not SessionState.READY:
            raise RemoteProtocolError("the server acknowledged a batch before any was sent")
        self._app.acked(batch_id, now)

    def slow_down(self, now: float) -> None:
        """Take a Backpressure frame (LWP section 4.4); before any Ingest it means nothing."""
        if self.state is SessionState.READY:
            self._app.slow_down(now)

    def refused(self, error: ServerError, now: float) -> None:
        """Take an ErrorResponse that answers no control request."""
        if self.state is SessionState.READY:
            self._note_leader(error)
            self._app.refused(error, now)
        else:
            self._refused(error, now)

    def _note_leader(self, error: ServerError) -> None:
        if isinstance(error, NotLeader) and error.leader is not None:
            self._hosts.redirect(error.leader)

    # Handshake

    def _advance(self, answer: bytes | ServerError | None, now: float) -> None:
        """Step the handshake with an answer, and do what it asks for next."""
        assert self._steps is not None
        assert self.connection is not None
        try:
            if isinstance(answer, ServerError):
                self._step = self._steps.throw(answer)
            elif answer is None:
                self._step = next(self._steps)
            else:
                self._step = self._steps.send(answer)
        except StopIteration as stop:
            self._become_ready(stop.value, now)
        except ServerError as error:
            self._refused(error, now)
        except DecodeError as error:
            self._drop(self.connection.as_protocol_error(error))
        else:
            self._perform(self._step, now)

    def _perform(self, step: Step, now: float) -> None:
        assert self.connection is not None
        if isinstance(step, Pause):
            self._step_at = now + step.seconds
        elif isinstance(step, Ping):
            self.connection.ping(now, lambda at: self._advance(b"", at))
        else:
            request = Request(
                step.command,
                step.payload,
                frozenset({step.expects}),
                lambda _code, payload, at: self._advance(bytes(payload), at),
                self._advance,
            )
            self.connection.ask(request, now)

    def _become_ready(self, topic: TopicInfo | None, now: float) -> None:
        assert self.connection is not None
        self._handshake_until = self._probe_at = self._warn_at = math.inf
        self.state = SessionState.READY
        self.connects += 1
        self._proved(self.connection.dialect)
        self._attempts.clear()
        self._cause = None
        self._events.append(Connected(self._address, self.connection.dialect.name))
        try:
            self._app.ready(self.connection, topic, now)
        except LanceError as error:
            self.fail(error, now)
        else:
            self._settle_opened(None)

    def _proved(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._hosts.proved(dialect)

    def _refused(self, error: ServerError, now: float) -> None:
        """Take a server's refusal of the handshake: another try may help, or not."""
        self._note_leader(error)
        error = about_access(error, str(self._hosts.current))
        if error.retryable:
            self._drop(error)
        else:
            self.fail(error, now)

    # Ends

    def _drop(self, error: LanceError) -> None:
        self._handshake_until = math.inf
        if self._doom is None:
            self._doom = error

    def _check(self) -> None:
        fault = None if self.connection is None else self.connection.fault
        if fault is not None:
            if isinstance(fault.__cause__, NotLeader):
                self._note_leader(fault.__cause__)
            self._drop(fault)

    def _end(self, error: LanceError) -> None:
        self._closing = True
        self._close_at = math.inf
        if self.state in LINKED:
            self._drop(error)
        else:
            self.state = SessionState.CLOSED

    def _settle_opened(self, error: LanceError | None) -> None:
        if self.opened.settle(None, error):
            self._events.append(self.opened)

    def _next_host(self, cause: Exception, now: float) -> None:
        self._leave_connection()
        stuck = self._backoff.begun
        delay = self._backoff.next_delay() if self._hosts.give_up() else 0.0
        if delay and not self.opened.done and now >= self._open_until:
            self.state = SessionState.WAITING
            if self._needed:
                self.fail(ConnectFailed(self._target, list(self._attempts)), now)
                return
            self._settle_opened(None)
        follows = self._hosts.redirected and not stuck  # servers that name each other get nowhere
        self._resume(now, cause, delay, str(self._hosts.current) if follows else None)

    def _resume(
        self, now: float, cause: Exception, delay: float, redirect: str | None = None
    ) -> None:
        over = self.failure is not None or (self._closing and self._app.drained)
        self._doom, self._told = None, False
        self._handshake_until = self._step_at = self._probe_at = self._warn_at = math.inf
        self.state = SessionState.CLOSED if over else SessionState.WAITING
        self._resume_at = now + delay
        self._events.append(Disconnected(cause, None if over else delay, redirect=redirect))

    def _note_attempt(self, connection: Connection, cause: Exception) -> None:
        phase = self._step.phase if self._step is not None else "handshake"
        self._attempts.append(
            Attempt(str(self._hosts.current), phase, cause, self._address, connection.dialect.name)
        )

    def _as_lost(self, error: Exception | None) -> LanceError:
        if isinstance(error, LanceError):
            return error
        heard = self.connection is not None and self.connection.received_bytes > 0
        when = "" if heard else " before its first byte"
        how = f"closed by the server{when}" if error is None else f"lost{when}: {words(error)}"
        return ConnectionLost(f"connection to {self._address} {how}", peer=self._address)

    def _pin(self) -> Dialect | None:
        return self._dialect if self._app.pinned else None
