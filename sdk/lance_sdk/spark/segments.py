"""Segment files and their sidecars, read without a server, also while one writes them (AMB-14)."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
from crc32c import crc32c

from lance_sdk.offsets.contract import TopicIdentity
from lance_sdk.spark.errors import DataDamaged
from lance_sdk.spark.storage import Entry, entries, opened, read_file, steadily
from lance_spec.errors import DecodeError
from lance_spec.messages.engine import EntryFlag, SidecarEntry, SidecarHeader
from lance_spec.segment_names import SegmentName

DATA_SUFFIX: Final = ".lnc"
SIDECAR_SUFFIX: Final = ".batches"
METADATA: Final = "metadata.json"
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
        size: its bytes, when it was listed.
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
    """

    folder: str
    identity: TopicIdentity
    segments: tuple[Segment, ...]


def has_segments(listed: Iterable[Entry]) -> bool:
    """Whether a folder is a topic's."""
    return any(entry.name.endswith(DATA_SUFFIX) for entry in listed)


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
        sidecar = names.get(_key(name) + SIDECAR_SUFFIX)
        if sidecar is not None:
            base = _header(sidecar.path).base_offset
        path = None if sidecar is None else sidecar.path
        found.append(Segment(entry.path, name, entry.size, base, path))
        base += entry.size
    found.sort(key=lambda segment: segment.base)
    return TopicFiles(folder, _identity(folder, names, found), tuple(found))


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


def _identity(folder: str, names: dict[str, Entry], segments: list[Segment]) -> TopicIdentity:
    """Return which topic a folder is: by its metadata, or else by the folder's name."""
    label = folder.rstrip("/").rpartition("/")[2]
    if METADATA not in names:
        number = _header(segments[0].sidecar).topic_id if segments and segments[0].sidecar else 0
        return TopicIdentity(number, label)
    try:
        body = json.loads(read_file(names[METADATA].path))
        return TopicIdentity(body["id"], body["name"], body["created_at"], body["topic_epoch"])
    except (ValueError, KeyError, TypeError) as error:
        raise DataDamaged(f"{names[METADATA].path}: {error!r}; run lance-server repair") from None


def read_entries(segment: Segment) -> tuple[Entries, int]:
    """Return the valid entries of a segment's sidecar, in order, and how many were void.

    Of a segment that is being written, entries count only as far as their data is known to be
    there: a batch behind the highest durable end that any entry records is compared with its
    checksum, and the first that differs ends the segment.

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
            if start + length <= min(durable, size):
                continue
            if start + length > size or crc32c(file.read_at(length, start)) != found["crc"][index]:
                return found[:index]
    return found


def opaque(found: Entries) -> np.ndarray[Any, Any]:
    """Return which batches were stored without being records (AMB-27)."""
    return np.asarray(found["flags"] & int(EntryFlag.OPAQUE) != 0)
