"""The sync row sender.

::

    from lance_sdk.journal.qwp import QwpSender

    with QwpSender.from_conf("ws::addr=localhost:9000;sf_dir=/var/lib/app;") as sender:
        sender.row("trades", symbols={"symbol": "ETH-USD"}, columns={"price": 2615.54}, at=now)
"""

import threading
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, Self

from lance_sdk._errors.base import LanceError
from lance_sdk.errors import ClosedError, UsageError
from lance_sdk.journal._sending.core import SenderCore
from lance_sdk.journal._sending.sender import ForwardingSender
from lance_sdk.journal.errors import NotYetDurable
from lance_sdk.journal.qwp._connection.transport import QwpTransports
from lance_sdk.journal.qwp.config import QwpConfig, from_connect_string, from_environment
from lance_sdk.journal.qwp.dataframe import Symbols, frame_rows
from lance_sdk.journal.qwp.writer import At, RowWriter, append
from lance_sdk.journal.sender_stats import SenderReport


class QwpSender(ForwardingSender):
    """Sends rows to QuestDB, or to anything that speaks QWP, through a journal.

    Rows collect until a flush, which happens by itself after ``auto_flush_rows`` rows or
    ``auto_flush_interval``. A flush puts them into the journal and returns; sending goes on
    beside it, through outages and restarts. Delivery is in order and at least once: QWP gives
    frames no identity, so what was sent and not acknowledged when a connection broke is sent
    again (SF-34). Tables with DEDUP UPSERT KEYS keep such rows once.

    Threads may share a sender. Use `from_conf` or `from_env`, and a ``with`` block.

    Args:
        config: the settings.
    """

    def __init__(self, config: QwpConfig) -> None:
        self._config = config
        self._transports = QwpTransports(config.carrier)
        super().__init__(config.forward, self._transports, f"QwpSender {config.target}")
        self._writer: RowWriter | None = None
        self._lock = threading.RLock()

    @classmethod
    def from_conf(cls, conf: str, **options: Any) -> Self:
        """Make a sender from a connect string; open it with ``with`` or `open`.

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

    def row(
        self,
        table: str,
        *,
        symbols: Mapping[str, str | None] | None = None,
        columns: Mapping[str, object] | None = None,
        at: At = None,
    ) -> Self:
        """Take one row; flush when that is due.

        Args:
            table: its table.
            symbols: values of symbol columns: texts of which few repeat often.
            columns: values of the other columns; the type follows from the value, or from a
                function of `lance_sdk.journal.qwp.values`. None leaves a column null.
            at: when it happened: a datetime with a zone, ``timestamp_micros(n)`` or
                ``timestamp_nanos(n)``; None lets the server take its own time.

        Raises:
            RowError: it cannot be sent; the rows before it are as they were.
            JournalFull: a flush was due, and there is no room; the row was taken.
            LanceError: what halted the sender.
        """
        with self._lock:
            self._rows.add(table, symbols, columns, at)
            self._flush_if_due()
        return self

    def rows(
        self,
        table: str,
        rows: Iterable[Mapping[str, object]],
        *,
        symbols: Iterable[str] = (),
        at: str | None = None,
    ) -> Self:
        """Take rows given as dicts: all of them, or none.

        Args:
            table: their table.
            rows: each a mapping of column names to values.
            symbols: names of the columns that are symbols.
            at: name of the column with the designated timestamp; None means server time.

        Raises:
            RowError: one of them cannot be sent; nothing was taken.
        """
        with self._lock:
            writer = self._rows
            writer.add_batch(writer.batch(table, rows, symbols=frozenset(symbols), at=at))
            self._flush_if_due()
        return self

    def dataframe(
        self, frame: object, table: str, *, symbols: Symbols = (), at: str | None = None
    ) -> Self:
        """Take the rows of an Arrow table, a pandas DataFrame or a Polars one: all, or none.

        Args:
            frame: the rows.
            table: their table.
            symbols: names of the columns that are symbols; True means every column of texts.
                Categorical columns always are.
            at: name of the column with the designated timestamp; None means server time.

        Raises:
            RowError: a column cannot be sent; nothing was taken.
            ConfigError: PyArrow is not installed.
        """
        longest = self._config.rows.max_name
        batch = frame_rows(frame, table, symbols=symbols, at=at, max_name=longest)
        with self._lock:
            self._rows.add_batch(batch)
            self._flush_if_due()
        return self

    def _flush_if_due(self) -> None:
        if self._rows.flush_due:
            self.flush()

    def flush(self) -> int:
        """Put every row into the journal; return the number of the last frame there.

        It never waits for the network, only for room: at most ``sf_append_deadline_millis``.

        Raises:
            JournalFull: there was no room; the rows stay, and the next flush tries again.
            NotYetDurable: the disk did not confirm in time; the rows are stored.
            LanceError: what halted the sender.
        """
        with self._lock:
            writer, core = self._rows, self._usable()
            writer.seal()
            while (frame := writer.front()) is not None:
                try:
                    self._store(partial(append, core.journal, frame), None)
                except NotYetDurable:
                    writer.stored()
                    raise
                writer.stored()
            return super().flush()

    def clear(self) -> int:
        """Give up the rows that are not in the journal yet; return how many there were."""
        with self._lock:
            dropped = self._rows.rows
            self._rows.clear()
        return dropped

    def close(self, timeout: float | None = None) -> SenderReport:
        """Flush, wait for acknowledgements, let go of everything; see `ForwardingSender.close`.

        Raises:
            LanceError: why the last rows could not be stored, or what halted the sender;
                everything is released all the same.
        """
        problem = self._last_flush()
        report = super().close(timeout)
        if problem is not None:
            raise problem.with_traceback(None)
        return report

    def _last_flush(self) -> LanceError | None:
        if self._writer is None or self._report is not None or not self._writer.rows:
            return None
        try:
            self.flush()
        except (ClosedError, UsageError):
            return None
        except LanceError as error:
            return error
        return None
