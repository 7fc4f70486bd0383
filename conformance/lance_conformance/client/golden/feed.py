"""A subscription of the golden client, on a connection of its own."""

import struct
from typing import TYPE_CHECKING

from lance_conformance.client.golden.client import Client
from lance_conformance.client.golden.values import CONTROL, ProblemError, Record

if TYPE_CHECKING:
    from lance_conformance.client.golden.link import Link


class Feed:
    """A subscription, on a connection of its own.

    Args:
        client: Whose it is.
        topic: What it is to.
        offset: Where it begins.
        max_bytes: Of one push.
        consumer: Who reads.
    """

    def __init__(
        self, client: Client, topic: int, offset: int, max_bytes: int, consumer: int
    ) -> None:
        self.topic = topic
        self.consumer = consumer
        self._client = client
        self._rules = client.rules
        self._offset = offset
        self._max_bytes = max_bytes
        self._link: Link | None = None

    async def begin(self) -> None:
        """Subscribe, where the server pushes.

        Raises:
            ProblemError: The server refused, or there is no answer.
        """
        if not self._rules.pushes():
            return
        deadline = self._client.until()
        link = await self._client.dial(deadline)
        payload = self._rules.subscribe(self.topic, self._offset, self._max_bytes, self.consumer)
        link.write(self._rules.control(0x20, payload))
        try:
            frame = await self._client.answer(link, 0x23, deadline)
            self._offset = self._rules.subscribed(frame.payload, self.consumer)
        except ProblemError:
            link.drop()
            raise
        self._link = link

    async def poll(self) -> list[Record]:
        """The next records; none when none come in time.

        Raises:
            ProblemError: The server does not do what it must.
        """
        if not self._rules.pushes():
            found = await self._client.fetch(self.topic, self._offset, self._max_bytes)
            self._offset = found.next_offset
            return found.records
        deadline = self._client.until()
        while self._client.clock() < deadline:
            if self._link is None or self._link.problem is not None:
                problem = self._link.problem if self._link else None
                if problem is not None and problem.kind == "protocol":
                    self._link = None
                    raise problem
                await self.begin()
            if records := self._pushed():
                return records
            assert self._link is not None
            if self._link.problem is None and not self._link.frames:
                await self._link.wait(deadline)
        return []

    def _pushed(self) -> list[Record]:
        assert self._link is not None
        while self._link.frames:
            frame = self._link.frames.popleft()
            if frame.batch_id == 0xFF and self._rules.kind(frame.flags) == CONTROL:
                raise self._client.told(frame.payload)
            if frame.batch_id == 0x11 and self._rules.is_ours(self.topic, frame):
                found = self._rules.fetched(frame.payload, self._offset)
                self._offset = found.next_offset
                return found.records
        return []

    async def end(self) -> None:
        """Unsubscribe and hang up."""
        if self._link is not None and self._link.problem is None:
            payload = self._rules.unsubscribe(self.topic, self.consumer)
            self._link.write(self._rules.control(0x21, payload))
            self._link.drop()

    async def commit(self, offset: int) -> None:
        """Commit an offset.

        Raises:
            ProblemError: The server refused, or told something else.
        """
        payload = self._rules.commit(self.topic, self.consumer, offset)
        frame = await self._client.ask(0x22, payload, 0x24)
        self._rules.committed(frame.payload, self.consumer, offset)


def consumer_number(name: str) -> int:
    """A number for the name of a consumer, never 0."""
    return int(struct.unpack("<Q", name.encode().ljust(8, b"\1")[:8])[0])
