"""Copies a topic into a table of PostgreSQL, each record exactly once, whatever is killed when.

Needs ``pip install 'lance-sdk[postgres]'``::

    python copy_to_postgres.py lance://localhost:1992/orders postgresql://me@localhost/shop

Rows and the place that was reached are stored in one transaction.
"""

import signal
import sys
from threading import Event

import psycopg

from lance_sdk import Client, Consumer
from lance_sdk.offsets import Commit, PostgresStore, TopicIdentity
from lance_sdk.url import parse_url


def copy(url: str, database: str, stopped: Event) -> None:
    """Copy until ``stopped`` is set."""
    with Client(url) as client:
        topic = TopicIdentity.of(client.get_topic(parse_url(url).topic or ""))
    rows = psycopg.connect(database)
    with rows.transaction():
        rows.execute(
            "CREATE TABLE IF NOT EXISTS records (at BIGINT PRIMARY KEY, key TEXT, value BYTEA)"
        )
    store = PostgresStore(database)
    found = store.claim("copy", topic)
    last = 0 if found is None else found.offset
    with Consumer(url, start=last) as consumer:
        while not stopped.is_set():
            batch = consumer.poll(timeout=0.1)
            if batch is None:
                continue
            commit = Commit.of(batch, consumer="copy", topic=topic)
            with rows.transaction(), rows.cursor() as cursor:
                cursor.executemany(
                    "INSERT INTO records VALUES (%s, %s, %s)",
                    [(each.offset, _text(each.key), each.value) for each in batch],
                )
                store.save_in(rows, commit, after=last)
            last = commit.offset
    store.release("copy", topic)
    store.close()
    rows.close()


def _text(key: bytes | None) -> str | None:
    return None if key is None else key.decode()


if __name__ == "__main__":
    stop = Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    copy(sys.argv[1], sys.argv[2], stop)
