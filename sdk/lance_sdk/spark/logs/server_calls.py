"""Asking a server: with patience, and with a consumer that reads ahead."""

import logging
from collections.abc import Callable, Iterator, Sequence
from time import monotonic
from typing import Any, Final, TypeVar

from lance_sdk import Consumer
from lance_sdk.errors import DeadlineExceeded, TransportError
from lance_sdk.offsets.contract import Commit, Fingerprint, TopicIdentity
from lance_sdk.spark.options import Options
from lance_sdk.types import RecordBatch

_log = logging.getLogger(__name__)
FIRST_WAIT: Final = 0.1
LONGEST_WAIT: Final = 2.0
T = TypeVar("T")
_CONSUMER: Final = "spark"
_AHEAD: Final = 4
"""Fetches that a reader holds ahead of the conversion."""


def patiently(work: Callable[[], T], options: Options, sleep: Callable[[float], None]) -> T:
    """Do what asks a server; wait for one that is away, for ``catchUpTimeout``, with one warning.

    Raises:
        TransportError: it was away all the time.
    """
    until, wait, warned = monotonic() + options.catch_up_timeout, FIRST_WAIT, False
    while True:
        try:
            return work()
        except TransportError as error:
            left = until - monotonic()
            if left <= 0:
                raise
            if not warned:
                _log.warning(
                    "%s: %s; waiting for it for %.0f s (catchUpTimeout)",
                    options.servers,
                    _briefly(error),
                    options.catch_up_timeout,
                )
                warned = True
        sleep(min(wait, left))
        wait = min(2 * wait, LONGEST_WAIT)


def _briefly(error: Exception) -> str:
    """Return an error in one line, without its advice."""
    lines = [line.strip() for line in str(error).splitlines()]
    return " ".join(lines[:-1] or lines)


class ReadBefore:
    """What a consumer compares before it goes on: an offset store that keeps this alone.

    Args:
        topic: which topic was read.
        fingerprint: of what was read last.
    """

    def __init__(self, topic: TopicIdentity, fingerprint: Fingerprint) -> None:
        self._topic = topic
        self._fingerprint = fingerprint

    def claim(self, consumer: str, topic: TopicIdentity, generation: int = 0) -> Commit:
        """Return where to go on."""
        del topic, generation
        known = self._fingerprint
        return Commit(consumer=consumer, topic=self._topic, offset=known.end, fingerprint=known)

    def save(self, commit: Commit) -> None:
        """Keep nothing: the query's checkpoint tells how far it has come."""

    def release(self, consumer: str, topic: TopicIdentity) -> None:
        """Keep nothing."""

    def commits(self, consumer: str | None = None) -> Sequence[Commit]:
        """Return none: nothing is kept."""
        del consumer
        return ()

    def forget(self, consumer: str, topic: TopicIdentity) -> bool:
        """Return that there was none."""
        del consumer, topic
        return False

    def close(self) -> None:
        """Have nothing to let go of."""


def open_consumer(
    options: Options,
    topic: str,
    start: Any,
    stop: int | None = None,
    before: ReadBefore | None = None,
) -> Consumer:
    """Return a consumer that ends at an offset, or where the log ends now.

    Args:
        options: of the query.
        topic: the topic's name.
        start: where it begins.
        stop: where it ends; by default where the log does.
        before: what was read before that, to be compared first.
    """
    resumed: dict[str, Any] = {}
    if before is not None:
        resumed = {"offsets": before, "consumer": _CONSUMER, "auto_commit": "off"}
    return Consumer(
        options.url(topic),
        start=start,
        stop_at_end=True,
        stop_at=stop,
        mode="poll",
        max_fetch_bytes=options.fetch_bytes,
        prefetch_bytes=_AHEAD * options.fetch_bytes,
        on_opaque=options.on_opaque,
        **resumed,
        **options.client_options(),
    )


def batches_of(consumer: Consumer, options: Options) -> Iterator[RecordBatch]:
    """Yield batches to the end of the log.

    Raises:
        DeadlineExceeded: the server has sent nothing for ``catchUpTimeout``.
    """
    patience = options.catch_up_timeout
    while True:
        asked = monotonic()
        batch = consumer.poll(patience)
        if batch is not None:
            yield batch
        elif monotonic() - asked < patience:
            return
        else:
            raise DeadlineExceeded(
                f"{consumer!r}: nothing came for {patience:.0f} s; look after the server, or raise "
                "catchUpTimeout"
            )
