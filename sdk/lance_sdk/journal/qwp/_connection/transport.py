"""A QWP session: which host is tried when, and how connections begin and end.

::

    IDLE ── open ──> WAITING ── due ──> DIALING ── connected ──> UPGRADING ── 101 ──> READY
                        ^                  │                         │                  │
                        └── dial failed ───┴────── disconnected ─────┴── disconnected ──┤
    any ── closed and drained, or failed for good ──> CLOSED                         LEAVING

The pause between rounds over the hosts grows until a frame is acknowledged; a connection alone
does not shorten it, so that a host which accepts and closes is not hammered.
"""

import math
from collections import deque
from collections.abc import Callable, Iterator
from enum import Enum, auto
from typing import Final
from weakref import WeakKeyDictionary

from lance_sdk._errors.base import LanceError
from lance_sdk._protocol.completion import Completion
from lance_sdk._protocol.events import Action, Close, Connect, Connected, Disconnected, Event
from lance_sdk.errors import (
    Attempt,
    ClosedError,
    ConnectFailed,
    ConnectionLost,
    DeadlineExceeded,
    RemoteProtocolError,
)
from lance_sdk.journal._ring.journal import Journal
from lance_sdk.journal._sending.outbox import Outbox
from lance_sdk.journal.qwp._connection.exchange import Exchange
from lance_sdk.journal.qwp._connection.hosts import HostTracker
from lance_sdk.journal.qwp._connection.link import Answered, Closed, LinkEvent, WebSocketLink
from lance_sdk.journal.qwp._connection.policies import credentials_refused
from lance_sdk.journal.qwp._connection.upgrade import granted, request_headers
from lance_sdk.journal.qwp.config import QwpSettings
from lance_sdk.journal.qwp.dictionary import SymbolDictionary, open_dictionary
from lance_sdk.journal.qwp.errors import DurableAckUnavailable, UpgradeRefused
from lance_sdk.journal.rejections import Category, Policy
from lance_spec.checksum import Buffer
from lance_spec.errors import DecodeError

_LEAVE: Final = 0.5
"""Seconds that an orderly close may take."""
_MOST_ATTEMPTS: Final = 64


class _State(Enum):
    IDLE = auto()
    WAITING = auto()
    DIALING = auto()
    UPGRADING = auto()
    READY = auto()
    LEAVING = auto()
    CLOSED = auto()


_LINKED: Final = {_State.DIALING, _State.UPGRADING, _State.READY, _State.LEAVING}


