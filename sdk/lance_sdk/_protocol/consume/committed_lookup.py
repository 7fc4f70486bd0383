"""How far a consumer has come, as its server knows it (LWP sections 5.12 and 5.14, AMB-36).

There is no command that asks for it: a subscription at offset 0 resumes at the commit, so its
acknowledgement tells it. What the server pushes until it has taken the end of that subscription
is dropped.
"""

from lance_sdk._errors.base import LanceError
from lance_sdk._protocol.completion import Completion
from lance_sdk._protocol.connection import Connection, Request
from lance_sdk._protocol.consume.consumer_acks import begun
from lance_sdk._protocol.events import Event
from lance_sdk.errors import NotLeader, RemoteProtocolError, ServerError
from lance_spec.enums import Command
from lance_spec.messages.lwp import Subscribe, Unsubscribe

_SMALLEST_PUSH = 1


class CommitLookup(Completion):
    """Settles with the committed offset; 0 when there is none.

    Args:
        consumer_id: the number under which it was committed.
        events: where the outcome is announced.
    """

    __slots__ = ("_asked", "_consumer_id", "_events", "_found")

    def __init__(self, consumer_id: int, events: list[Event]) -> None:
        super().__init__()
        self._consumer_id = consumer_id
        self._events = events
        self._asked = False
        self._found = 0

    def fill(self, connection: Connection, topic_id: int, now: float) -> None:
        """Ask, once on each connection."""
        if self._asked:
            return
        self._asked = True
        connection.on_push = _drop
        subscribe = Subscribe(topic_id, 0, _SMALLEST_PUSH, self._consumer_id).encode()
        expects = frozenset({Command.SUBSCRIBE_ACK})
        connection.ask(
            Request(Command.SUBSCRIBE, subscribe, expects, self._begun, self._refused), now
        )
        connection.ask(self._end(connection, topic_id), now)

    def lost(self) -> None:
        """Ask again on the next connection."""
        self._asked = False

    def _end(self, connection: Connection, topic_id: int) -> Request:
        def over(*_answer: object) -> None:
            connection.on_push = None
            self._settle(self._found, None)

        return Request(
            Command.UNSUBSCRIBE,
            Unsubscribe(topic_id, self._consumer_id).encode(),
            frozenset(),
            over,
            over,  # the subscription was refused, and with it the end of it
            ack=self._consumer_id,
        )

    def _begun(self, _code: int, payload: memoryview, _now: float) -> None:
        self._found = begun(payload, self._consumer_id).offset

    def _refused(self, error: ServerError, _now: float) -> None:
        if isinstance(error, NotLeader):  # the next connection goes there, and asks again
            raise RemoteProtocolError(str(error)) from error
        self._settle(0, error)

    def _settle(self, value: int, error: LanceError | None) -> None:
        if self.settle(value, error):
            self._events.append(self)


def _drop(_topic_id: int, _payload: memoryview, _now: float) -> None:
    """Take a push that nobody wants."""
