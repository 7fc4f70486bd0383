"""The published clients with symbols: models of how they number, keep and send them.

The Go client writes the symbols of its session into each frame, from id 0 on, and keeps no
dictionary. The Python client writes those that no frame of the slot had, keeps all of them in
``.symbol-dict``, which it does not sync, and sends them first on each connection.
"""

import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Final, Protocol

from tests.journal.published import GoClient, PublishedClient, PythonClient, RefusedError, Server
from tests.simulation.slot.model import Row, SlotModel

from lance_sdk.journal._slot.symbol_file import HEADER, NAME, decode_file, encode_chunk
from lance_sdk.journal.qwp import RowOptions
from lance_sdk.journal.qwp._connection.exchange import catch_up_messages
from lance_sdk.journal.qwp.dictionary import SymbolDictionary, delta_of
from lance_sdk.journal.qwp.message import encode
from lance_sdk.journal.qwp.writer import RowWriter
from lance_server.listeners.qwp import QwpOptions
from lance_server.listeners.qwp.refusals import QwpRefusal
from lance_server.listeners.qwp.rows import Reader
from lance_spec.errors import DecodeError
from lance_spec.messages.lwp import Timestamped
from lance_spec.messages.qwp import Payload, QwpMessage
from lance_spec.records import decode_records

_ROOM: Final = 1 << 20
_NOW_NS: Final = 7


class Host:
    """The far end of one connection.

    Args:
        model: judges what arrives.
    """

    def __init__(self, model: SlotModel) -> None:
        self._model = model
        self._reader = Reader(QwpOptions())

    def read(self, message: bytes) -> None:
        """Read a message.

        Raises:
            QwpRefusal: the connection cannot have it.
            ViolationError: a row is not what was written.
        """
        tables = self._reader.read(message, _NOW_NS)[1]
        rows = [_row(chunk) for table in tables for chunk in table.chunks]
        self._model.arrived(message, rows)

    def update(self, frames: Iterable[bytes], /) -> None:
        """Read frames of a published client, all of which it takes for acknowledged then.

        Raises:
            RefusedError: the connection cannot have one of them.
        """
        for each in frames:
            try:
                self.read(each)
            except QwpRefusal as refusal:
                raise RefusedError(str(refusal)) from None
            self._model.sent(each)


def _row(chunk: tuple[bytes, int]) -> Row:
    ((_, value),) = decode_records(chunk[0])
    cells = json.loads(Timestamped.decode(value).data)
    return Row(cells["v"], cells["s"])


def _frame(row: Row, ids: dict[str, int], first: int, new: Sequence[str]) -> bytes:
    writer = RowWriter(RowOptions(), SymbolDictionary(), _ROOM)
    cells = {"s": row.symbol, "v": row.number}
    return encode([writer.batch("t", [cells], symbols={"s"}, at=None)], ids, first, new)


class Symbolic(PublishedClient, Protocol):
    """A published client that writes rows with symbols."""

    def frame(self, row: Row) -> bytes:
        """Return the frame of a row."""
        ...


class GoWriter(GoClient):
    """The Go client: each frame brings all symbols of its session."""

    _ids: dict[str, int] | None = None

    def frame(self, row: Row) -> bytes:
        """Return the frame of a row."""
        ids = self._ids = self._ids or {}
        ids.setdefault(row.symbol, len(ids))
        return _frame(row, ids, 0, list(ids))


class PythonWriter(PythonClient):
    """The Python client: each frame brings the symbols that no frame before it had."""

    _symbols: list[str] | None = None
    _end = 0
    _taught = False

    @property
    def symbols(self) -> list[str]:
        """The dictionary, which is read when it is needed first."""
        if self._symbols is None:
            self._symbols = self._load()
        return self._symbols

    def _load(self) -> list[str]:
        data = b""
        with suppress(FileNotFoundError):
            data = self.disk.read(self.slot / NAME, _ROOM)
        loaded = decode_file(data) if data else None
        symbols = list(loaded.symbols) if loaded else []
        self._end = loaded.end if loaded else 0
        kept = len(symbols)
        for payload in (each for segment in self.ring for each in segment.payloads):
            self._learn(symbols, payload)
        if len(symbols) > kept:
            self._keep(symbols[kept:])
        return symbols

    def _learn(self, symbols: list[str], payload: bytes) -> None:
        """Take over what a frame brings; one that contradicts the dictionary is torn for it."""
        start, count = delta_of(payload)
        if start > len(symbols):
            raise RefusedError("a frame needs symbols that are in no dictionary")
        if count:
            with suppress(DecodeError):
                new = Payload.decode(QwpMessage.decode(payload).payload).dictionary.symbols
                known = symbols[start : start + count]
                if known != new[: len(known)]:
                    raise RefusedError("a frame contradicts the dictionary")
                symbols += new[len(known) :]

    def frame(self, row: Row) -> bytes:
        """Return the frame of a row; a new symbol goes to the dictionary first."""
        symbols = self.symbols
        first = len(symbols)
        if row.symbol not in symbols:
            self._keep([row.symbol])
            symbols.append(row.symbol)
        return _frame(row, {row.symbol: symbols.index(row.symbol)}, first, symbols[first:])

    def _keep(self, new: list[str]) -> None:
        path = self.slot / NAME
        if self._end:
            file = self.disk.open(path, writable=True)
            file.truncate(self._end)
        else:
            if NAME in self.disk.names(self.slot):
                self.disk.remove(path)
            file = self.disk.create(path, len(HEADER))
            file.write(0, HEADER)
            self._end = len(HEADER)
        chunk = encode_chunk(new)
        file.write(self._end, chunk)
        self._end += len(chunk)
        file.close()

    def send(self, most: int, server: Server) -> None:
        """Send all symbols first, then frames."""
        if not self._taught:
            server.update(catch_up_messages(self.symbols, None))
            self._taught = True
        super().send(most, server)
