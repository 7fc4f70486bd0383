"""Stand-ins for tests: an endpoint with its server, a sender that sends exactly what it is told."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from lance_server.config.settings import Address
from lance_server.embedded import EmbeddedServer, running
from lance_server.listeners.qwp.listener import QwpListener
from lance_server.listeners.qwp.options import QwpOptions
from lance_server.listeners.qwp.script import Rule, Script
from lance_server.storage.contract import StorageBackend
from lance_server.testing.client import RawClient
from lance_spec.bodies import decode_topics
from lance_spec.enums import Command
from lance_spec.messages.lwp import Timestamped
from lance_spec.messages.qwp import DurableAck, ErrorResponse, MessageFlag, OkResponse, QwpMessage
from lance_spec.records import decode_records

_DEADLINE: Final = 10.0
DELTA: Final = int(MessageFlag.DELTA_DICTIONARY)
DEFER: Final = DELTA | int(MessageFlag.DEFER_COMMIT)
PUBLISHED: Final = bytes.fromhex(
    "51575031 01 08 0100 27000000 00 01 02 4130 01 74 01 03 03 73796d 09 01 76 05 00 0a"
    "00 00 00 0000000000000000 00 00401e18240a0600"
)
"""A message of a published sender: symbol ``A0``, one row of table ``t``."""


def message(payload: bytes, tables: int = 1, flags: int = DELTA) -> bytes:
    """Return a message around a payload."""
    return QwpMessage(flags=flags, table_count=tables, payload=payload).encode()


def longs(table: str, *values: int, flags: int = DELTA) -> bytes:
    """Return a message with rows of one LONG column ``v``."""
    name = table.encode()
    head = b"\x00\x00" + bytes([len(name)]) + name + bytes([len(values), 1]) + b"\x01v\x05\x00"
    data = b"".join(each.to_bytes(8, "little", signed=True) for each in values)
    return message(head + data, flags=flags)


class Endpoint:
    """A running endpoint and the log behind it.

    Args:
        server: the server that the endpoint belongs to.
        listener: the endpoint.

    Attributes:
        listener: the endpoint.
        script: its script, which may be changed.
    """

    def __init__(self, server: EmbeddedServer, listener: QwpListener) -> None:
        self._server = server
        self.listener = listener
        self.script = listener.script

    def __repr__(self) -> str:
        return f"<Endpoint {self.addr}>"

    @property
    def addr(self) -> str:
        """Where to connect, as ``host:port``."""
        return str(self.listener.address)

    @property
    def url(self) -> str:
        """Where to read what was written, as a ``lance://`` URL."""
        return self._server.url

    def when(self, **rule: Any) -> Rule:
        """Add a rule to the script."""
        return self.script.add(Rule(**rule))

    def records(self, table: str) -> list[tuple[int, dict[str, Any]]]:
        """Return (timestamp in ns, columns) of every row of a table, in order."""
        with RawClient(self._server.address) as client:
            topics = decode_topics(client.ask(Command.LIST_TOPICS).payload)
            found = [topic.id for topic in topics if topic.name == table]
            data = client.read_all(topic_id=found[0]) if found else b""
        stamped = [Timestamped.decode(value) for _, value in decode_records(data)]
        return [(each.timestamp_ns, json.loads(each.data)) for each in stamped]

    def rows(self, table: str) -> list[dict[str, Any]]:
        """Return the columns of every row of a table, in order."""
        return [columns for _, columns in self.records(table)]

    def values(self, table: str, column: str = "v") -> list[Any]:
        """Return one column of every row of a table, in order."""
        return [columns.get(column) for columns in self.rows(table)]


@contextmanager
def endpoint(
    data_dir: Path,
    *rules: Rule,
    options: QwpOptions | None = None,
    storage: StorageBackend | None = None,
    port: int = 0,
    **server: Any,
) -> Iterator[Endpoint]:
    """Run a server with an endpoint for the length of a ``with`` block.

    Args:
        data_dir: where to keep the data.
        rules: the script.
        options: settings of the endpoint.
        storage: the backend of the log, for tests that make disks fail.
        port: the endpoint's port; 0 lets the system choose.
        server: fields of `ServerConfig`.
    """
    listener = QwpListener(Address("127.0.0.1", port), options, Script(*rules))
    with running(data_dir, storage=storage, listeners=[listener], **server) as embedded:
        yield Endpoint(embedded, listener)


class QwpPeer:
    """A sender of messages, whatever they hold.

    Args:
        addr: where the endpoint listens.
        path: the path to ask for.
        headers: headers of the upgrade.
        scheme: ``ws`` or ``wss``.
        options: anything else that `websockets.sync.client.connect` takes.
    """

    def __init__(
        self,
        addr: str,
        *,
        path: str = "/api/v4/write",
        headers: Sequence[tuple[str, str]] = (),
        scheme: str = "ws",
        **options: Any,
    ) -> None:
        self._opening = connect(
            f"{scheme}://{addr}{path}",
            additional_headers={"X-QWP-Max-Version": "1", **dict(headers)},
            compression=None,
            proxy=None,
            ping_interval=None,
            open_timeout=_DEADLINE,
            close_timeout=1,
            **options,
        )
        self.socket: ClientConnection = self._opening.__enter__()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._opening.__exit__(kind, error, trace)

    def granted(self, name: str) -> str | None:
        """Return a header of the answer to the upgrade."""
        assert self.socket.response is not None
        return self.socket.response.headers.get(name)

    def send(self, *messages: bytes) -> None:
        """Send messages."""
        for each in messages:
            self.socket.send(each)

    def send_until_closed(self, *messages: bytes) -> int | None:
        """Send messages, some of which the endpoint may not take any more, and return its code.

        The endpoint may close the connection at any of them; the rest is not sent then.
        """
        try:
            self.send(*messages)
        except ConnectionClosed as end:
            return _close_code(end)
        return self.closed()

    def receive(self) -> OkResponse | DurableAck | ErrorResponse:
        """Return the next answer.

        Raises:
            TimeoutError: none came.
            ConnectionClosed: the endpoint closed the connection.
        """
        data = self.socket.recv(timeout=_DEADLINE, decode=False)
        if data[0] == OkResponse.STATUS:
            return OkResponse.decode(data)
        if data[0] == DurableAck.STATUS:
            return DurableAck.decode(data)
        return ErrorResponse.decode(data)

    def ok(self, *messages: bytes) -> OkResponse:
        """Send messages and return the OK for the last of them."""
        self.send(*messages)
        while True:
            answer = self.receive()
            assert isinstance(answer, OkResponse), f"expected an OK, got {answer}"
            if answer.wire_sequence >= len(messages) - 1:
                return answer

    def refused(self, *messages: bytes) -> ErrorResponse:
        """Send messages and return the error."""
        self.send(*messages)
        while True:
            answer = self.receive()
            if isinstance(answer, ErrorResponse):
                return answer

    def closed(self) -> int | None:
        """Return the code with which the endpoint closes the connection; 1006 without any."""
        try:
            while True:
                self.socket.recv(timeout=_DEADLINE, decode=False)
        except ConnectionClosed as end:
            return _close_code(end)

    def silent(self, seconds: float = 0.2) -> bool:
        """Return whether nothing comes for so long."""
        try:
            self.socket.recv(timeout=seconds, decode=False)
        except TimeoutError:
            return True
        return False


def _close_code(end: ConnectionClosed) -> int:
    """Return the code with which the other side closed; 1006 without any."""
    return 1006 if end.rcvd is None else end.rcvd.code
