"""An application that stores each record's number once, and kills itself at its third batch.

``python once.py SERVER DATABASE before-commit|after-commit``
"""

import os
import signal
import sqlite3
import sys
from contextlib import closing
from typing import Any

from lance_sdk import Client, Consumer
from lance_sdk.offsets import Commit, TopicIdentity, open_store


def connect(url: str) -> Any:
    """Return a connection of the application's own."""
    if url.startswith("sqlite:"):
        return sqlite3.connect(url.removeprefix("sqlite:"))
    import psycopg  # noqa: PLC0415 - only for the database that needs it

    return psycopg.connect(url)


def main() -> None:
    """Read to the end, or to the third batch."""
    server, database, kill_at = sys.argv[1:]
    store: Any = open_store(database)
    with Client(server) as client:
        topic = TopicIdentity.of(client.get_topic("orders"))
    found = store.claim("once", topic)
    if found is not None:
        found.check_topic(topic)
    last = 0 if found is None else found.offset
    options: Any = {"start": last, "stop_at_end": True, "max_fetch_bytes": 70}
    with Consumer(f"{server}/orders", **options) as consumer, closing(connect(database)) as app:
        for count, batch in enumerate(consumer.batches()):
            for record in batch:
                app.execute(f"INSERT INTO results VALUES ({int(record.value)})")
            commit = Commit.of(batch, consumer="once", topic=topic)
            store.save_in(app, commit, after=last)
            last = commit.offset
            if count == 2 and kill_at == "before-commit":
                os.kill(os.getpid(), signal.SIGKILL)
            app.commit()
            if count == 2:
                os.kill(os.getpid(), signal.SIGKILL)
    store.close()


if __name__ == "__main__":
    main()
