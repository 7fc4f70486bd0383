"""A session with a coordinator that speaks the published text protocol (AMB-38)."""

import math
from typing import Any, Final

from lance_sdk._protocol.events import Action, Disconnected, Event
from lance_sdk._protocol.handshake import Plan
from lance_sdk._protocol.reconnecting_session import Session
from lance_sdk.groups._protocol.member import MemberHandler
from lance_sdk.groups._protocol.membership import MembershipPhase, SubscriptionRequest
from lance_sdk.groups._protocol.position_claims import Claims, ClaimStore
from lance_sdk.groups._protocol.text_connection import TextConnection

_FAREWELLS: Final = 3
"""Connections that may end before the word of leaving got an answer."""


class TextSession(Session):
    """Connects without a handshake; what the member claims in its store is released with it.

    Args:
        member: what the session carries.
        plan: of a handshake, of which there is none.
        subscription: of the member, who has a name.
        store: its offset store.
        events: where this core's events collect.
        **rest: as for every session.
    """

    def __init__(
        self,
        member: MemberHandler,
        plan: Plan,
        *,
        subscription: SubscriptionRequest,
        store: ClaimStore,
        events: list[Event],
        **rest: Any,
    ) -> None:
        super().__init__(member, plan, events=events, **rest)
        self._member = member
        self._subscription = subscription
        self._claims = Claims(store, events)
        self._farewells = _FAREWELLS
        self._not_before = math.inf
        self._was_brief = False

    def connected(self, address: str, now: float, token: str | None = None) -> None:
        """Take note that the connection is made; it may be used at once."""
        del token
        self._address = address
        limits = self._settings.connection
        self.connection = TextConnection(self._subscription, self._claims, self, limits, now)
        self._become_ready(None, now)

    def disconnected(self, error: Exception | None, now: float) -> None:
        """Take note that the connection is gone, with whatever was not answered."""
        connection = self.connection
        if isinstance(connection, TextConnection):
            connection.over = True
            self._member.brief = self._doom is None and connection.answers == 1
        super().disconnected(error, now)

    def next_action(self, now: float) -> Action | None:
        """Return what the driver must do about the connection, once."""
        if self._member.brief:
            self._resume_at = min(self._resume_at, max(self._not_before, self._member.due))
        return super().next_action(now)

    def close(self, now: float, timeout: float) -> None:
        """Finish what is there; where each request takes a connection, on one more."""
        super().close(now, timeout)
        self._resume_at = min(self._resume_at, now)

    def _resume(
        self, now: float, cause: Exception, delay: float, redirect: str | None = None
    ) -> None:
        """Connect again; where each request takes a connection, not before the next one is due.

        Published workers make a connection for each request, so a coordinator may well hang up.
        """
        if self._closing:
            self._farewells -= 1
            self._member.brief = self._member.brief and self._farewells > 0
        self._not_before = now + delay
        if self._member.brief:
            delay = max(delay, self._member.due - now)
        super()._resume(now, cause, delay, redirect)
        if self._member.brief:
            self._events[-1] = Disconnected(cause, delay, usual=self._was_brief)
        self._was_brief = self._member.brief

    def handle_timeout(self, now: float) -> None:
        """Do what is due, and let go of topics that the member does not hold any more."""
        super().handle_timeout(now)
        if self._member.phase is not MembershipPhase.INSIDE:
            self._claims.wanted = ()
        self._claims.keep(self._member.held)

    def take_events(self) -> list[Event]:
        """Take what happened since the last call; the store is closed with the session."""
        if self.finished:
            self._claims.close()
        return super().take_events()
