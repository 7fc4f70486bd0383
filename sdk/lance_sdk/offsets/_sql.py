"""The statements of the SQL stores, written once for SQLite and PostgreSQL."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NoReturn, Protocol, TypeAlias

from lance_sdk.errors import ConfigError
from lance_sdk.offsets.contract import Commit, Fingerprint, TopicIdentity
from lance_sdk.offsets.errors import OffsetMoved, StaleGeneration, StaleTopic, StoreCorrupt

TABLE: Final = "lance_offsets"
_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")
_COLUMNS: Final = (
    "consumer",
    "topic",
    "named",
    "topic_id",
    "created_at",
    "epoch",
    "position",
    "mark_start",
    "mark_length",
    "mark_digest",
    "generation",
    "committed_at_ns",
)
_KEY: Final = ("consumer", "topic")
_COMMITTED: Final = tuple(name for name in _COLUMNS if name not in _KEY)


@dataclass(frozen=True, slots=True)
class Statements:
    """SQL for one table.

    Args:
        table: its name.
        mark: what stands for a parameter, ``?`` or ``%s``.

    Raises:
        ConfigError: when the table's name is not a plain identifier.
    """

    table: str
    mark: str

    def __post_init__(self) -> None:
        """Refuse a name that would have to be quoted."""
        if not _IDENTIFIER.fullmatch(self.table):
            raise ConfigError(
                f"table={self.table[:80]!r}: expected letters, digits and '_', at most 63"
            )

    @property
    def create(self) -> str:
        """Create the table; ``position`` is NULL where a topic was claimed and not committed."""
        return f"""
            CREATE TABLE IF NOT EXISTS {self.table} (
                consumer        TEXT   NOT NULL,
                topic           TEXT   NOT NULL,
                named           BIGINT NOT NULL,
                topic_id        BIGINT NOT NULL,
                created_at      BIGINT,
                epoch           BIGINT,
                position        BIGINT,
                mark_start      BIGINT,
                mark_length     BIGINT,
                mark_digest     TEXT,
                generation      BIGINT NOT NULL,
                committed_at_ns BIGINT NOT NULL,
                PRIMARY KEY (consumer, topic)
            )"""

    @property
    def claim(self) -> str:
        """Raise the generation; changes no row when it is stale."""
        return (
            f"{self._insert(_COLUMNS)} ON CONFLICT (consumer, topic) DO UPDATE "
            f"SET generation = excluded.generation "
            f"WHERE {self.table}.generation <= excluded.generation"
        )

    @property
    def save(self) -> str:
        """Keep a commit; changes no row when its generation or its topic is stale."""
        updates = ", ".join(f"{name} = excluded.{name}" for name in _COMMITTED)
        return (
            f"{self._insert(_COLUMNS)} ON CONFLICT (consumer, topic) DO UPDATE SET {updates} "
            f"WHERE {self.table}.generation <= excluded.generation AND {self._not_older}"
        )

    @property
    def _not_older(self) -> str:
        """Whether the row that is offered is not one of an earlier topic (`older_than`)."""
        kept = self.table
        pairs = ", ".join(
            f"CASE WHEN {kept}.{name} <> excluded.{name} THEN {kept}.{name} < excluded.{name} END"
            for name in ("epoch", "created_at")
        )
        last = f"{kept}.topic_id <= excluded.topic_id"
        return f"({kept}.named = 0 OR {kept}.position IS NULL OR COALESCE({pairs}, {last}))"

    @property
    def advance(self) -> str:
        """Keep a commit where the last one is at a given offset, else change no row."""
        updates = ", ".join(f"{name} = {self.mark}" for name in _COMMITTED)
        return (
            f"UPDATE {self.table} SET {updates} WHERE consumer = {self.mark} "  # noqa: S608 - the name was checked
            f"AND topic = {self.mark} AND generation <= {self.mark} AND position = {self.mark}"
        )

    @property
    def begin(self) -> str:
        """Keep the first commit, unless there is one already."""
        updates = ", ".join(f"{name} = excluded.{name}" for name in _COMMITTED)
        return (
            f"{self._insert(_COLUMNS)} ON CONFLICT (consumer, topic) DO UPDATE SET {updates} "
            f"WHERE {self.table}.generation <= excluded.generation "
            f"AND {self.table}.position IS NULL"
        )

    @property
    def find(self) -> str:
        """Find one row."""
        return f"{self._select} WHERE consumer = {self.mark} AND topic = {self.mark}"

    @property
    def all(self) -> str:
        """Find every commit."""
        return f"{self._select} WHERE position IS NOT NULL"

    @property
    def of_consumer(self) -> str:
        """Find the commits of one consumer."""
        return f"{self._select} WHERE position IS NOT NULL AND consumer = {self.mark}"

    @property
    def forget(self) -> str:
        """Remove one row."""
        return f"DELETE FROM {self.table} WHERE consumer = {self.mark} AND topic = {self.mark}"  # noqa: S608 - the name was checked

    @property
    def _select(self) -> str:
        return f"SELECT {', '.join(_COLUMNS)} FROM {self.table}"  # noqa: S608 - the name was checked

    def _insert(self, columns: Sequence[str]) -> str:
        marks = ", ".join(self.mark for _ in columns)
        return f"INSERT INTO {self.table} ({', '.join(columns)}) VALUES ({marks})"  # noqa: S608 - the name was checked


class _Cursor(Protocol):
    @property
    def rowcount(self) -> int: ...

    def fetchone(self) -> Sequence[Any] | None: ...

    def fetchall(self) -> Sequence[Sequence[Any]]: ...


Execute: TypeAlias = Callable[[str, Sequence[Any]], _Cursor]
"""Runs a statement; what both drivers' connections call ``execute``."""


