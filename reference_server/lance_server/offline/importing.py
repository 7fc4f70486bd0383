"""Taking over the data directory of a published LANCE server (AMB-13, AMB-16).

Its topics are folders by name, their segments plain records one after the other, without a
checksum. Records are cut into batches at their boundaries; what does not parse is kept as it is,
as an opaque batch, so that nothing is left behind. Byte offsets begin again: the published
server's depend on which files are there at the moment.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from lance_server.errors import ConfigError
from lance_server.log.log_manager import LogManager, Topic
from lance_server.log.metadata.topic_file import Retention
from lance_server.log.segments.segment_files import DATA_SUFFIX, SegmentName
from lance_server.log.segments.sidecar import OPAQUE
from lance_server.lwp.refusals import Refusal
from lance_server.offline.sync_scheduler import SyncScheduler
from lance_server.offline.verifying import ReadOnlyStorage
from lance_server.storage.contract import StorageBackend, read_at, read_file
from lance_spec.checksum import CRC32C
from lance_spec.codec.ingest_runs import BatchMeta
from lance_spec.errors import EncodeError
from lance_spec.names import check_topic_name
from lance_spec.records import scan_records

_BATCH: Final = 1024 * 1024
_METADATA: Final = "metadata.json"
_LARGEST_FILE: Final = 64 * 1024
_NANOSECONDS_SINCE: Final = 10**17
"""A time above this is one in nanoseconds: it is later than February 1973."""


@dataclass(slots=True)
class ImportedTopic:
    """A topic that was taken over.

    Attributes:
        name: its name.
        segments: how many files it had.
        records: records that were stored.
        size: bytes that were stored.
        opaque: bytes among them that are not records.
        notes: what deserves to be told.
    """

    name: str
    segments: int = 0
    records: int = 0
    size: int = 0
    opaque: int = 0
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Source:
    """A topic of the published server."""

    name: str
    retention: Retention
    files: list[tuple[SegmentName, Path]]
    notes: list[str]


def published_topics(source: Path, storage: StorageBackend | None = None) -> list[Path]:
    """Return the folders of a published server's topics.

    Args:
        source: its data directory.
        storage: the backend; by default files are opened for reading only.

    Raises:
        ConfigError: the folder is not such a data directory.
    """
    storage, segments = storage or ReadOnlyStorage(), source / "segments"
    try:
        names = storage.list_dir(segments)
    except (FileNotFoundError, NotADirectoryError):
        raise ConfigError(
            f"'{source}' has no folder 'segments': it is not a LANCE data directory"
        ) from None
    return [segments / name for name in names if _is_folder(storage, segments / name)]


def has_name(folder: Path, storage: StorageBackend | None = None) -> bool:
    """Whether a folder says which topic it is; one of topic 0 or a deleted topic does not."""
    return _METADATA in (storage or ReadOnlyStorage()).list_dir(folder)


def _is_folder(storage: StorageBackend, path: Path) -> bool:
    try:
        storage.list_dir(path)
    except NotADirectoryError:
        return False
    return True


def import_topic(
    engine: LogManager,
    scheduler: SyncScheduler,
    folder: Path,
    progress: Callable[[int], object] = lambda _: None,
    storage: StorageBackend | None = None,
) -> ImportedTopic:
    """Copy one topic into a log; the original is only read.

    Args:
        engine: the log.
        scheduler: the log's.
        folder: the topic's folder.
        progress: called with the number of bytes that were stored.
        storage: what the original stands on; by default files are opened for reading only.

    Raises:
        ConfigError: its name cannot be a topic's, or there is a topic of that name already.
        OSError: a file cannot be read, or the disk refused.
    """
    storage = storage or ReadOnlyStorage()
    source = _read_source(storage, folder)
    try:
        outcome = engine.create_topic(source.name, source.retention)
    except Refusal as refusal:
        raise ConfigError(f"'{folder}': {refusal.message}") from refusal
    topic = scheduler.settle(outcome)
    found = ImportedTopic(source.name, len(source.files), notes=source.notes)
    for name, path in source.files:
        time_ns = _nanoseconds(name.end_ns or name.start_ns)
        for batch in _batches(storage, path):
            _store(topic, scheduler, batch, time_ns, found)
            progress(len(batch))
    return found


def _read_source(storage: StorageBackend, folder: Path) -> _Source:
    notes: list[str] = []
    metadata = _metadata(storage, folder, notes)
    name = str(metadata.get("name", folder.name))
    try:
        name = check_topic_name(name)
    except EncodeError as error:
        raise ConfigError(f"'{folder}': {error}") from None
    limits = metadata.get("retention")
    limits = limits if isinstance(limits, dict) else {}
    retention = Retention(_limit(limits.get("max_age_secs")), _limit(limits.get("max_bytes")))
    return _Source(name, retention, _files(storage, folder, notes), notes)


def _metadata(storage: StorageBackend, folder: Path, notes: list[str]) -> dict[str, Any]:
    try:
        body = json.loads(read_file(storage, folder / _METADATA, _LARGEST_FILE))
    except FileNotFoundError:
        notes.append(f"no {_METADATA}: the folder's name is the topic's")
        return {}
    except ValueError as error:
        notes.append(f"{_METADATA} cannot be read ({error}): the folder's name is the topic's")
        return {}
    return body if isinstance(body, dict) else {}


def _limit(value: object) -> int:
    return value if isinstance(value, int) and 0 < value < 2**63 else 0


def _files(
    storage: StorageBackend, folder: Path, notes: list[str]
) -> list[tuple[SegmentName, Path]]:
    """Return the segments in the order in which they were begun."""
    named: list[tuple[SegmentName, Path]] = []
    for path in map(folder.joinpath, storage.list_dir(folder)):
        name = SegmentName.parse(path.name)
        if name is not None:
            named.append((name, path))
        elif path.suffix == DATA_SUFFIX:
            notes.append(f"{path.name} was left out: its name is not a segment's")
    by_time = sorted(named, key=lambda each: (each[0].start_ns, each[0].start_record))
    if by_time != sorted(named):
        notes.append(
            "segments stand in the order of their times, which that of their numbers is not"
        )
    return by_time


def _batches(storage: StorageBackend, path: Path) -> Iterator[bytes]:
    """Yield a segment's bytes, cut at record boundaries up to where there are none any more."""
    fd = storage.open(path)
    try:
        chunks, rest = _chunks(storage, fd), b""
        for chunk in chunks:
            data = rest + chunk
            scan = scan_records(data)
            rest = data[scan.end :]
            if scan.end:
                yield data[: scan.end]
            if scan.fault is not None and not scan.fault.truncated:
                break
        if rest:
            yield rest
        yield from chunks
    finally:
        storage.close(fd)


def _chunks(storage: StorageBackend, fd: int) -> Iterator[bytes]:
    place = 0
    while chunk := bytes(read_at(storage, fd, _BATCH, place)):
        yield chunk
        place += len(chunk)


def _nanoseconds(time: int) -> int:
    """Return a time as nanoseconds; published servers have written coarser units, too."""
    while 0 < time < _NANOSECONDS_SINCE:
        time *= 1000
    return time


def _store(
    topic: Topic, scheduler: SyncScheduler, batch: bytes, time_ns: int, found: ImportedTopic
) -> None:
    scan = scan_records(batch)
    whole = scan.fault is None
    now_ns = topic.partition.next_time(time_ns)
    meta = BatchMeta(
        len(batch),
        scan.count if whole else 0,
        0,
        0,
        now_ns,
        CRC32C.compute(batch),
        0 if whole else OPAQUE,
    )
    scheduler.settle(topic.partition.append(batch, meta))
    found.size += len(batch)
    found.records += meta.record_count
    found.opaque += 0 if whole else len(batch)