class QwpTransport:
    """Satisfies `lance_sdk.journal.transport.Transport`; see there for the rules.

    Args:
        outbox: what is to be sent.
        settings: how to connect.
        dictionary: the symbols of the slot.

    Attributes:
        opened: settles when the first connection may carry frames, or when none ever will.
        failure: the error that ended the session for good.
        hosts: what is known of the hosts.
    """

    def __init__(self, outbox: Outbox, settings: QwpSettings, dictionary: SymbolDictionary) -> None:
        self._outbox = outbox
        self._settings = settings
        self._dictionary = dictionary
        self._state = _State.IDLE
        self._index = 0
        self._link: WebSocketLink | None = None
        self._exchange: Exchange | None = None
        self._address = ""
        self._limits: dict[int, int | None] = {}
        self._attempts: deque[Attempt] = deque(maxlen=_MOST_ATTEMPTS)
        self._doom: LanceError | None = None
        self._leaving_for: LanceError | None = None
        self._told = False
        self._closing = False
        self._flushed = False
        self._close_at = math.inf
        self._resume_at = math.inf
        self._state_until = math.inf
        self.opened = Completion()
        self.failure: LanceError | None = None
        self.hosts = HostTracker(settings.endpoints)

    def __repr__(self) -> str:
        return f"<QwpTransport {self.describe()} {self._exchange!r}>"

    def describe(self) -> str:
        """Return where frames go and how the connection stands."""
        scheme = "wss" if self._settings.tls else "ws"
        return f"{scheme}::addr={self.hosts.endpoint(self._index)}; {self._state.name.lower()}"

    # What the client calls

    def open(self, now: float) -> None:
        """Start connecting; `opened` tells how it went."""
        self._state = _State.WAITING
        self._resume_at = now

    def close(self, now: float, timeout: float) -> None:
        """Finish what is there, within ``timeout`` seconds."""
        self._closing = True
        self._close_at = min(self._close_at, now + timeout)
        if not self.opened.done and self._outbox.drained:
            self.fail(ClosedError("closed before it was open"), now)

    def fail(self, error: LanceError, now: float) -> None:
        """End the session for good."""
        if self.failure is None:
            self.failure = error
            self._outbox.failed(error)
            self._settle_opened(error)
        self._close_at = math.inf
        if self._state is _State.READY:
            self._leave(now)
        elif self._state in {_State.DIALING, _State.UPGRADING}:
            self._drop(error)
        elif self._state is not _State.LEAVING:
            self._state = _State.CLOSED

    @property
    def finished(self) -> bool:
        """Whether nothing will ever happen again."""
        return self._state is _State.CLOSED

    # What the driver calls

    def next_action(self, now: float) -> Action | None:
        """Return what the driver must do about the connection, once."""
        if self._closing and self.failure is None and self._outbox.drained:
            self.fail(ClosedError("the sender is closed"), now)
        if self._doom is not None and self._state in _LINKED:
            told, self._told = self._told, True
            return None if told else Close()
        if self._state is not _State.WAITING or now < self._resume_at:
            return None
        index = self.hosts.pick()
        assert index is not None, "a round has begun"
        self._state, self._index, self._address = _State.DIALING, index, ""
        host = self.hosts.endpoint(index)
        return Connect(host.host, host.port, self._settings.tls, self._settings.connect_timeout)

    def connected(self, address: str, now: float, token: str | None = None) -> None:
        """Ask for QWP on a connection that is made, TLS included."""
        del token  # the upgrade brings the credentials
        settings = self._settings
        self._link = WebSocketLink(
            self.hosts.endpoint(self._index),
            tls=settings.tls,
            headers=request_headers(settings.credentials, durable=settings.durable),
            redaction=settings.credentials.redaction(),
        )
        self._state = _State.UPGRADING
        self._state_until = now + settings.upgrade_timeout
        self._address = address

    def dial_failed(self, tries: list[tuple[str, str | None, Exception]], now: float) -> None:
        """Go on to the next host."""
        for phase, address, cause in tries:
            self._note_attempt(phase, cause, address)
        self.hosts.unreachable(self._index)
        self._next_host(tries[-1][2], now)

    def disconnected(self, error: Exception | None, now: float) -> None:
        """Find out why the connection is gone, and go on."""
        if self._state is _State.UPGRADING and self._doom is None and self._link is not None:
            self._understand(self._link.receive_eof, now)  # it may have completed the answer
        cause = self._doom or self._leaving_for or self._as_lost(error)
        if self._state in {_State.READY, _State.LEAVING}:
            self._outbox.disconnected(now)
            self.hosts.failed_midstream(self._index)
        else:
            phase = "tcp" if self._state is _State.DIALING else "upgrade"
            self._note_attempt(phase, cause, self._address or None)
            self._note_host(cause)
        self._next_host(cause, now)

    def receive_data(self, data: Buffer, now: float) -> None:
        """Take bytes from the host."""
        link = self._link
        if link is None or self._doom is not None:
            return
        if self._exchange is not None:
            self._exchange.heard(now)
        self._understand(lambda: link.receive(data), now)

    def data_to_send(self, now: float) -> list[Buffer]:
        """Return the bytes that may leave now."""
        if self._link is None or self._doom is not None:
            return []
        if self._exchange is not None and self._state is _State.READY:
            self._exchange.fill(now)
            self._check(now)
        data: list[Buffer] = list(self._link.data_to_send())
        if data and self._exchange is not None:
            self._exchange.sent(now)
        self._flushed = not data and self._state is _State.LEAVING
        return data

    def next_deadline(self) -> float:
        """Return when `handle_timeout` or `next_action` may have something to do."""
        if self._state is _State.CLOSED:
            return math.inf
        due = min(self._close_at, self._outbox.next_deadline())
        if self._state is _State.WAITING:
            due = min(due, self._resume_at)
        if self._doom is None:
            due = min(due, self._state_until)
            if self._exchange is not None and self._state is _State.READY:
                due = min(due, self._exchange.next_deadline())
            if self._flushed:
                due = -math.inf
        elif not self._told and self._state in _LINKED:
            due = -math.inf  # `next_action` has a connection to end
        return due

    def handle_timeout(self, now: float) -> None:
        """Do what is due."""
        self._outbox.handle_timeout(now)
        if self._state is _State.UPGRADING and now >= self._state_until:
            seconds = self._settings.upgrade_timeout
            self._drop(DeadlineExceeded(f"no answer to the upgrade in {seconds:.1f} s"))
        if self._state is _State.LEAVING and (self._flushed or now >= self._state_until):
            self._drop(self._leaving_for or ClosedError("the sender is closed"))
        if self._state is _State.READY and self._exchange is not None:
            self._exchange.handle_timeout(now)
            self._check(now)
        if now >= self._close_at:
            self.fail(ClosedError("closed before everything was acknowledged"), now)

    def take_events(self) -> list[Event]:
        """Return what happened since the last call."""
        events = self._outbox.events[:]
        self._outbox.events.clear()
        return events

    # Answers

    def _understand(self, receive: Callable[[], Iterator[LinkEvent]], now: float) -> None:
        try:
            for event in receive():
                self._take(event, now)
                if self._doom is not None:
                    break
        except RemoteProtocolError as error:
            self._drop(error)
        except DecodeError as error:
            self._drop(RemoteProtocolError(f"an answer of the server cannot be read: {error}"))
        self._check(now)

    def _take(self, event: LinkEvent, now: float) -> None:
        if isinstance(event, Answered):
            self._upgraded(event, now)
        elif isinstance(event, Closed):
            self._closed(event, now)
        elif self._state is _State.READY:
            assert self._exchange is not None
            self._exchange.answered(event.data, now)

    def _upgraded(self, answer: Answered, now: float) -> None:
        assert self._link is not None
        try:
            grant = granted(answer, durable=self._settings.durable)
        except LanceError as error:
            self._drop(error)
            if isinstance(error, UpgradeRefused) and error.credentials:
                journal = self._outbox.journal
                first, last = journal.acked_fsn + 1, journal.next_fsn - 1
                rejection = credentials_refused(error, first, last)
                chosen = self._outbox.limits.policies.get(Category.SECURITY_ERROR)
                retry = chosen in {Policy.RETRY, Policy.RETRY_OTHER}
                self._outbox.rejected(rejection, now, policy=None if retry else Policy.HALT)
            return
        self._state, self._state_until = _State.READY, math.inf
        self._limits[self._index] = grant.max_message
        self._exchange = Exchange(
            self._link,
            self._outbox,
            self._dictionary,
            settings=self._settings,
            grant=grant,
            now=now,
            elsewhere=self._another_takes,
        )
        self.hosts.succeeded(self._index)
        self._attempts.clear()
        self._outbox.connected(now)
        self._outbox.events.append(Connected(self._address, "qwp 1"))
        self._settle_opened(None)

    def _another_takes(self, size: int) -> bool:
        """Whether another host takes a message of so many bytes, or did not say yet."""
        others = set(range(len(self._settings.endpoints))) - {self._index}
        limits = [self._limits.get(each) for each in others]
        return any(limit is None or limit >= size for limit in limits)

    def _closed(self, closed: Closed, now: float) -> None:
        """Answer the host's goodbye."""
        if self._state is _State.LEAVING:
            self._state_until = now
        elif self._exchange is not None:
            self._exchange.closed(closed, now)
            self._leaving_for = self._exchange.ended
            self._leave(now)

    def _check(self, now: float) -> None:
        """Act upon what the exchange or the outbox decided."""
        if self._outbox.failure is not None and self.failure is None:
            self.fail(self._outbox.failure, now)
        elif self._state is _State.READY and self._exchange is not None and self._exchange.ended:
            self._drop(self._exchange.ended)

    # Ends

    def _leave(self, now: float) -> None:
        """Close the WebSocket in order, within a bounded time."""
        assert self._link is not None
        self._link.close()
        self._state = _State.LEAVING
        self._state_until = now + _LEAVE

    def _drop(self, error: LanceError) -> None:
        """Have the connection ended at once."""
        if self._doom is None:
            self._doom = error

    def _note_host(self, cause: Exception) -> None:
        if isinstance(cause, UpgradeRefused) and cause.misdirected:
            self.hosts.role_rejected(self._index, transient=cause.catching_up)
        else:
            self.hosts.unreachable(self._index)

    def _next_host(self, cause: Exception, now: float) -> None:
        delay, at_once = 0.0, self._exchange is not None and self._exchange.try_at_once
        self._link = self._exchange = self._doom = self._leaving_for = None
        self._told = self._flushed = False
        self._state_until = math.inf
        if at_once or self.hosts.pick() is None:
            delay = 0.0 if at_once else self._round_over(cause)
            self.hosts.begin_round()
        over = self.failure is not None
        self._state = _State.CLOSED if over else _State.WAITING
        self._resume_at = now + delay
        self._outbox.events.append(Disconnected(cause, None if over else delay))

    def _round_over(self, cause: Exception) -> float:
        """Every host was tried: give up, or return how long to pause."""
        if not self.opened.done and self.failure is None:
            if isinstance(cause, DurableAckUnavailable):
                self.failure = cause
            elif not self._settings.retry_initially:
                self.failure = ConnectFailed(self.describe(), list(self._attempts))
            if self.failure is not None:
                self._outbox.failed(self.failure)
                self._settle_opened(self.failure)
        if isinstance(cause, UpgradeRefused) and cause.misdirected:
            self._outbox.backoff.reset()  # a change of roles is waited for at a steady pace
        return self._outbox.backoff.next_delay()

    def _note_attempt(self, phase: str, cause: Exception, address: str | None) -> None:
        endpoint = str(self.hosts.endpoint(self._index))
        self._attempts.append(Attempt(endpoint, phase, cause, address))

    def _settle_opened(self, error: LanceError | None) -> None:
        if self.opened.settle(None, error):
            self._outbox.events.append(self.opened)

    def _as_lost(self, error: Exception | None) -> LanceError:
        if isinstance(error, LanceError):
            return error
        how = "closed by the server" if error is None else str(error) or type(error).__name__
        return ConnectionLost(f"connection to {self._address} {how}", peer=self._address)


class QwpTransports:
    """A `lance_sdk.journal.transport.TransportFactory` for QWP.

    Args:
        settings: how the transports connect.
    """

    def __init__(self, settings: QwpSettings) -> None:
        self._settings = settings
        self._dictionaries: WeakKeyDictionary[Journal, SymbolDictionary] = WeakKeyDictionary()

    def __repr__(self) -> str:
        return f"<QwpTransports {len(self._dictionaries)} slots>"

    def __call__(self, outbox: Outbox) -> QwpTransport:
        """Make the transport of an outbox."""
        return QwpTransport(outbox, self._settings, self.dictionary(outbox.journal))

    def dictionary(self, journal: Journal) -> SymbolDictionary:
        """Return the dictionary of a journal that is open.

        Raises:
            OSError: the dictionary cannot be read.
        """
        found = self._dictionaries.get(journal)
        if found is None:
            found = self._dictionaries[journal] = open_dictionary(journal)
        return found
