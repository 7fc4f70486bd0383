"""A journal whose disk may be full; satisfies `lance_sdk._protocol.produce.journal_seam.Spill`."""

import errno

from tests.simulation.delivery.server import ServerModel, numbers_of
from tests.simulation.groups.loop import SimulatedLoop

from lance_sdk._protocol.produce.journal_seam import SpilledBatch, SpillOutcome

_EVERY = 0.05
_OWN = 1 << 60
"""Identifiers of batches that were not sent before begin here."""


class SimulatedJournal:
    """Keeps batches and brings them to the server, in their order.

    Args:
        server: where they go.
        loop: simulated time.

    Attributes:
        full: whether the disk has no room.
        away: whether there is no server.
    """

    def __init__(self, server: ServerModel, loop: SimulatedLoop) -> None:
        self._server = server
        self._loop = loop
        self._kept: list[tuple[int, SpilledBatch]] = []
        self._outcomes: list[SpillOutcome] = []
        self._tickets = 0
        self._open = False
        self._busy = False
        self.full = False
        self.away = False

    @property
    def drained(self) -> bool:
        """Whether nothing is left."""
        return not self._kept

    def open(self) -> None:
        """Begin to bring batches to the server."""
        self._open = True
        self._bring()

    def append(self, batch: SpilledBatch) -> int:
        """Keep a batch.

        Raises:
            OSError: the disk is full.
        """
        if self.full:
            raise OSError(errno.ENOSPC, "No space left on device")
        self._tickets += 1
        self._kept.append((self._tickets, batch))
        return self._tickets

    def take_settled(self) -> list[SpillOutcome]:
        """Take what was acknowledged."""
        taken, self._outcomes = self._outcomes, []
        return taken

    def close(self, timeout: float) -> int:
        """Let go of everything; return how many records stay."""
        del timeout
        self._open = False
        return sum(batch.record_count for _, batch in self._kept)

    def _bring(self) -> None:
        if not self._open:
            return
        self._loop.call_later(_EVERY, self._bring)
        if self.away or self._busy or not self._kept:
            return
        ticket, batch = self._kept[0]
        topic, batch_id = self._server.topic, batch.batch_id or _OWN + ticket
        end = topic.store(batch_id, numbers_of(batch.payload))
        self._server.sync(topic, end, lambda: self._stored(ticket, batch_id, topic.info.id))

    def _stored(self, ticket: int, batch_id: int, topic_id: int) -> None:
        if self._kept and self._kept[0][0] == ticket:
            self._kept.pop(0)
            self._outcomes.append(SpillOutcome(ticket, batch_id, topic_id))
