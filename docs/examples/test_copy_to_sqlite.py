"""Tests of the copy, with the fixtures that come with ``lance-sdk``."""

import sqlite3
from contextlib import closing
from pathlib import Path
from threading import Event, Thread
from typing import Any

from copy_to_sqlite import copy

from lance_sdk import Producer


def copied(path: Path) -> list[bytes]:
    """Return the values in the table; none before the program has made it."""
    with closing(sqlite3.connect(path, timeout=30)) as rows:
        try:
            found = rows.execute("SELECT value FROM records ORDER BY at").fetchall()
        except sqlite3.OperationalError:
            return []
    return [value for (value,) in found]


def test_a_copy_goes_on_where_it_stopped(lance_fake_server: Any, tmp_path: Path) -> None:
    """Each record is in the table once."""
    url, path = lance_fake_server.url("orders"), tmp_path / "orders.db"
    for values in ([b"one", b"two"], [b"three"]):
        with Producer(url) as producer:
            producer.send_many(values)
        stop = Event()
        program = Thread(target=copy, args=(url, str(path), stop))
        program.start()
        while values[-1] not in copied(path):
            stop.wait(0.01)
        stop.set()
        program.join()
    assert copied(path) == [b"one", b"two", b"three"]
