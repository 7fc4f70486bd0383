"""The messages on one open connection: dictionary, frames, answers, pings."""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from lance_sdk._errors.base import LanceError
from lance_sdk.errors import ConnectionLost
from lance_sdk.journal._sending.outbox import Outbox
from lance_sdk.journal._slot.symbol_file import encode_entries, leb128
from lance_sdk.journal.qwp._connection.acks import SentMessages
from lance_sdk.journal.qwp._connection.link import Closed, WebSocketLink
from lance_sdk.journal.qwp._connection.policies import (
    ABOUT_SYMBOLS,
    error_of,
    no_frame,
    refusal,
    rule_of_close,
    rule_of_status,
    too_large,
    violation,
)
from lance_sdk.journal.qwp._connection.upgrade import Granted
from lance_sdk.journal.qwp.config import QwpSettings
from lance_sdk.journal.qwp.dictionary import SymbolDictionary, delta_of
from lance_sdk.journal.qwp.errors import NotWritable, SymbolsLost
from lance_sdk.journal.rejections import AfterRejection, Policy, Rejection
from lance_sdk.journal.transport import Outgoing
from lance_spec.messages.qwp import DurableAck, ErrorResponse, MessageFlag, OkResponse, QwpMessage

_PLENTY: Final = 1 << 20
"""Bytes of a catch-up message where the host did not say what it takes."""
_HEAD: Final = QwpMessage.MIN_SIZE + 20
"""Bytes of a catch-up message beside its symbols, at most."""


def catch_up_messages(
    symbols: Sequence[str], max_message: int | None, *, first: int = 0
) -> Iterator[bytes]:
    """Yield messages that define symbols, in order.

    Args:
        symbols: the symbols.
        max_message: largest message that the host takes, in bytes; None when it did not say. A
            symbol that does not fit goes into a message of its own, for the host to judge.
        first: id of the first of them.
    """
    limit = (_PLENTY if max_message is None else min(max_message, _PLENTY)) - _HEAD
    start = size = 0
    for number, symbol in enumerate(symbols):
        length = len(symbol.encode()) + 10
        if size and size + length > limit:
            yield _message(first + start, symbols[start:number])
            start, size = number, 0
        size += length
    if size:
        yield _message(first + start, symbols[start:])


def _message(first: int, symbols: Sequence[str]) -> bytes:
    payload = leb128(first) + leb128(len(symbols)) + encode_entries(symbols)
    flags = int(MessageFlag.DELTA_DICTIONARY)
    return QwpMessage(flags=flags, table_count=0, payload=payload).encode()


_MOST_QUEUED: Final = 1 << 20
"""Bytes after which the network has its turn before more frames are queued."""


