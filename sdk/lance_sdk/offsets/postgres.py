"""Offsets in PostgreSQL, also within the application's own transaction (extra ``postgres``)."""

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

from lance_sdk.errors import ConfigError
from lance_sdk.offsets import _sql
from lance_sdk.offsets._extras import require
from lance_sdk.offsets.contract import Commit, TopicIdentity, check_consumer_name
from lance_sdk.offsets.errors import StoreUnavailable

if TYPE_CHECKING:
    import psycopg

__all__ = ["PostgresStore"]

T = TypeVar("T")

_TRIES: Final = 2
"""A connection that broke while it was idle is noticed at its next use, and made again once."""
_CREATE_LOCK: Final = 0x4C414E43
"""Advisory lock under which the table is created: two sessions at once would collide."""


class PostgresStore:
    """Keeps offsets in a table; satisfies `OffsetStore`.

    It connects at the first use, and again after the connection was lost.

    Args:
        conninfo: a ``postgresql://`` URL or libpq connection string.
        table: the table's name; created when it is missing.
        timeout: seconds for connecting, and for each statement.

    Raises:
        ConfigError: when ``psycopg`` is missing, the connection string cannot be read, or the
            table's name is not a plain identifier.
    """

    def __init__(self, conninfo: str, *, table: str = _sql.TABLE, timeout: float = 5.0) -> None:
        self._driver = require("psycopg", "postgres")
        self._sql = _sql.Statements(table, "%s")
        self._timeout = timeout
        self._lock = threading.Lock()
        self._connection: psycopg.Connection[Any] | None = None
        self._closed = False
        try:
            self._options = self._driver.conninfo.conninfo_to_dict(conninfo)
        except self._driver.ProgrammingError as error:
            reason = str(error).strip()
            raise ConfigError(
                f"the PostgreSQL connection string cannot be read: {reason}"
            ) from None

    def __repr__(self) -> str:
        return f"<PostgresStore {self._place} table={self._sql.table}>"

    @property
    def _place(self) -> str:
        """Where the database is, without a password."""
        host, port = self._options.get("host", ""), self._options.get("port", "")
        return f"{host}{f':{port}' * bool(port)}/{self._options.get('dbname', '')}"

    def claim(self, consumer: str, topic: TopicIdentity, generation: int = 0) -> Commit | None:
        """Begin to use an offset; see `OffsetStore.claim`. No lock is held."""
        blank = Commit(
            consumer=check_consumer_name(consumer), topic=topic, offset=0, generation=generation
        )
        return self._run(lambda execute: _sql.claim(self._sql, execute, blank))

    def save(self, commit: Commit) -> None:
        """Keep a commit; see `OffsetStore.save`."""
        check_consumer_name(commit.consumer)
        self._run(lambda execute: _sql.save(self._sql, execute, commit))

    def save_in(
        self, connection: "psycopg.Connection[Any]", commit: Commit, *, after: int | None = None
    ) -> None:
        """Keep a commit in the application's own transaction, on its own connection.

        Result and offset are stored together or not at all, which makes processing exactly-once.

        Args:
            connection: to the same database; the caller begins and ends the transaction.
            commit: the commit.
            after: offset at which the last commit must stand, 0 also where there is none; with
                it, two consumers of one name cannot both count the same records.

        Raises:
            StaleGeneration: roll back: the topic has another owner.
            OffsetMoved: roll back: the last commit does not stand at ``after``.
        """
        self._run(lambda _execute: None)  # the table has to be there
        _sql.save(self._sql, connection.execute, commit, after)

    def release(self, consumer: str, topic: TopicIdentity) -> None:
        """Do nothing: no lock is held."""

    def commits(self, consumer: str | None = None) -> Sequence[Commit]:
        """Return commits; see `OffsetStore.commits`."""
        return self._run(lambda execute: _sql.commits(self._sql, execute, consumer))

    def forget(self, consumer: str, topic: TopicIdentity) -> bool:
        """Remove a commit; see `OffsetStore.forget`."""
        return self._run(lambda execute: _sql.forget(self._sql, execute, consumer, topic))

    def close(self) -> None:
        """Disconnect."""
        with self._lock:
            self._closed = True
            self._disconnect()

    def _run(self, work: Callable[[_sql.Execute], T]) -> T:
        """Do something that does no harm when it is done twice."""
        with self._lock:
            for last in (False, True):
                try:
                    return work(self._connected().execute)
                except self._driver.Error as error:
                    broken = self._connection is None or self._connection.broken
                    if last or not broken:
                        raise self._unavailable(error) from error
                    self._disconnect()
        raise AssertionError

    def _connected(self) -> "psycopg.Connection[Any]":
        if self._closed:
            raise StoreUnavailable(f"{self!r} is closed")
        if self._connection is None:
            self._connection = self._connect()
        return self._connection

    def _connect(self) -> "psycopg.Connection[Any]":
        limit = f"-c statement_timeout={int(self._timeout * 1000)}"
        options = {
            **self._options,
            "connect_timeout": max(2, round(self._timeout)),
            "options": f"{self._options.get('options', '')} {limit}".strip(),
        }
        connection: psycopg.Connection[Any] = self._driver.connect(autocommit=True, **options)
        try:
            with connection.transaction():
                connection.execute("SELECT pg_advisory_xact_lock(%s)", (_CREATE_LOCK,))
                connection.execute(self._sql.create)
        except BaseException:
            connection.close()
            raise
        return connection

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _unavailable(self, error: Exception) -> StoreUnavailable:
        reason = str(error).strip() or type(error).__name__
        return StoreUnavailable(
            f"cannot use the offsets in PostgreSQL at {self._place}: {reason}", maybe_applied=True
        )
