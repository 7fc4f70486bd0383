"""The seam between a journal and a network protocol.

A *transport* is a protocol session without I/O: it satisfies `Transport`, which is what every I/O
driver runs (`lance_sdk._io.driver_contract`), so that one transport serves threads, asyncio and
trio. It knows hosts, handshakes and frames on the wire, and nothing of files. What there is to
send, what an acknowledgement means and what becomes of a rejected frame is decided by the
`lance_sdk.journal._sending.outbox.Outbox` that it is given::

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
   connection unless the transport asks for it `again`; after `connected` they start again with
   the first that is not acknowledged.
2. An acknowledgement is passed on only when the server really gave it. `acked` and `settled`
   raise `AckOutOfRange` for what was not sent on this connection: drop the connection (SF-35).
3. All calls come from the driver, under its lock.
4. When the outbox has frames, the driver is woken; `next_frame` returned None before.
5. When `next_frame` returns None and `Outbox.failure` is set, a frame that cannot be sent has
   halted the outbox: fail with it.
6. `next_frame` may settle waiters, reject and halt. A driver takes events after `handle_timeout`
   but not always after `data_to_send`, so ask for frames in both.
7. A transport does not limit its attempts against a server that accepts and closes: each goes
   through `lance_sdk.journal._sending.reconnecting`. Only acknowledgements reset its backoff.
"""

from collections.abc import Callable
from typing import Protocol, TypeAlias

from lance_sdk._io.driver_contract import ProtocolCore
from lance_sdk._protocol.completion import Completion
from lance_sdk.journal._renamed import renamed
from lance_sdk.journal._sending.outbox import Outbox, Outgoing

__all__ = ["Outgoing", "Transport", "TransportFactory"]


class Transport(ProtocolCore, Protocol):
    """A protocol session that carries the frames of one outbox.

    Attributes:
        opened: settles when the first connection may carry frames, or with the error that ended
            the session before.
    """

    opened: Completion

    def open(self, now: float) -> None:
        """Start connecting."""
        ...


TransportFactory: TypeAlias = Callable[[Outbox], Transport]
"""Makes the transport of an outbox; called once the journal is open."""

__getattr__ = renamed(__name__, {"Carrier": "Transport", "CarrierFactory": "TransportFactory"})
