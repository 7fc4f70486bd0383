"""The async row sender: the twin of `lance_sdk.journal.qwp.sender`, on asyncio and trio."""
# ruff: noqa: ASYNC109 - both APIs take the same parameters

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, Self

import anyio
from anyio import to_thread

from lance_sdk._errors.base import LanceError
from lance_sdk._io.tasks.uncancelled import finish
from lance_sdk.errors import UsageError
from lance_sdk.journal._sending.aio_sender import AsyncForwardingSender
from lance_sdk.journal._sending.core import SenderCore
from lance_sdk.journal.errors import NotYetDurable
from lance_sdk.journal.qwp._connection.transport import QwpTransports
from lance_sdk.journal.qwp.config import QwpConfig, from_connect_string, from_environment
from lance_sdk.journal.qwp.dataframe import Symbols, frame_rows
from lance_sdk.journal.qwp.writer import At, RowWriter, append
from lance_sdk.journal.sender_stats import SenderReport


class AsyncQwpSender(AsyncForwardingSender):
    """Sends rows like `QwpSender`, which explains what is promised.

    Tasks of one event loop may share a sender.

    Args:
        config: the settings.
    """

    def __init__(self, config: QwpConfig) -> None:
        self._config = config
        self._transports = QwpTransports(config.carrier)
        super().__init__(config.forward, self._transports, f"AsyncQwpSender {config.target}")
        self._writer: RowWriter | None = None
        self._flushing: anyio.Lock | None = None

    @classmethod
    def from_conf(cls, conf: str, **options: Any) -> Self:
        """Make a sender from a connect string; open it with ``async with`` or `open`.

        Args:
            conf: ``ws::addr=host:port;key=value;...``, or ``wss::`` for TLS.
            options: fields of `ForwardConfig` that a string cannot express, such as
                ``error_handler``.

        Raises:
            ConfigError: naming the key at fault.
        """
        return cls(from_connect_string(conf, options))

    @classmethod
    def from_env(cls, **options: Any) -> Self:
        """Make a sender from the connect string in ``QDB_CLIENT_CONF``; see `from_conf`.

        Raises:
            ConfigError: it is not set, or has a fault.
        """
        return cls(from_environment(options))

    def _prepared(self, core: SenderCore) -> None:
        dictionary = self._transports.dictionary(core.journal)
        limit = self._config.forward.journal.frame_limit
        self._writer = RowWriter(self._config.rows, dictionary, limit)
        self._flushing = anyio.Lock()

    @property
    def _rows(self) -> RowWriter:
        """The rows that are not stored yet."""
        self._usable()
        assert self._writer is not None, "the sender is open"
        return self._writer

    @property
    def pending_rows(self) -> int:
        """Rows that no flush has put into the journal yet."""
        return 0 if self._writer is None else self._writer.rows

    async def row(
        self,
        table: str,
        *,
        symbols: Mapping[str, str | None] | None = None,
        columns: Mapping[str, object] | None = None,
        at: At = None,
    ) -> Self:
        """Take one row; flush when that is due. See `QwpSender.row`.

        Raises:
            RowError: it cannot be sent; the rows before it are as they were.
            JournalFull: a flush was due, and there is no room; the row was taken.
            LanceError: what halted the sender.
        """
        self._rows.add(table, symbols, columns, at)
        await self._flush_if_due()
        return self

    async def rows(
        self,
        table: str,
        rows: Iterable[Mapping[str, object]],
        *,
        symbols: Iterable[str] = (),
        at: str | None = None,
    ) -> Self:
        """Take rows given as dicts: all of them, or none. See `QwpSender.rows`.

        Raises:
            RowError: one of them cannot be sent; nothing was taken.
        """
        writer = self._rows
        writer.add_batch(writer.batch(table, rows, symbols=frozenset(symbols), at=at))
        await self._flush_if_due()
        return self

    async def dataframe(
        self, frame: object, table: str, *, symbols: Symbols = (), at: str | None = None
    ) -> Self:
        """Take the rows of a frame: all, or none. See `QwpSender.dataframe`.

        The frame is converted in a worker thread.

        Raises:
            RowError: a column cannot be sent; nothing was taken.
            ConfigError: PyArrow is not installed.
        """
        longest = self._config.rows.max_name
        batch = await to_thread.run_sync(
            partial(frame_rows, frame, table, symbols=symbols, at=at, max_name=longest)
        )
        self._rows.add_batch(batch)
        await self._flush_if_due()
        return self

    async def _flush_if_due(self) -> None:
        if self._rows.flush_due:
            await self.flush()

    async def flush(self) -> int:
        """Put every row into the journal; return the number of the last frame there.

        It never waits for the network, only for room: at most ``sf_append_deadline_millis``, also
        where the caller is cancelled meanwhile, because a frame that was stored must be known to
        be.

        Raises:
            JournalFull: there was no room; the rows stay, and the next flush tries again.
            NotYetDurable: the disk did not confirm in time; the rows are stored.
            LanceError: what halted the sender.
        """
        writer, core = self._rows, self._usable()
        assert self._flushing is not None
        async with self._flushing:  # frames build upon each other's symbols: one at a time
            writer.seal()
            while (frame := writer.front()) is not None:
                # To its end, else a stored frame could be stored again.
                await finish(partial(self._store_front, writer, core, frame))
            return await super().flush()

    async def _store_front(self, writer: RowWriter, core: SenderCore, frame: bytes) -> None:
        try:
            await self._store(partial(append, core.journal, frame), None)
        except NotYetDurable:
            writer.stored()
            raise
        writer.stored()

    def clear(self) -> int:
        """Give up the rows that are not in the journal yet; return how many there were.

        Raises:
            UsageError: a flush is under way.
        """
        if self._flushing is not None and self._flushing.statistics().locked:
            raise UsageError("rows cannot be given up while they are being flushed")
        dropped = self._rows.rows
        self._rows.clear()
        return dropped

    async def close(self, timeout: float | None = None) -> SenderReport:
        """Flush, wait for acknowledgements, let go of everything.

        Raises:
            LanceError: why the last rows could not be stored, or what halted the sender;
                everything is released all the same.
        """
        problem = await self._last_flush()
        report = await super().close(timeout)
        if problem is not None:
            raise problem.with_traceback(None)
        return report

    async def _last_flush(self) -> LanceError | None:
        if self._writer is None or self._report is not None or not self._writer.rows:
            return None
        try:
            await finish(self.flush)
        except UsageError:
            return None
        except LanceError as error:
            return error
        return None
