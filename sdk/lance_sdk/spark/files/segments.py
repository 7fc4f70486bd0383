"""Segment files and their sidecars, read without a server, also while one writes them (AMB-14)."""

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Any, Final, TypeAlias

import numpy as np
from crc32c import crc32c

from lance_sdk.offsets.contract import TopicIdentity
from lance_sdk.spark.errors import DataDamaged, FolderUnsettled
from lance_sdk.spark.files.storage import Entry, entries, exists
from lance_sdk.spark.files.topic_folder import (
    METADATA,
    Listing,
    TopicMetadata,
    load_metadata,
    sort_listing,
)
from lance_sdk.spark.files.wal import WriteAheadLog, log_of, opened_repeated
from lance_spec.disk.segment_names import DATA_SUFFIX, SIDECAR_SUFFIX, SegmentName
from lance_spec.errors import DecodeError
from lance_spec.messages.engine import EntryFlag, SidecarEntry, SidecarHeader

SEGMENTS: Final = "segments"
"""The folder in a data directory where the topics' folders are."""
_LOOKS: Final = 60
_PAUSE: Final = 0.02
"""Seconds between two looks at a folder that a server changes."""
_FARTHEST: Final = 2**62
"""Bytes: no segment is so long, and sums of smaller numbers stay numbers."""
_GUARDED: Final = SidecarEntry.SIZE - 4
ENTRY: Final = np.dtype(
    [
        ("start", "<u8"),
        ("length", "<u4"),
        ("records", "<u4"),
        ("batch_id", "<u8"),
        ("client_ns", "<u8"),
        ("server_ns", "<u8"),
        ("durable_end", "<u8"),
        ("crc", "<u4"),
        ("flags", "<u4"),
        ("reserved", "<u4"),
        ("entry_crc", "<u4"),
    ]
)
"""`SidecarEntry` as a row of an array; a test holds the two together."""
Entries: TypeAlias = np.ndarray[Any, np.dtype[np.void]]


@dataclass(frozen=True, slots=True)
class Segment:
    """One segment file.

    Attributes:
        path: where it is.
        name: what its name says.
        size: its bytes, when it was listed; of one that was cut, the bytes it should have.
        base: byte offset in the topic of its first byte.
        sidecar: path of its sidecar; None beside files of a published server.
        data_dir: the data directory whose write-ahead log has what the two files lack; None where
            they lack nothing.
    """

    path: str
    name: SegmentName
    size: int
    base: int
    sidecar: str | None
    data_dir: str | None = None

    def opened(self) -> AbstractContextManager[Any]:
        """Open the data file, see `lance_sdk.spark.files.storage.opened`."""
        return opened_repeated(self.path, self.data_dir)

    def opened_sidecar(self) -> AbstractContextManager[Any]:
        """Open the sidecar, which there must be."""
        assert self.sidecar is not None, "only segments with a sidecar have entries"
        return opened_repeated(self.sidecar, self.data_dir)

    @property
    def end(self) -> int:
        """Byte offset in the topic behind its last byte."""
        return self.base + self.size

    @property
    def label(self) -> str:
        """The file's name."""
        return self.path.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class TopicFiles:
    """The segments of one topic in one folder.

    Attributes:
        folder: the folder.
        identity: which topic it is.
        segments: by rising base.
        start: byte offset at which the topic begins; before its first segment where a crash tore
            what was there (AMB-29).
        reached: byte offset up to which it goes at least; behind its last record where a crash
            tore what followed.
        problems: how the folder differs from its metadata, in words.
    """

    folder: str
    identity: TopicIdentity
    segments: tuple[Segment, ...]
    start: int = 0
    reached: int = 0
    problems: tuple[str, ...] = ()


def is_topic(folder: str, listed: Iterable[Entry]) -> bool:
    """Whether a folder is a topic's: it has segments, or a server has just made it."""
    inside_of = folder.rstrip("/").rpartition("/")[0].rpartition("/")[2]
    names = [entry.name for entry in listed if not entry.is_folder]
    has_segments = any(name.endswith(DATA_SUFFIX) for name in names)
    return has_segments or (inside_of == SEGMENTS and METADATA in names)


def topic_files(folder: str, sleep: Callable[[float], None] = time.sleep) -> TopicFiles:
    """Return the segments of a topic's folder, as they were at one moment.

    While a server changes the folder it is listed again, until the metadata was the same before
    and after and the listing fits it. A listing that does not fit, and is the same when it is
    taken again, is damage: in each of its steps a server leaves what fits.

    Args:
        folder: the folder.
        sleep: waits between two looks at a folder that changes.

    Raises:
        DataDamaged: the metadata cannot be used.
        FolderUnsettled: the folder changed during every look.
        OSError: the folder cannot be read.
    """
    doubted: _Look | None = None
    for _ in range(_LOOKS):
        try:
            look = _look_once(folder)
        except FileNotFoundError:
            if not exists(folder):
                raise
            look = None
        if look is not None and (not look.files.problems or look == doubted):
            return look.files
        if look is None:
            sleep(_PAUSE)
        doubted = look
    raise FolderUnsettled(
        f"{folder} changed during each of {_LOOKS} looks; read the topic from its server, or stop "
        "the server first"
    )


