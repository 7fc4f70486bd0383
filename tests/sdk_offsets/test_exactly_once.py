"""Offset and result in one transaction: each record counts once, whatever is killed when."""

import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from lance_sdk import Client, Producer
from lance_sdk.offsets import (
    Commit,
    OffsetMoved,
    OffsetStore,
    PostgresStore,
    SqliteStore,
    StaleGeneration,
    TopicIdentity,
)
from lance_server import running

WORKER = Path(__file__).with_name("once.py")


class Database(NamedTuple):
    """A database of the application that has the offsets, too."""

    url: str
    store: OffsetStore
    transaction: Callable[[], AbstractContextManager[Any]]

    def results(self) -> list[int]:
        """Return what the application has stored."""
        with self.transaction() as connection:
            return [row[0] for row in connection.execute("SELECT number FROM results").fetchall()]


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """Return each database with an empty table of results."""
    if request.param == "sqlite":
        path = tmp_path / "app.db"
        made = Database(f"sqlite:{path}", SqliteStore(path), _sqlite(path))
    else:
        url = request.getfixturevalue("postgres_url")
        made = Database(url, PostgresStore(url), _postgres(url))
        for kept in made.store.commits():
            made.store.forget(kept.consumer, kept.topic)
    with made.transaction() as connection:
        connection.execute("DROP TABLE IF EXISTS results")
        connection.execute("CREATE TABLE results (number BIGINT NOT NULL)")
    yield made
    made.store.close()


def _sqlite(path: Path) -> Callable[[], AbstractContextManager[Any]]:
    @contextmanager
    def transaction() -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(path)) as connection, connection:
            yield connection

    return transaction


def _postgres(url: str) -> Callable[[], AbstractContextManager[Any]]:
    import psycopg  # noqa: PLC0415 - optional: the fixture skips without it

    return lambda: psycopg.connect(url)


def commit(topic: TopicIdentity, offset: int, generation: int = 0) -> Commit:
    """Return a commit of the consumer ``billing``."""
    return Commit(consumer="billing", topic=topic, offset=offset, generation=generation)


def count_one(database: Any, made: Commit, after: int, *, fail: bool = False) -> None:
    """Store one result together with its commit."""
    with database.transaction() as connection:
        connection.execute("INSERT INTO results VALUES (1)")
        database.store.save_in(connection, made, after=after)
        if fail:
            raise ZeroDivisionError


def test_both_or_neither(database: Any, orders: TopicIdentity) -> None:
    """What is rolled back takes the offset along."""
    orders = replace(orders, name="both")
    with pytest.raises(ZeroDivisionError):
        count_one(database, commit(orders, 10), 0, fail=True)
    assert (database.results(), database.store.claim("billing", orders)) == ([], None)


def test_second_consumer_of_the_same_name_counts_nothing(
    database: Any, orders: TopicIdentity
) -> None:
    """Two consumers that read the same records cannot both store their results."""
    orders = replace(orders, name="second")
    count_one(database, commit(orders, 10), 0)
    with pytest.raises(OffsetMoved, match="was to stand at 0 and stands at 10"):
        count_one(database, commit(orders, 10), 0)
    assert database.results() == [1]


def test_going_on_from_the_last_commit(database: Any, orders: TopicIdentity) -> None:
    """Commits follow each other, each from where the last one stands."""
    orders = replace(orders, name="chain")
    for before, after in ((0, 10), (10, 20), (20, 30)):
        with database.transaction() as connection:
            database.store.save_in(connection, commit(orders, after), after=before)
    assert database.store.claim("billing", orders).offset == 30


def test_lost_topic_cannot_be_committed(database: Any, orders: TopicIdentity) -> None:
    """Once another member has claimed the topic, the old one's transaction fails."""
    orders = replace(orders, name="fenced")
    database.store.claim("billing", orders, generation=2)
    with pytest.raises(StaleGeneration):
        count_one(database, commit(orders, 10, generation=1), 0)
    assert database.results() == []


@pytest.mark.parametrize("kill_at", ["before-commit", "after-commit"])
def test_killed_between_processing_and_offset(database: Any, kill_at: str) -> None:
    """A worker killed on either side of its COMMIT, over and over: each record once."""
    with running() as server:
        with Producer(f"{server.url}/orders", create_topic=True) as producer:
            for number in range(60):
                producer.send(b"%d" % number)
        with Client(server.url) as client:
            assert client.get_topic("orders").record_count == 60
        killed = 0
        while True:
            command = [sys.executable, WORKER, server.url, database.url, kill_at]
            code = subprocess.run(command, check=False, timeout=60).returncode
            if code == 0:
                break
            assert code == -signal.SIGKILL
            killed += 1
            assert killed < 20
        assert killed >= 2
    assert sorted(database.results()) == list(range(60))
