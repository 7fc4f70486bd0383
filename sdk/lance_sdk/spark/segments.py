"""Segment files and their sidecars, read without a server, also while one writes them (AMB-14)."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any, Final, TypeAlias

import numpy as np
from crc32c import crc32c

from lance_sdk.offsets.contract import TopicIdentity
from lance_sdk.spark.errors import DataDamaged
from lance_sdk.spark.storage import Entry, entries, exists, opened, read_file, steadily
from lance_spec.errors import DecodeError
from lance_spec.messages.engine import EntryFlag, SidecarEntry, SidecarHeader
from lance_spec.segment_names import SegmentName

DATA_SUFFIX: Final = ".lnc"
SIDECAR_SUFFIX: Final = ".batches"
METADATA: Final = "metadata.json"
SEGMENTS: Final = "segments"
"""The folder in a data directory where the topics' folders are."""
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
    """

    path: str
    name: SegmentName
    size: int
    base: int
    sidecar: str | None

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
        floor: byte offset at which the topic begins, as its metadata says.
    """

    folder: str
    identity: TopicIdentity
    segments: tuple[Segment, ...]
    floor: int = 0


def is_topic(folder: str, listed: Iterable[Entry]) -> bool:
    """Whether a folder is a topic's: it has segments, or a server has just made it."""
    inside_of = folder.rstrip("/").rpartition("/")[0].rpartition("/")[2]
    names = [entry.name for entry in listed if not entry.is_folder]
    has_segments = any(name.endswith(DATA_SUFFIX) for name in names)
    return has_segments or (inside_of == SEGMENTS and METADATA in names)


def topic_files(folder: str) -> TopicFiles:
    """Return the segments of a topic's folder.

    Raises:
        DataDamaged: a sidecar's header is not whole, so that the segment's place is not known.
        OSError: the folder cannot be read.
    """
    return steadily(lambda: _topic_files(folder, entries(folder)))


def _topic_files(folder: str, listed: list[Entry]) -> TopicFiles:
    names = {entry.name: entry for entry in listed if not entry.is_folder}
    chosen: dict[str, tuple[SegmentName, Entry]] = {}
    for entry in listed:
        try:
            name = SegmentName.parse(entry.name)
        except DecodeError:
            continue
        if _key(name) not in chosen or name.is_closed:  # being renamed: the closed name holds
            chosen[_key(name)] = name, entry
    ordered = sorted(chosen.values(), key=lambda pair: (pair[0].start_index, pair[0].start_ns))
    found, base = [], 0
    for name, entry in ordered:
        sidecar = _sidecar(folder, names, name)
        if sidecar is not None:
            header = _header_of(sidecar, being_made=not (name.is_closed or entry.size))
            if header is None:
                continue
            base = header.base_offset
        found.append(Segment(entry.path, name, entry.size, base, sidecar))
        base += entry.size
    found = _as_promised(sorted(found, key=lambda segment: segment.base))
    identity, floor = _metadata(folder, names, found)
    return TopicFiles(folder, identity, tuple(found), floor)


def _sidecar(folder: str, names: dict[str, Entry], name: SegmentName) -> str | None:
    """Return the path of a segment's sidecar, also where it was made during the listing."""
    label = _key(name) + SIDECAR_SUFFIX
    path = f"{folder.rstrip('/')}/{label}"
    return path if label in names or (not name.is_closed and exists(path)) else None


def _header_of(path: str, *, being_made: bool) -> SidecarHeader | None:
    """Return a sidecar's header; None when it is not written yet, which only an empty one is.

    Raises:
        DataDamaged: it is not whole.
    """
    try:
        return _header(path)
    except DataDamaged:
        if being_made:
            return None
        raise


def _as_promised(segments: list[Segment]) -> list[Segment]:
    """Give closed segments that were cut the size that their sidecars say.

    Where the next segment begins right behind one, nothing is missing. Elsewhere there may be
    nothing missing either, as offsets are not used again after a crash (AMB-29).
    """
    found = []
    for segment, behind in zip_longest(segments, segments[1:]):
        limit = _FARTHEST if behind is None else behind.base - segment.base
        if segment.name.is_closed and segment.sidecar is not None and segment.size < limit:
            promised = min(limit, _reach(segment.sidecar))
            found.append(replace(segment, size=max(segment.size, promised)))
        else:
            found.append(segment)
    return found


def _reach(sidecar: str) -> int:
    """Return where the last batch of a sidecar ends; 0 where that entry is void."""
    with opened(sidecar) as file:
        count = (file.size() - SidecarHeader.SIZE) // SidecarEntry.SIZE
        if count < 1:
            return 0
        place = SidecarHeader.SIZE + (count - 1) * SidecarEntry.SIZE
        raw = bytes(file.read_at(SidecarEntry.SIZE, place))
    (last,) = np.frombuffer(raw, ENTRY, 1)
    whole = crc32c(raw[:_GUARDED]) == last["entry_crc"]
    return int(last["start"]) + int(last["length"]) if whole else 0


def _key(name: SegmentName) -> str:
    return f"{name.start_index}_{name.start_ns}"


def _header(path: str) -> SidecarHeader:
    try:
        with opened(path) as file:
            header = SidecarHeader.decode(bytes(file.read_at(SidecarHeader.SIZE, 0)))
    except DecodeError as error:
        raise DataDamaged(f"{path}: {error}; 'lance-server repair' writes it anew") from None
    if not header.crc_ok():
        raise DataDamaged(
            f"{path}: the header does not match its checksum; run lance-server repair"
        )
    return header


def _metadata(
    folder: str, names: dict[str, Entry], segments: list[Segment]
) -> tuple[TopicIdentity, int]:
    """Return which topic a folder is and where it begins: by its metadata, or its name."""
    label = folder.rstrip("/").rpartition("/")[2]
    if METADATA not in names:
        number = _header(segments[0].sidecar).topic_id if segments and segments[0].sidecar else 0
        return TopicIdentity(number, label), 0
    try:
        body = json.loads(read_file(names[METADATA].path))
        floor = body["log"].get("start_offset", 0) if "log" in body else 0
        identity = body["id"], body["name"], body["created_at"], body["topic_epoch"]
        return TopicIdentity(*identity), int(floor)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataDamaged(f"{names[METADATA].path}: {error!r}; run lance-server repair") from None


def read_entries(segment: Segment) -> tuple[Entries, int]:
    """Return the valid entries of a segment's sidecar, in order, and how many were void.

    Of a segment that is being written, entries count only as far as their data is known to be
    there: a batch behind the highest durable end that any entry records is compared with its
    checksum, and the first that differs ends the segment. What was durable counts, also where the
    file is shorter now: who reads it finds that it is damaged.

    Raises:
        OSError: the files cannot be read.
    """
    assert segment.sidecar is not None, "only segments with a sidecar have entries"
    with opened(segment.sidecar) as file:
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
    """Return which entries begin at or behind the end of all before them."""
    ends = found["start"] + found["length"]
    before = np.zeros_like(ends)
    before[1:] = np.maximum.accumulate(ends)[:-1]
    return np.asarray(found["start"] >= before)


def _proven(segment: Segment, found: Entries) -> Entries:
    """Return the entries of an open segment whose data is there."""
    if not len(found):
        return found
    durable = int(found["durable_end"].max()) - segment.base
    with opened(segment.path) as file:
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
