"""A subscription of the golden client, on a connection of its own."""

import struct
from typing import TYPE_CHECKING

from lance_conformance.client.golden.client import Client
from lance_conformance.client.golden.values import CONTROL, ProblemError, Record

if TYPE_CHECKING:
    from lance_conformance.client.golden.connection import Connection

_FETCHED = struct.Struct("<QII")
HEADER = _FETCHED.size
"""Bytes of a FetchResponse before its data."""


class Subscription:
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
        self._begun = self._offset = offset
        self._max_bytes = max_bytes
        self._part = b""
        self._connection: Connection | None = None

    async def begin(self) -> None:
        """Subscribe, where the server pushes.

        Raises:
            ProblemError: The server refused, or there is no answer.
        """
        if not self._rules.pushes():
            return
        deadline = self._client.until()
        connection = await self._client.dial(deadline)
        payload = self._rules.subscribe(self.topic, self._offset, self._max_bytes, self.consumer)
        connection.write(self._rules.control(0x20, payload))
        try:
            frame = await self._client.answer(connection, 0x23, deadline)
            self._offset = self._rules.subscribed(frame.payload, self.consumer)
            self._part = b""
        except ProblemError:
            connection.drop()
            raise
        self._connection = connection

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
            if self._connection is None or self._connection.problem is not None:
                problem = self._connection.problem if self._connection else None
                if problem is not None and problem.kind == "protocol":
                    self._connection = None
                    raise problem
                self._offset = self._rules.resumed(self._begun, self._offset)
                await self.begin()
            if records := self._pushed():
                return records
            assert self._connection is not None
            if self._connection.problem is None and not self._connection.frames:
                await self._connection.wait(deadline)
        return []

    def _pushed(self) -> list[Record]:
        assert self._connection is not None
        while self._connection.frames:
            frame = self._connection.frames.popleft()
            if frame.batch_id == 0xFF and self._rules.kind(frame.flags) == CONTROL:
                raise self._client.told(frame.payload)
            ours = frame.batch_id == 0x11 and self._rules.is_ours(self.topic, frame)
            if ours and (records := self._whole(frame.payload)):
                return records
        return []

    def _whole(self, payload: bytes) -> list[Record]:
        """The records that a push completes; a part of one waits for the next push."""
        if len(payload) >= HEADER and self._part:
            following, size, count = _FETCHED.unpack_from(payload)
            head = _FETCHED.pack(following, len(self._part) + size, count or 1)
            payload = head + self._part + payload[HEADER:]
        found = self._rules.fetched(payload, self._offset)
        self._part = self._rules.carried(payload[HEADER + found.next_offset - self._offset :])
        self._offset = found.next_offset
        return found.records

    async def end(self) -> None:
        """Unsubscribe and hang up."""
        if self._connection is not None and self._connection.problem is None:
            payload = self._rules.unsubscribe(self.topic, self.consumer)
            self._connection.write(self._rules.control(0x21, payload))
            self._connection.drop()

    async def commit(self, offset: int) -> None:
        """Commit an offset.

        Raises:
            ProblemError: The server refused, or told something else.
        """
        payload = self._rules.commit(self.topic, self.consumer, offset)
        frame = await self._client.ask(0x22, payload, 0x24)
        self._rules.committed(frame.payload, self.consumer, offset)