@dataclass(frozen=True, slots=True)
class _Look:
    """What was found in a folder that did not change meanwhile, as far as its metadata says.

    Attributes:
        names: everything that was listed.
        files: the segments.
    """

    names: tuple[str, ...]
    files: TopicFiles = field(compare=False)


def _look_once(folder: str) -> _Look | None:
    """Return what is in a folder; None where it was changed meanwhile."""
    before = load_metadata(folder)
    log = _log_around(folder)
    listed = entries(folder)
    found = _topic_files(folder, None if before is None else before[1], listed, log)
    was_quiet = load_metadata(folder) == before and (log is None or log.is_current())
    return _Look(tuple(entry.name for entry in listed), found) if was_quiet else None


def _log_around(folder: str) -> WriteAheadLog | None:
    """Return the write-ahead log of the data directory that a topic's folder lies in."""
    above, _, name = folder.rstrip("/").rpartition("/")[0].rpartition("/")
    return log_of(above) if name == SEGMENTS and above else None


def _topic_files(
    folder: str,
    metadata: TopicMetadata | None,
    listed: list[Entry],
    log: WriteAheadLog | None,
) -> TopicFiles:
    listing = sort_listing(metadata, listed)
    if log is not None:
        listing.problems += log.damage
    placing = _Placing(folder, metadata, listing, log)
    ordered = sorted(
        listing.files.items(), key=lambda item: (item[1][0].start_index, item[1][0].start_ns)
    )
    for key, (name, entry) in ordered:
        placing.add(key, name, entry)
    placing.miss_lost()
    found = _as_promised(sorted(placing.found, key=lambda segment: segment.base))
    if metadata is None:
        label = folder.rstrip("/").rpartition("/")[2]
        number = _header(found[0].sidecar).topic_id if found and found[0].sidecar else 0
        metadata = TopicMetadata(TopicIdentity(number, label))
    return TopicFiles(
        folder,
        metadata.identity,
        tuple(found),
        _begin(metadata, found, listing.problems),
        metadata.reached,
        tuple(listing.problems),
    )


def _begin(metadata: TopicMetadata, segments: Sequence[Segment], problems: Sequence[str]) -> int:
    """Return where a topic begins: where its metadata says, unless something there is missing."""
    if not segments:
        return metadata.start
    base = segments[0].base
    return base if metadata.bases is None or problems else min(metadata.start, base)


class _Placing:
    """Learns of each data file where in the topic it belongs, and what does not fit."""

    def __init__(
        self,
        folder: str,
        metadata: TopicMetadata | None,
        listing: Listing,
        log: WriteAheadLog | None,
    ) -> None:
        self._folder = folder.rstrip("/")
        self._log = log
        self._bases = {} if metadata is None or metadata.bases is None else metadata.bases
        self._listing = listing
        self._needs_sidecars = listing.known is not None or any(
            name.endswith(SIDECAR_SUFFIX) for name in listing.names
        )
        self._told: set[str] = set()
        self._end = 0
        self.found: list[Segment] = []

    def add(self, key: str, name: SegmentName, entry: Entry) -> None:
        """Place a data file behind those before it, or say why it has no place."""
        known = self._listing.known is not None and key in self._listing.known
        sidecar = self._sidecar(key, name)
        entry, data_dir = self._repeated(entry, sidecar)
        being_made = not (known or entry.size) or not (name.is_closed or entry.size)
        if sidecar is None and not self._needs_sidecars:  # of a published server
            self._take(entry, name, self._end, None, data_dir)
            return
        problem = f"{entry.name} has lost its sidecar"
        header = None
        if sidecar is not None:
            try:
                header = _header(sidecar, data_dir)
            except DataDamaged as error:
                problem = str(error)
        if header is None:
            if not being_made:
                self._tell(key, problem)
        elif (base := self._bases.get(key, header.base_offset)) != header.base_offset:
            self._tell(key, f"{sidecar} begins at {header.base_offset}, and {METADATA} says {base}")
        elif self._listing.known is None or known:
            self._take(entry, name, header.base_offset, sidecar, data_dir)
        elif sidecar is not None and _has_entries(sidecar, data_dir):
            self._tell(key, f"{METADATA} does not know {entry.name}")

    def miss_lost(self) -> None:
        """Say which segments the metadata names are not there."""
        taken = {segment.base for segment in self.found}
        there = set(self._listing.files) | self._told
        for key, base in self._bases.items():
            if key not in there and base not in taken:  # else it was begun and never written to
                self._tell(key, f"{METADATA} names segment {key}, whose data file is gone")

    def _repeated(self, entry: Entry, sidecar: str | None) -> tuple[Entry, str | None]:
        """Return a data file as it is once the write-ahead log is repeated.

        Returns:
            The file, and the data directory where the log has anything for it or its sidecar.
        """
        if self._log is None:
            return entry, None
        lacking = self._log.lacking(entry.path)
        if not lacking and (sidecar is None or not self._log.lacking(sidecar)):
            return entry, None
        size = max(entry.size, *(run.end for run in lacking)) if lacking else entry.size
        return replace(entry, size=size), self._log.data_dir

    def _take(
        self, entry: Entry, name: SegmentName, base: int, sidecar: str | None, data_dir: str | None
    ) -> None:
        self.found.append(Segment(entry.path, name, entry.size, base, sidecar, data_dir))
        self._end = base + entry.size

    def _tell(self, key: str, text: str) -> None:
        self._told.add(key)
        self._listing.problems.append(text)

    def _sidecar(self, key: str, name: SegmentName) -> str | None:
        """Return the path of a sidecar, also where it was made during the listing."""
        label = key + SIDECAR_SUFFIX
        path = f"{self._folder}/{label}"
        is_there = label in self._listing.names or (not name.is_closed and exists(path))
        return path if is_there else None


