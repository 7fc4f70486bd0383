"""Waiting for room in a producer's buffer: the steps that both APIs share."""

from time import monotonic

from lance_sdk._api.arguments.unit_parsing import seconds
from lance_sdk._api.producer_core import ProducerCore
from lance_sdk._protocol.completion import Completion
from lance_sdk._protocol.produce.delivery_failures import no_room
from lance_sdk.errors import BufferFull


class RoomWait:
    """One wait for room, within ``block_timeout``.

    A producer gets a `gate`, waits for it as long as time is `left`, and tries again. The sync API
    calls these methods under the driver's lock.

    Args:
        core: the parts of the producer.
        size: bytes that the records take in the buffer.

    Attributes:
        limit: ``block_timeout`` in seconds.
    """

    def __init__(self, core: ProducerCore, size: int) -> None:
        self._sender = core.sender
        self._size = size
        self.limit = seconds("block_timeout", core.config.block_timeout)
        self._deadline = monotonic() + self.limit

    def gate(self) -> Completion:
        """Return an outcome that settles when the records may be tried again."""
        return self._sender.gate(self._size)

    def left(self) -> float:
        """Return how many seconds are left."""
        return max(0.0, self._deadline - monotonic())

    def error(self, full: BufferFull) -> BufferFull:
        """Return the error when the time is over; ``full`` says why there was no room at first."""
        return no_room(full, self.limit, self._sender.oldest(), self._sender.place())
