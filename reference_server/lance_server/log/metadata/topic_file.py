"""A topic's `metadata.json`: who it is, and where its segments begin (LWP section 6.2)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

from lance_server.errors import DataDirError
from lance_server.log.metadata.checksummed_file import ChecksummedFile, load_document, save_document
from lance_server.log.segments.segment_files import SegmentName
from lance_server.runtime.sync import new_lock
from lance_server.storage.contract import StorageBackend, UndecidedError
from lance_spec.bodies import take_int, take_str
from lance_spec.errors import DecodeError

FILE_NAME: Final = "metadata.json"


@dataclass(frozen=True, slots=True)
class StoredIdentity:
    """What makes a topic that topic (AMB-30).

    Attributes:
        id: its number, never given to another topic.
        name: its name, in Unicode NFC.
        created_at: seconds since the Unix epoch.
        epoch: rises with each creation of the same name, from 1.
    """

    id: int
    name: str
    created_at: int
    epoch: int


@dataclass(frozen=True, slots=True)
class Retention:
    """How much of a topic is kept; 0 means no limit (AMB-08).

    Attributes:
        max_age_secs: by age, in seconds.
        max_bytes: by size, in bytes.
    """

    max_age_secs: int = 0
    max_bytes: int = 0


@dataclass(frozen=True, slots=True)
class LogStart:
    """Where a topic begins.

    Attributes:
        offset: the earliest offset that can be read.
        record: how many records there were before it.
    """

    offset: int = 0
    record: int = 0


@dataclass(frozen=True, slots=True)
class Merge:
    """Segments that are becoming one.

    Attributes:
        target: name of the merged data file.
        sources: names of the data files that go; the first one has the target's key.
    """

    target: str
    sources: tuple[str, ...]


class TopicFile:
    """The metadata of one topic, in memory and on disk.

    The sidecars say where segments begin, too; what stands here replaces a damaged header, and
    `next_offset` keeps retired offsets retired when no byte is left that shows them (AMB-29).
    `log_start` is where the topic begins, and `retiring` names the segments below it whose files
    have not been removed yet. `merging` says which segments a merged one is taking the place of.
    `holes` are ranges inside segments that a crash tore and recovery retired, start to end: that
    no sidecar entry vouches for them is no damage.
    """

    def __init__(
        self,
        storage: StorageBackend,
        folder: Path,
        identity: StoredIdentity,
        retention: Retention | None = None,
    ) -> None:
        self._storage = storage
        self._lock = new_lock()
        self.folder = folder
        self.identity = identity
        self.retention = retention or Retention()
        self.next_offset = 0
        self.bases: dict[str, int] = {}
        self.log_start = LogStart()
        self.retiring: tuple[str, ...] = ()
        self.merging: Merge | None = None
        self.holes: Mapping[int, int] = {}
        self.seen: Mapping[str, int] = {}
        """When segments whose last batch has a time to come were seen first, by key."""
        self._is_undecided = False
        """Whether the disk may have something else than memory."""

    def __repr__(self) -> str:
        return f"<TopicFile {self.identity} next_offset={self.next_offset}>"

    @classmethod
    def load(cls, storage: StorageBackend, folder: Path) -> tuple[Self, str | None] | None:
        """Return what is on disk and what was wrong with it; None when there is no such file.

        Raises:
            DataDirError: neither copy can be used.
        """
        document = load_document(storage, folder / FILE_NAME)
        if document is None:
            return None
        try:
            return cls._from_document(storage, folder, document), document.problem
        except DecodeError as error:
            raise DataDirError(f"{folder / FILE_NAME}: {error}") from None

    @classmethod
    def _from_document(
        cls, storage: StorageBackend, folder: Path, document: ChecksummedFile
    ) -> Self:
        body, kind = document.body, FILE_NAME
        retention, log = _part(body, "retention"), _part(body, "log")
        identity = StoredIdentity(
            take_int(body, "id", kind, 2**32),
            take_str(body, "name", kind),
            take_int(body, "created_at", kind),
            take_int(body, "topic_epoch", kind),
        )
        limits = [take_int(retention, name, kind) for name in ("max_age_secs", "max_bytes")]
        found = cls(storage, folder, identity, Retention(*limits))
        found.next_offset = take_int(log, "next_offset", kind)
        bases = _part(log, "bases")
        found.bases = {key: take_int(bases, key, kind) for key in bases}
        if "start_offset" in log:  # nothing was ever dropped from a topic without it
            starts = [take_int(log, name, kind) for name in ("start_offset", "start_record")]
            found.log_start = LogStart(*starts)
            found.retiring = tuple(_part(log, "retiring"))
        if "holes" in log:
            holes = _part(log, "holes")
            found.holes = {_offset(start): take_int(holes, start, kind) for start in holes}
        if "seen" in log:
            seen = _part(log, "seen")
            found.seen = {key: take_int(seen, key, kind) for key in seen}
        if "merging" in log:
            merging = _part(log, "merging")
            found.merging = Merge(
                _segment_name(take_str(merging, "target", kind)),
                tuple(_segment_name(name) for name in _part(merging, "sources")),
            )
        return found

    def save(self) -> None:
        """Write it, durably.

        Raises:
            UndecidedError: the disk may have this or what was there before.
            OSError: the disk refused; what was on disk still is.
        """
        with self._lock:
            self._save()

    @property
    def is_undecided(self) -> bool:
        """Whether a save failed halfway, so that the disk may have something else than memory."""
        return self._is_undecided

    def settle(self) -> None:
        """Write it again, durably, if a save failed halfway: then the disk has what memory has.

        Every change begins with this. Whoever does something else that must not meet the
        change which failed, calls it before.

        Raises:
            OSError: the disk refused.
        """
        with self._lock:
            self._settle()

    def set_retention(self, retention: Retention) -> None:
        """Change the retention policy, durably."""
        with self._lock:
            self._change(retention=retention)

    def add_base(self, key: str, base_offset: int) -> None:
        """Note, durably, where a new segment begins."""
        with self._lock:
            self._change(bases={**self.bases, key: base_offset})

    def forget_base(self, key: str) -> None:
        """Note, durably, that a segment that was begun holds nothing and is going."""
        with self._lock:
            rest = {other: base for other, base in self.bases.items() if other != key}
            if rest != self.bases:
                self._change(bases=rest)

    def reserve(self, next_offset: int) -> None:
        """Record, durably, that offsets up to here may be in use."""
        with self._lock:
            self._change(next_offset=next_offset)

    def recovered(self, bases: Mapping[str, int], next_offset: int) -> None:
        """Record, durably, where the segments begin that recovery found, and what is in use."""
        with self._lock:
            if (bases, next_offset) != (self.bases, self.next_offset):
                self._change(bases=dict(bases), next_offset=next_offset)

    def retire_holes(self, holes: Mapping[int, int]) -> None:
        """Record, durably, that a crash tore ranges of offsets, and nothing is lost there."""
        with self._lock:
            self._change(holes={**self.holes, **holes})

    def is_hole(self, start: int, end: int) -> bool:
        """Whether everything from one topic offset to another is retired."""
        return is_hole(self.holes, start, end)

    def see(self, keys: Sequence[str], now_ns: int) -> None:
        """Record, durably, that segments of a time to come were there now."""
        with self._lock:
            known = {key: when for key, when in self.seen.items() if key in self.bases}
            self._change(seen={**dict.fromkeys(keys, now_ns), **known})

    def retire(self, keys: Sequence[str], log_start: LogStart) -> None:
        """Record, durably, that segments are going and where the topic begins without them."""
        with self._lock:
            going = set(keys)
            self._change(
                bases={key: base for key, base in self.bases.items() if key not in going},
                log_start=log_start,
                retiring=(*self.retiring, *keys),
                holes={start: end for start, end in self.holes.items() if end > log_start.offset},
                next_offset=max(self.next_offset, log_start.offset),
            )

    def merge(self, merging: Merge) -> None:
        """Record, durably, that a merged segment takes the place of others."""
        with self._lock:
            first, *others = (name.partition("-")[0] for name in merging.sources)
            bases = {key: base for key, base in self.bases.items() if key not in others}
            seen = {key: when for key, when in self.seen.items() if key in bases}
            if newest := [self.seen[key] for key in (first, *others) if key in self.seen]:
                seen[first] = max(newest)
            self._change(bases=bases, merging=merging, seen=seen)

    def merged(self) -> None:
        """Record that the segments which were merged are gone."""
        with self._lock:
            self._change(merging=None)

    def retired(self) -> None:
        """Record that the segments which were going are gone."""
        with self._lock:
            self._change(retiring=())

    def _change(self, **values: Any) -> None:
        """Change attributes, durably, or leave all as they are (the lock is held)."""
        self._settle()
        before = {name: getattr(self, name) for name in values}
        self._set(values)
        try:
            self._save()
        except OSError:
            self._set(before)
            raise

    def _set(self, values: Mapping[str, Any]) -> None:
        for name, value in values.items():
            setattr(self, name, value)

    def _settle(self) -> None:
        if self._is_undecided:
            self._save()

    def _save(self) -> None:
        """Write what memory has; a save that fails halfway is to be repeated (the lock is held)."""
        try:
            save_document(self._storage, self.folder / FILE_NAME, self._body())
        except UndecidedError:
            self._is_undecided = True
            raise
        self._is_undecided = False

    def _body(self) -> dict[str, Any]:
        merging = self.merging and {
            "target": self.merging.target,
            "sources": dict.fromkeys(self.merging.sources, True),
        }
        holes = {str(start): end for start, end in self.holes.items()}
        return {
            "id": self.identity.id,
            "name": self.identity.name,
            "created_at": self.identity.created_at,
            "topic_epoch": self.identity.epoch,
            "retention": {
                "max_age_secs": self.retention.max_age_secs,
                "max_bytes": self.retention.max_bytes,
            },
            "log": {
                "next_offset": self.next_offset,
                "bases": self.bases,
                "start_offset": self.log_start.offset,
                "start_record": self.log_start.record,
                "retiring": dict.fromkeys(self.retiring, True),
                **({"merging": merging} if merging else {}),
                **({"holes": holes} if holes else {}),
                **({"seen": dict(self.seen)} if self.seen else {}),
            },
        }


def is_hole(holes: Mapping[int, int], start: int, end: int) -> bool:
    """Whether ranges of offsets that are retired, start to end, cover one from start to end."""
    while start < end and start in holes:
        start = holes[start]
    return start >= end


def _part(body: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = body.get(name)
    if not isinstance(part, dict):
        raise DecodeError(FILE_NAME, name, 0, "an object", repr(part)[:80])
    return part


def _offset(text: str) -> int:
    if not (text.isascii() and text.isdecimal()):
        raise DecodeError(FILE_NAME, "holes", 0, "offsets", repr(text)[:80])
    return int(text)


def _segment_name(text: str) -> str:
    if SegmentName.parse(text) is None:
        raise DecodeError(FILE_NAME, "merging", 0, "names of segments", repr(text)[:80])
    return text
