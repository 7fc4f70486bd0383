"""Records out of a topic, for threads."""

from collections.abc import Iterator
from time import monotonic
from typing import Literal, Unpack

from lance_sdk._assembly import build_consumer
from lance_sdk._core.outcome import Outcome
from lance_sdk._cursor import Cursor
from lance_sdk._face import Face
from lance_sdk.config import check_start
from lance_sdk.options import ConsumerOptions
from lance_sdk.stats import ConsumerStats
from lance_sdk.types import Record, RecordBatch
from lance_sdk.url import URL

__all__ = ["Consumer"]


class Consumer(Face):
    """Reads the records of one topic, from any offset, ahead of the application.

    ::

        with Consumer("lance://localhost:1992/orders", stop_at_end=True) as consumer:
            for record in consumer:
                print(record.offset, record.value)

    The constructor does no I/O. One thread reads; others may `seek`, `close` or look.

    Args:
        url: where the topic lives, see `lance_sdk.url`.
        **options: the fields of `lance_sdk.config.ConsumerConfig`; they override the URL's.

    Raises:
        ConfigError: for a URL or an option that cannot be used.
    """

    def __init__(self, url: str | URL, **options: Unpack[ConsumerOptions]) -> None:
        self._core = build_consumer(url, options)
        super().__init__(self._core)
        self._fetcher = self._core.fetcher
        self._cursor = Cursor()

    def __repr__(self) -> str:
        return self._core.show("Consumer", self._state, self.position)

    def __iter__(self) -> Iterator[Record]:
        """Yield records; ends at the end of the log with ``stop_at_end``, else goes on.

        Raises:
            ConsumeError: the log cannot be consumed from here.
            ServerError: the server refused in a way that cannot be retried.
            UsageError: the consumer is not open.
        """
        cursor = self._cursor
        while True:
            records = cursor.records
            for record in records:
                cursor.last = record
                yield record
                if cursor.records is not records:
                    break  # a seek: the rest of the batch is not wanted any more
            else:
                if (batch := self._next_batch(None)) is None:
                    return
                cursor.load(batch)

    def batches(self) -> Iterator[RecordBatch]:
        """Yield records as batches, the faster way; ends and raises as iteration does."""
        while (batch := self.poll()) is not None:
            yield batch

    def poll(self, timeout: float | None = None) -> RecordBatch | None:
        """Return the next records as a batch.

        Args:
            timeout: seconds to wait for some; by default until there are some.

        Returns:
            The batch; None when the time ran out, or at the end with ``stop_at_end``.

        Raises:
            ConsumeError: the log cannot be consumed from here.
            ServerError: the server refused in a way that cannot be retried.
            UsageError: the consumer is not open.
        """
        batch = self._cursor.rest() or self._next_batch(timeout)
        return None if batch is None else self._cursor.skip(batch)

    def seek(self, where: int | Literal["beginning", "end"]) -> None:
        """Go on from somewhere else; what was fetched ahead is dropped.

        Args:
            where: ``beginning``, ``end``, or an ``offset`` or ``next_offset`` of a record.

        Raises:
            ConfigError: when it is none of these.
            UsageError: the consumer is not open.
        """
        check_start(where)
        with self._pump.lock:
            self._pump.check()
            self._fetcher.seek(where)
            self._cursor.clear()
        self._pump.wake()

    @property
    def position(self) -> int | None:
        """Offset of the next record to be handed out; None while seeking the end."""
        position = self._cursor.position
        return self._fetcher.offset if position is None else position

    @property
    def end(self) -> int | None:
        """Offset behind the last byte of the log, as far as it is known."""
        return self._fetcher.end

    @property
    def lag(self) -> int | None:
        """Bytes between position and end, as far as they are known."""
        position, end = self.position, self.end
        return None if position is None or end is None else max(0, end - position)

    def stats(self) -> ConsumerStats:
        """Return the counters as they stand now."""
        with self._pump.lock:
            return self._core.stats(self.position)

    def _next_batch(self, timeout: float | None) -> RecordBatch | None:
        deadline = None if timeout is None else monotonic() + timeout
        while True:
            found = self._take()
            if not isinstance(found, Outcome):
                return found
            left = None if deadline is None else deadline - monotonic()
            if not self._pump.wait(found, left):
                return None

    def _take(self) -> RecordBatch | Outcome | None:
        """Return a batch, None at the end, or what to wait for."""
        pump, fetcher = self._pump, self._fetcher
        with pump.lock:
            batch = fetcher.take()
            if batch is None:
                if fetcher.error is not None:
                    raise fetcher.error.with_traceback(None)
                if fetcher.ended:
                    return None
                pump.check()
                return fetcher.gate()
        pump.wake()  # there is room for another Fetch now
        return batch
