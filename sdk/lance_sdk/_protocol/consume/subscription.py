"""A subscription: the server pushes what is new (LWP section 5.12, AMB-21).

::

    NONE ── begin ──> ASKED ── SubscribeAck ──> ACTIVE ── end ──> ENDING ── Ack ──> NONE
                        └────────── end ─────────────────────────────^

Nothing is fetched on a connection while there is one. A server that takes Subscribe and never
pushes is found out: the subscription is ended from time to time, and a Fetch shows whether
something was kept back.
"""

import math
from collections.abc import Callable
from enum import Enum
from typing import Final

from lance_sdk._protocol.connection import Connection, Request
from lance_sdk._protocol.consume.consumer_acks import begun
from lance_sdk.errors import RemoteProtocolError, ServerError
from lance_spec.enums import Command
from lance_spec.messages.lwp import Subscribe, Unsubscribe

_FIRST_CHECK: Final = 1.0
"""Seconds without a push after which a server that never pushed is looked at."""
_CHECK: Final = 15.0
"""Seconds without a push after which one that did is looked at."""
_STRIKES: Final = 2
"""Looks that found something kept back, after which a server counts as one that does not push."""


class SubscriptionPhase(Enum):
    """Where a subscription stands; see the picture above."""

    NONE = "none"
    ASKED = "asked"
    ACTIVE = "active"
    ENDING = "ending"


class Subscription:
    """The subscription of one consumer, over all its connections.

    Args:
        subscriber: the number to subscribe under.
        on_push: takes payload and time of what is pushed.
        on_begun: takes the offset that the pushes begin at, and the time.
        on_refused: takes the error when the server refuses, and the time.

    Attributes:
        phase: where it stands on this connection.
        works: whether the server pushes, as far as is known.
    """

    def __init__(
        self,
        subscriber: int,
        *,
        on_push: Callable[[memoryview, float], None],
        on_begun: Callable[[int, float], None],
        on_refused: Callable[[ServerError, float], None],
    ) -> None:
        self._subscriber = subscriber
        self._on_push = on_push
        self._on_begun = on_begun
        self._on_refused = on_refused
        self._connection: Connection | None = None
        self._topic_id = 0
        self._drop = False
        self._pushed = False
        self._looking = False
        self._strikes = 0
        self._check_at = math.inf
        self.phase = SubscriptionPhase.NONE
        self.works = True

    def __repr__(self) -> str:
        return f"<Subscription {self.phase.value} works={self.works}>"

    def begin(
        self, connection: Connection, topic_id: int, offset: int, max_bytes: int, now: float
    ) -> None:
        """Ask the server to push from an offset on."""
        self.phase, self._connection, self._topic_id = SubscriptionPhase.ASKED, connection, topic_id
        self._drop = False
        connection.on_push = self._pushed_to
        payload = Subscribe(topic_id, offset, max_bytes, self._subscriber).encode()
        expects = frozenset({Command.SUBSCRIBE_ACK})
        connection.ask(
            Request(Command.SUBSCRIBE, payload, expects, self._begun, self._refused), now
        )

    def end(self, now: float, *, drop: bool = False) -> None:
        """Ask the server to stop; what it pushes until it confirms is taken, or dropped."""
        self._drop = self._drop or drop
        connection = self._connection
        if (
            self.phase not in {SubscriptionPhase.ASKED, SubscriptionPhase.ACTIVE}
            or connection is None
        ):
            return
        self.phase, self._check_at = SubscriptionPhase.ENDING, math.inf
        request = Request(
            Command.UNSUBSCRIBE,
            Unsubscribe(self._topic_id, self._subscriber).encode(),
            frozenset(),
            self._ended,
            lambda _error, _now: self._over(),  # there was no subscription: it is over, too
            ack=self._subscriber,
        )
        connection.ask(request, now)

    def lost(self) -> None:
        """Take note that the connection is gone, or that the server ended the subscription."""
        self.phase, self._connection, self._check_at = SubscriptionPhase.NONE, None, math.inf

    def ended_by_server(self) -> None:
        """Take note that an error has ended it; a confirmation may still be on its way."""
        if self.phase is not SubscriptionPhase.ENDING:
            self._over()

    def caught_up(self, *, found: int) -> None:
        """Take note of what a Fetch found: after a look, something that was kept back."""
        looked, self._looking = self._looking, False
        if looked and found and not self._pushed:
            self._strikes += 1
            self.works = self._strikes < _STRIKES

    def next_deadline(self) -> float:
        """Return when to look whether the server keeps something back."""
        return self._check_at

    def check(self, now: float) -> None:
        """End the subscription for a look, when it is time."""
        if now < self._check_at:
            return
        self._looking = True
        self.end(now)

    def _begun(self, _code: int, payload: memoryview, now: float) -> None:
        ack = begun(payload, self._subscriber)
        if self.phase is SubscriptionPhase.ASKED:
            self.phase, self._pushed = SubscriptionPhase.ACTIVE, False
            self._check_at = now + _FIRST_CHECK
            self._on_begun(ack.offset, now)

    def _refused(self, error: ServerError, now: float) -> None:
        self._over()
        self._on_refused(error, now)

    def _ended(self, _code: int, _payload: memoryview, _now: float) -> None:
        self._over()

    def _over(self) -> None:
        if self._connection is not None:
            self._connection.on_push = None
        self.lost()

    def _pushed_to(self, topic_id: int, payload: memoryview, now: float) -> None:
        if topic_id not in {0, self._topic_id}:
            raise RemoteProtocolError(
                f"the server pushed records of topic {topic_id}; this consumer is subscribed to "
                f"topic {self._topic_id}"
            )
        self._pushed, self._strikes = True, 0
        if self._check_at < math.inf:
            self._check_at = now + _CHECK
        if not self._drop:
            self._on_push(payload, now)
