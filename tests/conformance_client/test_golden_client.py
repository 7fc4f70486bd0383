"""The right client that proves the cases: it goes on whatever comes in one read."""

import asyncio

from lance_conformance.client.golden.client import WINDOW, Client
from lance_conformance.client.golden.specified import Specified
from lance_conformance.client.golden.values import ACK, INGEST, Batch, Record, Settings
from lance_conformance.server.golden.codec import SIZE, Wire, parse

HOST = "127.0.0.1"
TIMEOUT = 30.0
"""Seconds that nothing here needs; a client that waits for nothing shows after them."""


class AcksTogether(asyncio.Protocol):
    """A server that acknowledges a whole window of batches in one write, then each by itself."""

    def __init__(self) -> None:
        self._data = b""
        self._owed: list[bytes] = []
        self._together = WINDOW

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Take the batches of one read."""
        self._data += data
        while len(self._data) >= SIZE and len(self._data) >= SIZE + parse(self._data).length:
            header = parse(self._data)
            self._data = self._data[SIZE + header.length :]
            assert header.flags == INGEST
            self._owed.append(ack(header.batch_id))
        if len(self._owed) >= self._together:
            self._transport.write(b"".join(self._owed))
            self._owed, self._together = [], 1


def ack(batch_id: int) -> bytes:
    """An Ack."""
    return Specified().encode(
        Wire(b"LANC", 1, ACK, 0, 0, batch_id, 0, 0, 0, 0, 0)
    )  # fmt: skip


async def settled(count: int) -> list[Batch]:
    """The batches of a client that has sent so many, at their end."""
    server = await asyncio.get_running_loop().create_server(AcksTogether, HOST, 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        client = Client(Specified(), Settings(HOST, port, TIMEOUT, None, None, 0.0))
        for each in range(count):
            client.put(7, [Record(1, b"%d" % each)])
            await client.push()
        await client.settle()
        await client.close()
    return client.batches


def test_a_batch_beyond_the_window_leaves_when_one_read_brings_all_acks() -> None:
    """Nothing else will come that could wake the client; it must not wait for it."""
    batches = asyncio.run(settled(WINDOW + 1))
    assert [batch.ticket for batch in batches if not batch.acked] == []
