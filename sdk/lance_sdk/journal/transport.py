"""The seam between a journal and a network protocol.

A *carrier* is a protocol session without I/O: it satisfies `Carrier`, which is what every pump
drives (`lance_sdk._io.contract`), so that one carrier serves threads, asyncio and trio. It knows
hosts, handshakes and frames on the wire, and nothing of files. What there is to send, what an
acknowledgement means and what becomes of a rejected frame is decided by the
`lance_sdk.journal.outbox.Outbox` that it is given::

    a connection may carry frames   outbox.connected(now)      sending starts at acked_fsn + 1
    there is room on the wire       outbox.next_frame(now)     the next frame, or None
    an acknowledgement came         outbox.acked(fsn, now)     of all up to fsn, or
                                    outbox.settled(fsn, now)   of this one
    the server refuses a frame      outbox.rejected(r, now)    returns what to do
    it is to be sent again here     outbox.again(fsn)          `next_frame` returns it next
    the connection is gone          outbox.disconnected(now)
    the session failed for good     outbox.failed(error)

The rules:

1. Frames are sent in the order in which `next_frame` returns them, each at most once on a
   connection unless the carrier asks for it `again`; behind `connected` they start again with
   the first that is not acknowledged.
2. An acknowledgement is passed on only when the server really gave it. `acked` and `settled`
   raise `AckOutOfRange` for what was not sent on this connection: drop the connection (SF-35).
3. All calls come from the pump, under its lock.
4. When the outbox has frames, the pump is woken; `next_frame` returned None before.
5. When `next_frame` returns None and `Outbox.failure` is set, a frame that cannot be sent has
   halted the outbox: fail with it.
6. `next_frame` may settle waiters, reject and halt. A pump takes events after `handle_timeout`
   but not always after `data_to_send`, so ask for frames in both.
7. A carrier does not pace itself against a server that accepts and closes: every attempt goes
   through `lance_sdk.journal.pacing.Paced`. It resets its backoff only upon acknowledgements.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

from lance_sdk._core.outcome import Outcome
from lance_sdk._io.contract import Pumpable

if TYPE_CHECKING:
    from lance_sdk.journal.outbox import Outbox

__all__ = ["Carrier", "CarrierFactory", "Outgoing"]


class Outgoing(NamedTuple):
    """A frame on its way.

    Attributes:
        fsn: its number.
        payload: its bytes, as they were stored.
        replayed: whether it was sent before on an earlier connection.
    """

    fsn: int
    payload: bytes
    replayed: bool


class Carrier(Pumpable, Protocol):
    """A protocol session that carries the frames of one outbox.

    Attributes:
        opened: settles when the first connection may carry frames, or with the error that ended
            the session before.
    """

    opened: Outcome

    def open(self, now: float) -> None:
        """Start connecting."""
        ...


CarrierFactory: TypeAlias = Callable[["Outbox"], Carrier]
"""Makes the carrier of an outbox; called once the journal is open."""