def claim(sql: Statements, execute: Execute, blank: Commit) -> Commit | None:
    """Raise a generation and return the commit that is there.

    Raises:
        StaleGeneration: it is higher already.
    """
    found = None
    if execute(sql.claim, row(blank, written=False)).rowcount:
        found = execute(sql.find, key(blank.consumer, blank.topic)).fetchone()
    else:
        _refuse(sql, execute, blank, None)
    return None if found is None else read(found, sql.table)


def save(sql: Statements, execute: Execute, commit: Commit, after: int | None = None) -> None:
    """Keep a commit.

    Args:
        sql: the statements.
        execute: runs one.
        commit: what to keep.
        after: offset at which the last commit must stand; 0 also where there is none.

    Raises:
        StaleGeneration: the generation is higher already.
        StaleTopic: there is a commit of a later topic of the same name.
        OffsetMoved: the last commit stands elsewhere.
    """
    if after is None:
        changed = execute(sql.save, row(commit)).rowcount
    else:
        place = (*key(commit.consumer, commit.topic), commit.generation, after)
        changed = execute(sql.advance, (*committed(commit), *place)).rowcount
        if not changed and after == 0:
            changed = execute(sql.begin, row(commit)).rowcount
    if not changed:
        _refuse(sql, execute, commit, after)


def _refuse(sql: Statements, execute: Execute, commit: Commit, after: int | None) -> NoReturn:
    """Say why no row was changed."""
    found = execute(sql.find, key(commit.consumer, commit.topic)).fetchone()
    values = {} if found is None else dict(zip(_COLUMNS, found, strict=True))
    generation, position = values.get("generation", 0), values.get("position")
    kept = None if found is None else read(found, sql.table)
    if kept is not None and commit.topic.older_than(kept.topic):
        raise StaleTopic(commit.topic.label)
    if generation > commit.generation or after is None:
        raise StaleGeneration(commit.topic.label, commit.generation, generation)
    raise OffsetMoved(commit.topic.label, after, position)


def commits(sql: Statements, execute: Execute, consumer: str | None) -> list[Commit]:
    """Return the commits of one consumer, or of all."""
    cursor = execute(sql.all, ()) if consumer is None else execute(sql.of_consumer, (consumer,))
    found = (read(each, sql.table) for each in cursor.fetchall())
    return sorted(filter(None, found), key=lambda each: (each.consumer, each.topic.label))


def forget(sql: Statements, execute: Execute, consumer: str, topic: TopicIdentity) -> bool:
    """Remove a row; return whether it was a commit."""
    found = execute(sql.find, key(consumer, topic)).fetchone()
    execute(sql.forget, key(consumer, topic))
    return found is not None and read(found, sql.table) is not None


def key(consumer: str, topic: TopicIdentity) -> tuple[str, str]:
    """Return the parameters that name a row."""
    return consumer, topic.label


def row(commit: Commit, *, written: bool = True) -> tuple[Any, ...]:
    """Return the parameters of all columns.

    Args:
        commit: what to keep.
        written: whether it is a commit; False after a claim alone.
    """
    return (*key(commit.consumer, commit.topic), *committed(commit, written=written))


def committed(commit: Commit, *, written: bool = True) -> tuple[Any, ...]:
    """Return the parameters of the columns that are not a key."""
    topic, mark = commit.topic, commit.fingerprint
    return (
        int(topic.name is not None),
        topic.id,
        topic.created_at,
        topic.epoch,
        commit.offset if written else None,
        None if mark is None else mark.start,
        None if mark is None else mark.length,
        None if mark is None else mark.digest,
        commit.generation,
        commit.committed_at_ns,
    )


def read(found: Sequence[Any], table: str) -> Commit | None:
    """Return the commit of a row; None for a claim alone.

    Raises:
        StoreCorrupt: the row holds what no commit can have.
    """
    values = dict(zip(_COLUMNS, found, strict=True))
    if values["position"] is None:
        return None
    place = f"table {table}, consumer {values['consumer']!r}, topic {values['topic']!r}"
    try:
        return Commit(
            consumer=values["consumer"],
            topic=TopicIdentity(
                id=values["topic_id"],
                name=values["topic"] if values["named"] else None,
                created_at=values["created_at"],
                epoch=values["epoch"],
            ),
            offset=values["position"],
            fingerprint=_fingerprint(values),
            generation=values["generation"],
            committed_at_ns=values["committed_at_ns"],
        )
    except ConfigError as error:
        raise StoreCorrupt(place, str(error)) from None


def _fingerprint(values: dict[str, Any]) -> Fingerprint | None:
    if values["mark_digest"] is None:
        return None
    return Fingerprint(values["mark_start"], values["mark_length"], values["mark_digest"])
