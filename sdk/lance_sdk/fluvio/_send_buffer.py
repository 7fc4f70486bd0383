"""Records that wait to be sent, by partition."""

from lance_sdk.errors import ConfigError
from lance_sdk.fluvio._partitioner import Partitioner, RoundRobin
from lance_sdk.fluvio._topics import Leaders
from lance_spec.fluvio.batches import FluvioRecord


class SendBuffer:
    """Collects records until it is worth sending them.

    Args:
        leaders: who leads each partition; the list is kept current by its owner.
        partitioner: decides for records with a key.
        size: bytes of keys and values after which it is full.
    """

    def __init__(self, leaders: Leaders, partitioner: Partitioner, size: int) -> None:
        self._leaders = leaders
        self._partitioner = partitioner
        self._round = RoundRobin()
        self._size = size
        self._waiting: dict[int, list[FluvioRecord]] = {}
        self._bytes = 0

    def __repr__(self) -> str:
        return f"<SendBuffer {len(self)} records, {self._bytes} bytes>"

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values()))

    @property
    def is_full(self) -> bool:
        """Whether to send now."""
        return self._bytes >= self._size

    @property
    def partitions(self) -> list[int]:
        """Partitions that records wait for, the longest waiting first."""
        return list(self._waiting)

    def add(
        self, value: bytes | str, key: bytes | str | None, timestamp_ms: int, partition: int | None
    ) -> None:
        """Keep one more record.

        Raises:
            ConfigError: there is no such partition.
            TypeError: value or key is neither bytes nor text.
        """
        raw_key = None if key is None else _as_bytes(key)
        record = FluvioRecord(_as_bytes(value), raw_key, timestamp_ms)
        chosen = self._partition_of(raw_key) if partition is None else partition
        if not 0 <= chosen < len(self._leaders):
            raise ConfigError(f"partition={chosen}: the topic has {len(self._leaders)}")
        self._waiting.setdefault(chosen, []).append(record)
        self._bytes += _bytes_of(record)

    def _partition_of(self, key: bytes | None) -> int:
        if key is not None:
            return self._partitioner(key, len(self._leaders))
        return self._round.next(self._leaders.available)

    def take(self, partition: int) -> list[FluvioRecord]:
        """Hand over what waits for a partition."""
        records = self._waiting.pop(partition)
        self._bytes -= sum(map(_bytes_of, records))
        return records

    def put_back(self, partition: int, records: list[FluvioRecord]) -> None:
        """Take back records that could not be sent yet, before any that came meanwhile."""
        self._waiting[partition] = records + self._waiting.get(partition, [])
        self._bytes += sum(map(_bytes_of, records))


def _bytes_of(record: FluvioRecord) -> int:
    return len(record.value) + len(record.key or b"")


def _as_bytes(value: bytes | str) -> bytes:
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    raise TypeError(f"a value or key must be bytes or str, not {type(value).__name__}")
