"""Copies a topic into a table of SQLite, each record exactly once, whatever is killed when.

Run it under any process manager; it goes on where it stopped::

    python copy_to_sqlite.py lance://localhost:1992/orders orders.db

Rows and the place that was reached are stored in one transaction.
"""

import signal
import sqlite3
import sys
from threading import Event

from lance_sdk import Client, Consumer
from lance_sdk.offsets import Commit, SqliteStore, TopicIdentity
from lance_sdk.url import parse_url


def copy(url: str, path: str, stopped: Event) -> None:
    """Copy until ``stopped`` is set."""
    with Client(url) as client:
        topic = TopicIdentity.of(client.get_topic(parse_url(url).topic or ""))
    rows = sqlite3.connect(path)
    rows.execute(
        "CREATE TABLE IF NOT EXISTS records (at INTEGER PRIMARY KEY, key TEXT, value BLOB)"
    )
    store = SqliteStore(path)
    found = store.claim("copy", topic)
    last = 0 if found is None else found.offset
    with Consumer(url, start=last) as consumer:
        while not stopped.is_set():
            batch = consumer.poll(timeout=0.1)
            if batch is None:
                continue
            with rows:  # one transaction
                rows.executemany(
                    "INSERT INTO records VALUES (?, ?, ?)",
                    ((each.offset, each.key, each.value) for each in batch),
                )
                commit = Commit.of(batch, consumer="copy", topic=topic)
                store.save_in(rows, commit, after=last)
            last = commit.offset
    store.release("copy", topic)
    store.close()
    rows.close()


if __name__ == "__main__":
    stop = Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    copy(sys.argv[1], sys.argv[2], stop)
