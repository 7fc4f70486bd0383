"""How far a write is, seen from outside: by how many records the topics grow.

Spark tells nothing of a task before it ends, and one task writes a whole topic.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Final

from lance_sdk import Client
from lance_sdk.errors import LanceError, TopicNotFound
from lance_sdk.spark.options import Options

_EVERY: Final = 0.5
"""Seconds between two looks."""
_LOOK_TIMEOUT: Final = 5.0
"""Seconds that a look may take: nobody waits longer for a bar than for the work."""


@contextmanager
def watched(
    options: Options,
    topics: Iterable[str],
    total: int,
    tell: Callable[[int, int], object] | None,
) -> Iterator[None]:
    """Tell how far topics have grown, while something else writes to them.

    Args:
        options: where they are.
        topics: their names; those that do not exist yet have grown by nothing.
        total: records that are to be written.
        tell: called with records written and records in all; with ``total`` at a good end.
    """
    if tell is None:
        yield
        return
    growth = Growth(options, topics)
    stopped = Event()

    def look() -> None:
        while not stopped.wait(_EVERY):
            tell(min(growth.now(), total), total)

    tell(0, total)
    watcher = Thread(target=look, name="lwp-growth", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        stopped.set()
        watcher.join()
    tell(total, total)


class Growth:
    """By how many records topics have grown, where the server counts them.

    Args:
        options: where they are.
        topics: their names.
    """

    def __init__(self, options: Options, topics: Iterable[str]) -> None:
        limit = min(_LOOK_TIMEOUT, options.request_timeout)
        self._url = options.url()
        self._client_options = options.client_options() | {
            "request_timeout": limit,
            "connect_timeout": limit,
        }
        self._topics = tuple(topics)
        self._first: int | None = None
        self._seen = 0
        self.now()

    def __repr__(self) -> str:
        return f"<Growth of {len(self._topics)} topics: {self._seen} records>"

    def now(self) -> int:
        """Return how many records have come since this was made, as far as it can be seen."""
        try:
            count = self._count()
        except LanceError:  # the server is away: the write itself tells what is wrong
            return self._seen
        if self._first is None:
            self._first = count
        self._seen = max(self._seen, count - self._first)
        return self._seen

    def _count(self) -> int:
        with Client(self._url, **self._client_options) as client:
            return sum(_records(client, topic) for topic in self._topics)


def _records(client: Client, topic: str) -> int:
    try:
        return client.get_topic(topic).record_count or 0
    except TopicNotFound:  # not created yet
        return 0
