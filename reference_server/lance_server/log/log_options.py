"""How the log behaves."""

from dataclasses import dataclass, field

from lance_server.log.dedup import WindowLimits
from lance_server.log.flusher import FlushPolicy
from lance_server.log.reading.segment_cache import files_allowed
from lance_server.log.segments.compaction import CompactionPolicy


@dataclass(frozen=True, slots=True)
class LogOptions:
    """How the log behaves.

    Attributes:
        segment_size: bytes after which a segment is closed.
        window: how far back repeated batches are recognised.
        flush: when waiting bytes are flushed.
        max_topics: most topics that may exist.
        open_segments: segments kept open for reading; as many as `files_allowed` by default.
        segment_age_secs: seconds after which a segment is closed; 0 means never by age.
        compaction: which segments are merged; None means none.
        node: this server's number, for sort keys.
        synced: whether a commit of the storage backend outlives the machine.
        commit_retention_secs: seconds after which the commit of a consumer that is not connected
            is forgotten; 0 means never.
        scrub_days: in how many days closed segments are read once against their checksums; 0
            means never.
        disk_reserve: bytes of the disk that are kept for a full disk; 0 keeps none.
    """

    segment_size: int = 1024 * 1024 * 1024
    window: WindowLimits = field(default_factory=WindowLimits)
    flush: FlushPolicy = field(default_factory=FlushPolicy)
    max_topics: int = 10_000
    open_segments: int = field(default_factory=files_allowed)
    segment_age_secs: int = 7 * 24 * 3600
    compaction: CompactionPolicy | None = field(default_factory=CompactionPolicy)
    node: int = 0
    synced: bool = True
    commit_retention_secs: int = 30 * 24 * 3600
    scrub_days: float = 0
    disk_reserve: int = 0
