"""A log without threads, sockets or time: every step is taken by the test."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from lance_server.log.log_manager import LogManager, LogOptions, Topic
from lance_server.log.metadata.topic_file import Retention
from lance_server.log.reading.reader import Fetched, Range
from lance_server.lwp.refusals import Refusal
from lance_server.runtime.completion import Completion
from lance_server.storage.contract import StorageBackend
from lance_server.testing.scheduling import ManualClock, ManualScheduler
from lance_spec.checksum import CRC32C
from lance_spec.codec.ingest_runs import BatchMeta
from lance_spec.records import encode_records

_WHOLE: Final = 1 << 30
_LONGEST_PAUSE: Final = 8.0


@dataclass(slots=True)
class LogReading:
    """What a reader finds who goes from one end of a topic to the other.

    Attributes:
        pieces: data by the offset it was found at.
        damage: (offset, next readable offset) of each range that cannot be read.
        gaps: (offset, next offset) of each range in which there is nothing.
    """

    pieces: dict[int, bytes] = field(default_factory=dict)
    damage: list[tuple[int, int]] = field(default_factory=list)
    gaps: list[tuple[int, int]] = field(default_factory=list)

    @property
    def data(self) -> bytes:
        """All data, without what is missing."""
        return b"".join(self.pieces.values())


class LogDriver:
    """An engine on a scheduler and a clock that stand still.

    Args:
        storage: the disk.
        data_dir: where on it.
        options: how the log behaves.
    """

    def __init__(
        self,
        storage: StorageBackend,
        data_dir: Path = Path("/data"),
        options: LogOptions | None = None,
        clock: ManualClock | None = None,
    ) -> None:
        self.scheduler = ManualScheduler()
        self.clock = clock or ManualClock()
        self.engine = LogManager.open(
            data_dir, storage, self.scheduler, options, self.clock, boottime=self.clock.boottime
        )

    def create_topic(self, name: str, retention: Retention | None = None) -> Topic:
        """Create a topic and return it."""
        outcome = self.engine.create_topic(name, retention or Retention())
        self.scheduler.run_all()
        return outcome.result()

    def append(
        self,
        values: Sequence[bytes],
        *,
        batch_id: int = 1,
        topic_id: int = 0,
        timestamp_ns: int = 1,
    ) -> Completion[None]:
        """Append a batch of raw-data records; nothing is flushed yet."""
        return self.append_raw(
            encode_records(values),
            batch_id=batch_id,
            topic_id=topic_id,
            timestamp_ns=timestamp_ns,
            record_count=len(values),
        )

    def append_raw(
        self,
        records: bytes,
        *,
        record_count: int,
        batch_id: int = 1,
        topic_id: int = 0,
        timestamp_ns: int = 1,
        flags: int = 0,
    ) -> Completion[None]:
        """Append any bytes as a batch; nothing is flushed yet."""
        topic = self.engine.topic(topic_id)
        now_ns = self.engine.now_ns(topic)
        batch = BatchMeta(
            len(records),
            record_count,
            batch_id,
            timestamp_ns,
            now_ns,
            CRC32C(records),
            flags,
        )
        return topic.partition.append(records, batch)

    def store(self, values: Sequence[bytes], *, batch_id: int = 1, topic_id: int = 0) -> int:
        """Append a batch, wait until it is durable, and return the offset it begins at."""
        outcome = self.append(values, batch_id=batch_id, topic_id=topic_id)
        self.scheduler.run_all()
        outcome.result()
        return self.end(topic_id) - len(encode_records(values))

    def reopen_topics(self) -> None:
        """Let the time pass after which topics that are closed for writing are tried again."""
        self.scheduler.pass_time(_LONGEST_PAUSE)
        self.scheduler.run_all()

    def end(self, topic_id: int = 0) -> int:
        """Return the end of what is durable."""
        return self.engine.topic(topic_id).partition.end_offset

    def fetch(
        self, start: int, max_bytes: int = _WHOLE, *, topic_id: int = 0, opaque: bool = False
    ) -> Fetched:
        """Fetch; what is cold is waited for."""
        wanted = Range(start=start, max_bytes=max_bytes, opaque=opaque)
        fetched = self.engine.fetch(self.engine.topic(topic_id), wanted)
        if isinstance(fetched, Completion):
            self.scheduler.run_all()
            return fetched.result()
        return fetched

    def read_all(self, topic_id: int = 0, start: int = 0) -> LogReading:
        """Go from an offset to the end."""
        found = LogReading()
        end = self.end(topic_id)
        while start < end:
            try:
                fetched = self.fetch(start, topic_id=topic_id)
            except Refusal as refusal:
                following = int(refusal.details["next_offset"])
                found.damage.append((start, following))
            else:
                following = fetched.next_offset
                if fetched.buffer:
                    found.pieces[start] = bytes(fetched.buffer)
                else:
                    found.gaps.append((start, following))
            if following <= start:
                raise AssertionError(f"no progress at offset {start}: {following}")
            start = following
        return found

    def close(self) -> None:
        """Stop cleanly."""
        outcome = self.engine.close()
        self.scheduler.run_all()
        outcome.result()
        self.engine.release()