class Exchange:
    """The frames of an outbox on one connection.

    Args:
        link: the connection, after the upgrade.
        outbox: what is to be sent.
        dictionary: the symbols of the slot; the host gets all of them first.
        settings: deadlines.
        grant: what the host agreed to.
        now: the time.
        elsewhere: whether another host may take a message of so many bytes.

    Attributes:
        ended: why the connection is of no use any more, or None while it is.
        try_at_once: whether the next connection need not wait: a frame was dealt with.
    """

    def __init__(
        self,
        link: WebSocketLink,
        outbox: Outbox,
        dictionary: SymbolDictionary,
        *,
        settings: QwpSettings,
        grant: Granted,
        now: float,
        elsewhere: Callable[[int], bool] = lambda _: False,
    ) -> None:
        self._link = link
        self._outbox = outbox
        self._settings = settings
        self._max_message = grant.max_message
        self._elsewhere = elsewhere
        self._sent_messages = SentMessages(durable=settings.durable)
        self._sent_at = self._quiet_since = self._answered_at = now
        self._pinged_at = -math.inf
        self._questioned = False
        self.ended: LanceError | None = None
        self.try_at_once = False
        self._dictionary = dictionary
        self._known_symbols = 0
        self._lost: SymbolsLost | None = None
        self._teach(len(dictionary))

    def __repr__(self) -> str:
        return f"<Exchange {self._sent_messages!r} ended={self.ended!r}>"

    def _end(self, error: LanceError) -> None:
        self.ended = self.ended or error

    # Frames out

    def fill(self, now: float) -> None:
        """Queue frames, as many as the network should have at once."""
        link = self._link
        while link.queued < _MOST_QUEUED and link.is_open and not (self.ended or self._lost):
            frame = self._outbox.next_frame(now)
            if frame is None:
                return
            self._send(frame, now)

    def _send(self, frame: Outgoing, now: float) -> None:
        size = len(frame.payload)
        if self._max_message is not None and size > self._max_message:
            if self._elsewhere(size):
                words = f"frame {frame.fsn} has {size} bytes, and this host takes"
                self._end(ConnectionLost(f"{words} {self._max_message}; another host is tried"))
                return
            then = self._outbox.rejected(too_large(frame, self._max_message), now)
            if then is not AfterRejection.CONTINUE:
                self._end(ConnectionLost("a frame is too large for this host"))
            return
        start, count = delta_of(frame.payload)
        if count and not self._dictionary.agrees(frame.payload):
            # Another client numbers symbols in its own way: whoever needs ours learns them again.
            self._known_symbols = 0
        unproven = frame.payload in self._dictionary.unproven
        if unproven or (start > self._known_symbols and not self._teach(start)):
            slot, known = self._outbox.journal.path, 0 if unproven else self._known_symbols
            self._lost = SymbolsLost(slot, frame.fsn, known, start)
            self._halt_at_lost()
            return
        if not count or self._dictionary.agrees(frame.payload):
            self._known_symbols = max(self._known_symbols, start + count)
        if not self._sent_messages.unanswered:
            self._quiet_since = now
        if not self._sent_messages.awaits_ok:
            self._answered_at = now
        self._link.send(frame.payload)
        self._sent_messages.sent_frame(frame.fsn)

    def _halt_at_lost(self) -> None:
        """Halt before a frame whose symbols are lost, once those before it are dealt with."""
        if self._lost is not None and self._outbox.settled_fsn >= self._lost.fsn - 1:
            self._outbox.failed(self._lost)

    def _teach(self, upto: int) -> bool:
        """Send the symbols below an id that the host does not know; return whether there are.

        All of them when the connection is new. Later, those of a frame that was not sent: it was
        damaged, or given up as too large.
        """
        known = self._known_symbols
        missing = self._dictionary.snapshot()[known:upto]
        if len(missing) < upto - known:
            return False
        for message in catch_up_messages(missing, self._max_message, first=known):
            self._link.send(message)
            self._sent_messages.sent_catch_up()
        self._known_symbols = upto
        return True

    def sent(self, now: float) -> None:
        """Take note that bytes left."""
        self._sent_at = now

    # Answers in

    def heard(self, now: float) -> None:
        """Take note that bytes arrived."""
        self._quiet_since = now
        self._questioned = False

    def answered(self, data: bytes, now: float) -> None:
        """Take one answer.

        Raises:
            RemoteProtocolError: it is about something that was not sent (SF-35).
            DecodeError: it is not an answer.
        """
        status = data[0] if data else -1
        if status == OkResponse.STATUS:
            settled = self._sent_messages.ok(OkResponse.decode(data))
            self._taken(now)
            self._settled(settled, now)
        elif status == DurableAck.STATUS:
            self._settled(self._sent_messages.durable_ack(DurableAck.decode(data)), now)
        else:
            self._refused(error_of(data), now)
        self._halt_at_lost()

    def _taken(self, now: float) -> None:
        fsn = self._sent_messages.taken()
        if fsn is not None:
            self._answered_at = now
            self._outbox.taken(fsn)

    def _settled(self, fsn: int | None, now: float) -> None:
        if fsn is not None:
            self._outbox.acked(fsn, now)

    def _refused(self, answer: ErrorResponse, now: float) -> None:
        """Do what the policy says; a host that refused takes nothing more on this connection."""
        fsn = self._sent_messages.frame_of(answer.wire_sequence)
        words = self._settings.credentials.redaction().text(answer.text.decode(errors="replace"))
        rule = rule_of_status(answer.status)
        if rule.policy is None:
            self._end(NotWritable(f"the host takes no writes for now: {words}"))
        elif fsn is not None:
            rejection = refusal(answer, words, fsn, self._outbox.journal)
            self._judged(rejection, now, rule.decided)
        elif self._sent_messages.is_catch_up(answer.wire_sequence):
            rejection = no_frame(answer, f"the slot's symbols: {words}", self._outbox.settled_fsn)
            self._judged(rejection, now, ABOUT_SYMBOLS.decided)
        else:
            self._end(ConnectionLost(f"an error about a frame that was acknowledged: {words}"))

    def _judged(self, rejection: Rejection, now: float, policy: Policy | None = None) -> None:
        then = self._outbox.rejected(rejection, now, policy=policy)
        self.try_at_once = then is AfterRejection.CONTINUE
        self._end(ConnectionLost(str(rejection)))

    def closed(self, closed: Closed, now: float) -> None:
        """The host said goodbye: halt where section 15.1 says so, and reconnect otherwise."""
        words = f"ws-close[{closed.code}]: {closed.reason}"
        rule = rule_of_close(closed.code)
        if rule.policy is not None:
            last = self._outbox.journal.next_fsn - 1
            rejection = violation(words, self._outbox.settled_fsn + 1, last)
            self._judged(rejection, now, rule.policy)
        else:
            self._end(ConnectionLost(words))

    # Signs of life

    def next_deadline(self) -> float:
        """Return when `handle_timeout` has something to do."""
        return min(self._ping_at(), self._dead_at(), self._late_at())

    def handle_timeout(self, now: float) -> None:
        """Ping, or give the connection up, where that is due."""
        if now >= self._dead_at():
            seconds = 2 * self._settings.answer_timeout
            self._end(ConnectionLost(f"the host is silent for {seconds:.0f} s"))
        elif now >= self._late_at():
            seconds = self._settings.ack_timeout
            self._end(ConnectionLost(f"the host lives, and took no frame for {seconds:.0f} s"))
        elif now >= self._ping_at():
            self._link.ping()
            self._pinged_at = now
            self._questioned = True

    def _late_at(self) -> float:
        """Return when a frame without an OK means that the host does not work any more."""
        if not self._sent_messages.awaits_ok:
            return math.inf
        return self._answered_at + self._settings.ack_timeout

    def _ping_at(self) -> float:
        """Return when a ping is due, for durable acknowledgements or for a sign of life."""
        due = math.inf
        if self._sent_messages.waits_for_disk and self._settings.keepalive > 0:
            due = max(self._sent_at, self._pinged_at) + self._settings.keepalive
        if self._sent_messages.unanswered and not self._questioned:
            due = min(due, self._quiet_since + self._settings.answer_timeout)
        return due

    def _dead_at(self) -> float:
        """Return when silence means that the connection is dead."""
        if not self._sent_messages.unanswered or not self._questioned:
            return math.inf
        return self._quiet_since + 2 * self._settings.answer_timeout