def _has_entries(sidecar: str, data_dir: str | None) -> bool:
    with opened_repeated(sidecar, data_dir) as file:
        return int(file.size()) >= SidecarHeader.SIZE + SidecarEntry.SIZE


def _as_promised(segments: list[Segment]) -> list[Segment]:
    """Give closed segments that were cut the size that their sidecars say.

    Where the next segment begins right behind one, nothing is missing. Elsewhere there may be
    nothing missing either, as offsets are not used again after a crash (AMB-29).
    """
    found = []
    for segment, behind in zip_longest(segments, segments[1:]):
        limit = _FARTHEST if behind is None else behind.base - segment.base
        if segment.name.is_closed and segment.sidecar is not None and segment.size < limit:
            promised = min(limit, _reach(segment))
            found.append(replace(segment, size=max(segment.size, promised)))
        else:
            found.append(segment)
    return found


def _reach(segment: Segment) -> int:
    """Return where the last batch of a sidecar ends; 0 where that entry is void."""
    with segment.opened_sidecar() as file:
        count = (file.size() - SidecarHeader.SIZE) // SidecarEntry.SIZE
        if count < 1:
            return 0
        place = SidecarHeader.SIZE + (count - 1) * SidecarEntry.SIZE
        raw = bytes(file.read_at(SidecarEntry.SIZE, place))
    (last,) = np.frombuffer(raw, ENTRY, 1)
    whole = crc32c(raw[:_GUARDED]) == last["entry_crc"]
    return int(last["start"]) + int(last["length"]) if whole else 0


def _header(path: str, data_dir: str | None = None) -> SidecarHeader:
    try:
        with opened_repeated(path, data_dir) as file:
            header = SidecarHeader.decode(bytes(file.read_at(SidecarHeader.SIZE, 0)))
    except DecodeError as error:
        raise DataDamaged(f"{path}: {error}; 'lance-server repair' writes it again") from None
    if not header.crc_ok():
        raise DataDamaged(
            f"{path}: the header does not match its checksum; run lance-server repair"
        )
    return header


def read_entries(segment: Segment) -> tuple[Entries, int]:
    """Return the valid entries of a segment's sidecar, in order, and how many were void.

    Of a segment that is being written, entries count only as far as their data is known to be
    there: a batch after the highest durable end that any entry records is compared with its
    checksum, and the first that differs ends the segment. What was durable counts, also where the
    file is shorter now: who reads it finds that it is damaged.

    Raises:
        OSError: the files cannot be read.
    """
    with segment.opened_sidecar() as file:
        raw = bytes(file.read_at(max(0, file.size() - SidecarHeader.SIZE), SidecarHeader.SIZE))
    count = len(raw) // SidecarEntry.SIZE
    found = np.frombuffer(raw, ENTRY, count)
    valid = _intact(raw, count) == found["entry_crc"]
    found = found[valid & (found["start"] < _FARTHEST)]
    found = found[_in_order(found)]
    void = count - len(found)
    if segment.name.is_closed:
        return found, void
    return _proven(segment, found), 0


def _intact(raw: bytes, count: int) -> np.ndarray[Any, Any]:
    view, size = memoryview(raw), SidecarEntry.SIZE
    sums = [crc32c(view[start : start + _GUARDED]) for start in range(0, count * size, size)]
    return np.array(sums, dtype=np.uint32)


def _in_order(found: Entries) -> np.ndarray[Any, Any]:
    """Return which entries begin at or after the end of all before them."""
    ends = found["start"] + found["length"]
    before = np.zeros_like(ends)
    before[1:] = np.maximum.accumulate(ends)[:-1]
    return np.asarray(found["start"] >= before)


def _proven(segment: Segment, found: Entries) -> Entries:
    """Return the entries of an open segment whose data is there."""
    if not len(found):
        return found
    durable = int(found["durable_end"].max()) - segment.base
    with segment.opened() as file:
        size = file.size()
        for index in range(len(found)):
            start, length = int(found["start"][index]), int(found["length"][index])
            if start + length <= durable:
                continue
            if start + length > size or crc32c(file.read_at(length, start)) != found["crc"][index]:
                return found[:index]
    return found


def opaque(found: Entries) -> np.ndarray[Any, Any]:
    """Return which batches were stored without being records (AMB-27)."""
    return np.asarray(found["flags"] & int(EntryFlag.OPAQUE) != 0)
