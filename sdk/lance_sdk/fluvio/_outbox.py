"""Records that wait to be sent, by partition."""

from collections.abc import Iterator

from lance_sdk.errors import ConfigError
from lance_sdk.fluvio._producing import partition_of
from lance_sdk.fluvio.types import FluvioSettings
from lance_spec.fluvio_batches import FluvioRecord


class Outbox:
    """Collects records until it is worth sending them.

    Args:
        partitions: how many partitions the topic has.
        settings: how much to collect.
    """

    def __init__(self, partitions: int, settings: FluvioSettings) -> None:
        self._partitions = partitions
        self._settings = settings
        self._waiting: dict[int, list[FluvioRecord]] = {}
        self._bytes = 0
        self._turn = 0

    def __repr__(self) -> str:
        return f"<Outbox {len(self)} records, {self._bytes} bytes>"

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values()))

    @property
    def is_full(self) -> bool:
        """Whether to send now."""
        return self._bytes >= self._settings.buffer_bytes

    def add(
        self, value: bytes | str, key: bytes | str | None, timestamp_ms: int, partition: int | None
    ) -> None:
        """Keep one more record.

        Raises:
            ConfigError: there is no such partition.
            TypeError: value or key is neither bytes nor text.
        """
        raw_key = None if key is None else _as_bytes(key)
        if partition is None:
            partition = partition_of(raw_key, self._partitions, self._turn)
            self._turn += raw_key is None
        if not 0 <= partition < self._partitions:
            raise ConfigError(f"partition={partition}: the topic has {self._partitions}")
        record = FluvioRecord(_as_bytes(value), raw_key, timestamp_ms)
        self._waiting.setdefault(partition, []).append(record)
        self._bytes += len(record.value) + len(raw_key or b"")

    def drain(self) -> Iterator[tuple[int, list[FluvioRecord]]]:
        """Hand over what waits, partition by partition; what is not taken stays."""
        while self._waiting:
            partition = next(iter(self._waiting))
            records = self._waiting.pop(partition)
            self._bytes -= sum(len(each.value) + len(each.key or b"") for each in records)
            yield partition, records


def _as_bytes(value: bytes | str) -> bytes:
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    raise TypeError(f"a value or key must be bytes or str, not {type(value).__name__}")
