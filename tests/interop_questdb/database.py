"""What the Go client's own tests ask of a database, answered from what our endpoint stored.

They write over QWP and read over HTTP, at one port: `/ping`, and `/exec` with a little SQL. So a
port is opened here that answers these two, and passes every other connection on to the endpoint.
"""

import datetime as dt
import json
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http import HTTPStatus
from typing import Any, Final
from unittest import mock
from urllib.parse import parse_qs, urlsplit

from lance_server.listeners.qwp.rows import Reader
from lance_server.listeners.qwp.testing import Endpoint
from lance_spec.messages.qwp import ColumnType

_SELECT: Final = re.compile(
    r"SELECT (?P<columns>.+?) FROM (?P<table>table_columns\('.+?'\)|'.+?')"
    r"(?: WHERE \"?(?P<key>\w+)\"? = (?P<value>'.*?'|\d+))?"
    r"(?: ORDER BY (?P<order>\w+))?(?: LIMIT (?P<limit>\d+))?;?"
)
_DROP: Final = re.compile(r"DROP TABLE IF EXISTS '(.+?)';?")
_NAMES: Final = {ColumnType.TIMESTAMP_NANOS: "TIMESTAMP_NS"}
_WITHOUT_NULL: Final = {ColumnType.BYTE: 0, ColumnType.SHORT: 0, ColumnType.BOOLEAN: False}
"""Types that have no null in QuestDB, and what it stores for one."""
_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


class Database:
    """The tables behind an endpoint.

    Args:
        qwp: the endpoint.

    Attributes:
        types: type of each column of each table, as the messages define them.
    """

    def __init__(self, qwp: Endpoint) -> None:
        self._qwp = qwp
        self._dropped: dict[str, int] = {}
        self.types: dict[str, dict[str, ColumnType]] = {}

    def learn(self, table: Any) -> None:
        """Take in the columns of a block of rows."""
        known = self.types.setdefault(table.name, {})
        for column in table.columns:
            known[column.name or "timestamp"] = ColumnType(column.type)

    def exec(self, query: str) -> dict[str, Any]:
        """Answer a query as the HTTP interface does."""
        dropped = _DROP.fullmatch(query)
        if dropped:
            self._dropped[dropped[1]] = len(self._qwp.rows(dropped[1]))
        found = _SELECT.fullmatch(query)
        if found is None:
            return {"ddl": "OK"}
        rows = self._rows(found["table"])
        if found["key"]:
            rows = [row for row in rows if str(row.get(found["key"])) == found["value"].strip("'")]
        if found["order"]:
            rows.sort(key=lambda row: row[found["order"]])
        return self._result(found, rows[: int(found["limit"] or len(rows))])

    def _result(self, found: re.Match[str], rows: list[dict[str, Any]]) -> dict[str, Any]:
        table = found["table"].strip("'")
        types = self.types.get(table, {})
        names = list(types) if found["columns"] == "*" else found["columns"].split(", ")
        if names == ["count()"]:
            rows = [{"count()": len(rows)}]
        columns = [{"name": each, "type": _type_name(types.get(each))} for each in names]
        data = [[_cell(row.get(each), types.get(each)) for each in names] for row in rows]
        return {"query": found.string, "columns": columns, "dataset": data, "count": len(data)}

    def _rows(self, table: str) -> list[dict[str, Any]]:
        if table.startswith("table_columns"):
            types = self.types.get(table[15:-2], {})
            return [{"column": each, "type": _type_name(types[each])} for each in types]
        name = table.strip("'")
        nanos = self.types.get(name, {}).get("timestamp") is ColumnType.TIMESTAMP_NANOS
        records = self._qwp.records(name)[self._dropped.get(name, 0) :]
        return [row | {"timestamp": _instant(stamp, nanos=nanos)} for stamp, row in records]


def _instant(stamp_ns: int, *, nanos: bool) -> str:
    moment = _EPOCH + dt.timedelta(seconds=stamp_ns // 1_000_000_000)
    fraction = stamp_ns % 1_000_000_000
    digits = f"{fraction:09}" if nanos else f"{fraction // 1000:06}"
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{digits}Z"


def _type_name(kind: ColumnType | None) -> str:
    return "LONG" if kind is None else _NAMES.get(kind, kind.name)


def _cell(value: Any, kind: ColumnType | None) -> Any:
    return _WITHOUT_NULL.get(kind) if value is None and kind is not None else value


class Front:
    """The port in front of an endpoint.

    Args:
        qwp: the endpoint.
        database: answers queries.

    Attributes:
        addr: ``host:port``.
    """

    def __init__(self, qwp: Endpoint, database: Database) -> None:
        self._qwp = qwp
        self._database = database
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.addr = "{}:{}".format(*self._listener.getsockname())
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Take no more connections."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                peer, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(peer,), daemon=True).start()

    def _serve(self, peer: socket.socket) -> None:
        with peer, suppress(OSError):
            data = bytearray()
            while b"\r\n\r\n" not in data:
                received = peer.recv(65536)
                if not received:
                    return
                data += received
            path = urlsplit(data.split(b" ", 2)[1].decode())
            if path.path in {"/ping", "/exec"}:
                peer.sendall(self._answer(path.path, path.query))
            else:
                self._relay(peer, bytes(data))

    def _answer(self, path: str, query: str) -> bytes:
        status, body = HTTPStatus.NO_CONTENT, b""
        if path == "/exec":
            (statement,) = parse_qs(query)["query"]
            status, body = HTTPStatus.OK, json.dumps(self._database.exec(statement)).encode()
        head = f"HTTP/1.1 {status.value} {status.phrase}\r\nConnection: close\r\n"
        size = f"Content-Length: {len(body)}\r\n" if body else ""
        return f"{head}{size}\r\n".encode() + body

    def _relay(self, peer: socket.socket, first: bytes) -> None:
        host, _, port = self._qwp.addr.rpartition(":")
        with socket.create_connection((host, int(port))) as endpoint:
            endpoint.sendall(first)
            back = threading.Thread(target=_pass_on, args=(endpoint, peer), daemon=True)
            back.start()
            _pass_on(peer, endpoint)
            back.join()


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)


@contextmanager
def database(qwp: Endpoint) -> Iterator[Front]:
    """Put a database's port in front of an endpoint for the length of a ``with`` block."""
    tables = Database(qwp)
    right = Reader._columns

    def columns(reader: Reader, table: Any, now_ns: int) -> Any:
        tables.learn(table)
        return right(reader, table, now_ns)

    with mock.patch.object(Reader, "_columns", columns):
        front = Front(qwp, tables)
        try:
            yield front
        finally:
            front.close()
