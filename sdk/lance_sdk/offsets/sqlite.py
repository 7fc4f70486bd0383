"""Offsets in a SQLite database, also within the application's own transaction."""

import os
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from lance_sdk.offsets import _sql
from lance_sdk.offsets.contract import Commit, TopicIdentity, check_consumer_name
from lance_sdk.offsets.errors import StoreUnavailable

__all__ = ["SqliteStore"]

_ADVICE: Final = "; its folder must exist, and this process must be allowed to write there"


class SqliteStore:
    """Keeps offsets in a table; satisfies `OffsetStore`.

    Args:
        path: the database file, created when it is missing.
        table: the table's name; created when it is missing.
        timeout: seconds to wait while another process writes.

    Raises:
        ConfigError: when the table's name is not a plain identifier.
        StoreUnavailable: the database cannot be opened.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        table: str = _sql.TABLE,
        timeout: float = 5.0,
    ) -> None:
        self._path = os.fspath(path)
        self._sql = _sql.Statements(table, "?")
        self._lock = threading.Lock()
        with self._told():
            self._connection = sqlite3.connect(
                self._path, timeout=timeout, isolation_level=None, check_same_thread=False
            )
        try:
            with self._told():
                # FULL makes every commit wait for the disk, which WAL alone would not.
                self._connection.execute("PRAGMA journal_mode = WAL")
                self._connection.execute("PRAGMA synchronous = FULL")
                self._connection.execute(self._sql.create)
        except BaseException:
            self._connection.close()
            raise

    def __repr__(self) -> str:
        return f"<SqliteStore {self._path} table={self._sql.table}>"

    def claim(self, consumer: str, topic: TopicIdentity, generation: int = 0) -> Commit | None:
        """Begin to use an offset; see `OffsetStore.claim`. No lock is held."""
        blank = Commit(
            consumer=check_consumer_name(consumer), topic=topic, offset=0, generation=generation
        )
        with self._told():
            return _sql.claim(self._sql, self._connection.execute, blank)

    def save(self, commit: Commit) -> None:
        """Keep a commit; see `OffsetStore.save`."""
        check_consumer_name(commit.consumer)
        with self._told():
            _sql.save(self._sql, self._connection.execute, commit)

    def save_in(
        self, connection: sqlite3.Connection, commit: Commit, *, after: int | None = None
    ) -> None:
        """Keep a commit in the application's own transaction, on its own connection.

        Result and offset are stored together or not at all, which makes processing exactly-once.

        Args:
            connection: to the same database file; a transaction is begun or open on it.
            commit: the commit.
            after: offset at which the last commit must stand, 0 also where there is none; with
                it, two consumers of one name cannot both count the same records.

        Raises:
            StaleGeneration: roll back: the topic has another owner.
            OffsetMoved: roll back: the last commit does not stand at ``after``.
        """
        _sql.save(self._sql, connection.execute, commit, after)

    def release(self, consumer: str, topic: TopicIdentity) -> None:
        """Do nothing: no lock is held."""

    def commits(self, consumer: str | None = None) -> Sequence[Commit]:
        """Return commits; see `OffsetStore.commits`."""
        with self._told():
            return _sql.commits(self._sql, self._connection.execute, consumer)

    def forget(self, consumer: str, topic: TopicIdentity) -> bool:
        """Remove a commit; see `OffsetStore.forget`."""
        with self._told():
            return _sql.forget(self._sql, self._connection.execute, consumer, topic)

    def close(self) -> None:
        """Close the database."""
        with self._lock:
            self._connection.close()

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Use the connection alone, and say in our words what SQLite says."""
        with self._lock:
            try:
                yield
            except sqlite3.Error as error:
                raise StoreUnavailable(
                    f"cannot use the offset database {self._path}: {error}"
                    f"{_ADVICE if 'unable to open' in str(error) else ''}"
                ) from error
