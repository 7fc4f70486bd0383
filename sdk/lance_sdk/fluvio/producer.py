# Written by sdk/sync_from_async.py from lance_sdk/fluvio/aio/producer.py: change that one.
"""Producing, for the sync client."""

import threading
import time
from types import TracebackType
from typing import Self

from lance_sdk.fluvio._producing import deliver
from lance_sdk.fluvio._retries import Retries
from lance_sdk.fluvio._send_buffer import SendBuffer
from lance_sdk.fluvio._topics import Leaders
from lance_sdk.fluvio.connections import Connections
from lance_sdk.fluvio.types import StoredRecords


class FluvioProducer:
    """Stores records in a topic; they are collected, and sent by `flush` or when enough wait.

    Records with the same key go to one partition; those without go in turn to all that can be
    written.
    """

    def __init__(self, client: Connections, leaders: Leaders, send_buffer: SendBuffer) -> None:
        self._client = client
        self._leaders = leaders
        self._send_buffer = send_buffer
        self._lock = threading.Lock()
        self.topic = leaders.topic

    def __repr__(self) -> str:
        return f"<FluvioProducer {self.topic!r}, {self._send_buffer!r}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self.flush()

    def send(
        self,
        value: bytes | str,
        *,
        key: bytes | str | None = None,
        timestamp_ms: int | None = None,
        partition: int | None = None,
    ) -> list[StoredRecords]:
        """Take one record; return what was stored meanwhile, usually nothing.

        Args:
            value: its value.
            key: its key.
            timestamp_ms: milliseconds since the Unix epoch; by default now, -1 for none.
            partition: where it goes; by default the key decides.

        Raises:
            FluvioRefused: a server does not take what was collected.
            TransportError: the network failed; what was sent may be stored.
        """
        now = int(time.time() * 1000) if timestamp_ms is None else timestamp_ms
        self._send_buffer.add(value, key, now, partition)
        return self.flush() if self._send_buffer.is_full else []

    def flush(self) -> list[StoredRecords]:
        """Send what was collected; return where it is stored.

        While a partition's leader is away it goes on for `FluvioSettings.retry_for` seconds, and
        stores what belongs to other partitions meanwhile. After an error the records of the
        partition at fault are gone from the producer; those of others wait for the next flush.

        Raises:
            FluvioRefused: a server does not take it.
            TransportError: the network failed; what was sent may be stored.
        """
        settings = self._client.settings
        with self._lock:
            retries = Retries(settings.retry_for)
            return self._client.run(deliver(self._send_buffer, self._leaders, settings, retries))
