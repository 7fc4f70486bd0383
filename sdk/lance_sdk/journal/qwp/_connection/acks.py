"""Maps answers to frame numbers: which messages of a connection an answer is about.

Messages have no numbers on the wire; both sides count them from 0 (SF client section 7). An OK
is about all messages up to its number. Where durable acknowledgements were granted it settles
nothing yet: it names the transactions that the messages went to, and a later frame says how far
each table is safe (SF client section 10).
"""

from collections import deque
from typing import Final

from lance_sdk.errors import RemoteProtocolError
from lance_spec.messages.qwp import DurableAck, OkResponse, TableSequence

_MOST_TABLES: Final = 1 << 16
_MOST_NAMES: Final = 16 << 20
"""Tables that a host may name on one connection, and bytes of their names together."""


class SentMessages:
    """The messages of one connection and what was said about them.

    Args:
        durable: whether only durable acknowledgements settle frames.

    Attributes:
        sent: how many messages were sent, catch-up included.
    """

    def __init__(self, *, durable: bool) -> None:
        self._durable = durable
        self._frames: deque[tuple[int, int]] = deque()
        self._untaken: deque[tuple[int, int]] = deque()
        self._catch_up: set[int] = set()
        self._pending: deque[tuple[int, dict[bytes, int]]] = deque()
        self._safe: dict[bytes, int] = {}
        self._ok = -1
        self.sent = 0

    def __repr__(self) -> str:
        return (
            f"<SentMessages sent={self.sent} ok={self._ok} unanswered={len(self._frames)} "
            f"pending_durable={len(self._pending)}>"
        )

    @property
    def waits_for_disk(self) -> bool:
        """Whether something was taken by the host and is not durable there yet."""
        return bool(self._pending)

    @property
    def awaits_ok(self) -> bool:
        """Whether a message was sent that no OK was about."""
        return self._ok < self.sent - 1

    @property
    def unanswered(self) -> bool:
        """Whether something was sent that is not settled."""
        return bool(self._frames)

    def sent_catch_up(self) -> None:
        """Count a message that is not a frame."""
        self._catch_up.add(self.sent)
        self.sent += 1

    def sent_frame(self, fsn: int) -> None:
        """Count a message that is a frame."""
        self._frames.append((self.sent, fsn))
        self._untaken.append((self.sent, fsn))
        self.sent += 1

    def frame_of(self, wire_sequence: int) -> int | None:
        """Return the frame that a message was, or None for catch-up and what is settled.

        Raises:
            RemoteProtocolError: no such message was sent.
        """
        self._check(wire_sequence)
        return next((fsn for wire, fsn in self._frames if wire == wire_sequence), None)

    def is_catch_up(self, wire_sequence: int) -> bool:
        """Whether a message taught the host symbols."""
        return wire_sequence in self._catch_up

    def taken(self) -> int | None:
        """Return the last frame that an OK was about since the last call, or None."""
        last = None
        while self._untaken and self._untaken[0][0] <= self._ok:
            last = self._untaken.popleft()[1]
        return last

    def ok(self, answer: OkResponse) -> int | None:
        """Take an OK; return the last frame that is settled now, or None.

        Raises:
            RemoteProtocolError: it is about messages that were not sent (SF-35).
        """
        self._check(answer.wire_sequence)
        news = answer.wire_sequence > self._ok
        self._ok = max(self._ok, answer.wire_sequence)
        if not self._durable:
            return self._settled(answer.wire_sequence)
        if news:
            self._pending.append((answer.wire_sequence, _merged({}, answer.tables)))
        return self._walk()

    def durable_ack(self, answer: DurableAck) -> int | None:
        """Take a durable acknowledgement; return the last frame that is settled now, or None.

        Raises:
            RemoteProtocolError: none was asked for, or it names too many tables.
        """
        if not self._durable:
            raise RemoteProtocolError("a durable acknowledgement that was not asked for")
        known = len(self._safe)
        _merged(self._safe, answer.tables)
        if len(self._safe) > known:
            self._check_names()
        return self._walk()

    def _check_names(self) -> None:
        if len(self._safe) > _MOST_TABLES or sum(map(len, self._safe)) > _MOST_NAMES:
            raise RemoteProtocolError(
                f"durable acknowledgements of over {_MOST_TABLES} tables, or with over "
                f"{_MOST_NAMES} bytes of names"
            )

    def _walk(self) -> int | None:
        """Settle what is durable, in order."""
        upto = None
        while self._pending and self._covers(self._pending[0][1]):
            upto = self._pending.popleft()[0]
        return None if upto is None else self._settled(upto)

    def _covers(self, tables: dict[bytes, int]) -> bool:
        return all(self._safe.get(name, -1) >= sequence for name, sequence in tables.items())

    def _settled(self, wire_sequence: int) -> int | None:
        last = None
        while self._frames and self._frames[0][0] <= wire_sequence:
            last = self._frames.popleft()[1]
        return last

    def _check(self, wire_sequence: int) -> None:
        if not 0 <= wire_sequence < self.sent:
            raise RemoteProtocolError(
                f"an answer to message {wire_sequence}, and {self.sent} were sent on this "
                "connection, counted from 0 (SF-35)"
            )


def _merged(into: dict[bytes, int], tables: list[TableSequence]) -> dict[bytes, int]:
    for each in tables:
        into[each.name] = max(each.sequence, into.get(each.name, each.sequence))
    return into
