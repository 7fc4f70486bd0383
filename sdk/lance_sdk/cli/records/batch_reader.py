"""Batches of a consumer: to the end without waiting for ever, for ever, or so many records."""

from collections.abc import Iterator
from itertools import islice
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, Protocol

from lance_sdk.cli._settings import Settings
from lance_sdk.cli.console.exit_codes import Failure
from lance_sdk.cli.console.output import Output
from lance_sdk.cli.console.streams import tell

if TYPE_CHECKING:
    from lance_sdk.types import RecordBatch


class BatchSource(Protocol):
    """What batches are read from."""

    def poll(self, timeout: float, /) -> "RecordBatch | None":
        """Return the next batch; None when the time ran out, or at the end."""
        ...


class Skipping:
    """Goes on after damage that names where it ends, and says what was skipped.

    Args:
        source: what is read.
    """

    def __init__(self, source: Any) -> None:
        self._source = source

    def poll(self, timeout: float, /) -> "RecordBatch | None":
        """Return the next batch, as the source does.

        Raises:
            LanceError: the source failed in a way that names no place to go on at.
        """
        from lance_sdk.errors import ConsumeError, StorageError  # noqa: PLC0415 - as in consume

        while True:
            try:
                batch: RecordBatch | None = self._source.poll(timeout)
            except (ConsumeError, StorageError) as error:
                following = getattr(error, "next_offset", None)
                if isinstance(error, StorageError):
                    following = error.details.get("next_offset")
                if type(following) is not int or not hasattr(self._source, "seek"):
                    raise
                tell(f"skipped offsets {self._source.position} to {following}: {error}")
                self._source.seek(following)
            else:
                return batch


_TIMEOUT: Final = 30.0  # seconds

_GLANCE: Final = 1.0
"""Seconds between two looks whether anybody still reads what a quiet topic will bring."""


def to_the_end(consumer: "BatchSource", settings: Settings) -> Iterator["RecordBatch"]:
    """Yield what a consumer with ``stop_at_end`` reads.

    Args:
        consumer: it reconnects by itself, as often as it takes.
        settings: their ``timeout`` bounds each wait.

    Raises:
        Failure: when nothing came in that time.
    """
    timeout = settings.timeout or _TIMEOUT
    while True:
        began = monotonic()
        batch = consumer.poll(timeout)
        if batch is None and monotonic() - began >= timeout:
            raise Failure(f"nothing came for {timeout:g} s; the server may be down or stuck")
        if batch is None:
            return
        yield batch


def follow(consumer: "BatchSource", output: Output) -> Iterator["RecordBatch"]:
    """Yield what comes, until nobody reads the output any more.

    Raises:
        OutputClosed: when the reader went away.
    """
    while True:
        batch = consumer.poll(_GLANCE)
        if batch is None:
            output.check()
        else:
            yield batch


def first(batches: Iterator["RecordBatch"], limit: int | None) -> Iterator["RecordBatch"]:
    """Pass batches on until there are so many records, and cut the last one."""
    left = limit
    for batch in batches:
        if left is None or batch.count < left:
            yield batch
            left = None if left is None else left - batch.count
        else:
            yield _head(batch, left)
            return


def _head(batch: "RecordBatch", count: int) -> "RecordBatch":
    if count == batch.count:
        return batch
    from lance_sdk.types import RecordBatch  # noqa: PLC0415 - as for Consumer

    end = next(islice(batch, count, None)).offset
    return RecordBatch(batch.topic, batch.offset, count, batch.data[: end - batch.offset])


def last(batch: "RecordBatch", count: int) -> "RecordBatch":
    """Return the last records of a batch."""
    if count >= batch.count:
        return batch
    from lance_sdk.types import RecordBatch  # noqa: PLC0415 - as for Consumer

    begin = next(islice(batch, batch.count - count, None)).offset
    return RecordBatch(batch.topic, begin, count, batch.data[begin - batch.offset :])
