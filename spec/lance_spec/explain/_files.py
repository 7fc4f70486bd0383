"""Explaining files of a server or a slot, which their first bytes or their names tell apart."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

from lance_spec.explain._flat import explain_each, explain_flat, judge_crc, part, read
from lance_spec.explain._lwp.records import explain_records
from lance_spec.explain._model import Part
from lance_spec.explain._nested import explain_part
from lance_spec.explain._qwp import MAGIC as QWP_MAGIC
from lance_spec.explain._qwp import explain_qwp
from lance_spec.explain._values import size
from lance_spec.explain._wal import explain_wal
from lance_spec.explain._walk import raw_row
from lance_spec.explain._watched import Watched
from lance_spec.ir.families import composed, message
from lance_spec.messages import qwp

Explain: TypeAlias = Callable[[memoryview, int], Iterator[Part]]

_FRAME: Final = 8
_RECORD: Final = 64
_PLACES: Final = {8192: (0, 4096), 128: (0, 64)}
"""Where the two records of a side file stand, by its size (SF-03)."""


@dataclass(frozen=True, slots=True)
class FileKind:
    """A kind of file.

    Attributes:
        name: what ``--as`` calls it.
        doc: what it is.
        magic: its first bytes, or nothing where only its name tells.
        suffix: how its name ends, where its bytes do not tell.
        explain: what takes it apart; the number is the most parts of each sort.
    """

    name: str
    doc: str
    magic: bytes
    suffix: str
    explain: Explain

    def fits(self, data: memoryview, file_name: str) -> bool:
        """Whether bytes, or the name of their file, are of this kind."""
        if self.magic:
            return data[: len(self.magic)].tobytes() == self.magic
        return file_name.endswith(self.suffix)


def _sidecar(data: memoryview, most: int) -> Iterator[Part]:
    header = read(message("SidecarHeader"), data, 0, len(data))
    yield part("SidecarHeader at byte 0", header)
    if header.whole:
        yield from explain_each("SidecarEntry", data, header.end, most=most)


def _segment(data: memoryview, most: int) -> Iterator[Part]:
    header = read(message("SegmentHeader"), data, 0, len(data))
    yield part("SegmentHeader at byte 0", header)
    if header.whole:
        yield from _framed(data, header.end, most)


def _slot_metadata(data: memoryview, most: int) -> Iterator[Part]:
    header = read(message("SlotMetadataHeader"), data, 0, len(data))
    yield part("SlotMetadataHeader at byte 0", header)
    if header.whole:
        yield from _framed(data, header.end, most)


def _framed(data: memoryview, place: int, most: int) -> Iterator[Part]:
    """Explain frames with a checksum up to the zeros after the last one."""
    number = 0
    while place < len(data) and number < most:
        if not any(data[place : place + _FRAME]):
            yield _zeros(data, place)
            return
        found = read(message("SegmentFrame"), data, place, len(data))
        if found.whole:
            judge_crc(found, "crc", data[place + 4 : found.end])
        yield part(f"SegmentFrame {number} at byte {place}", found)
        if not found.whole:
            return
        yield from _stored(data, place + _FRAME, found.end, most)
        place, number = found.end, number + 1
    if place < len(data):
        yield Part(f"{size(len(data) - place)} more, not shown", ())


def _zeros(data: memoryview, place: int) -> Part:
    rest = data[place:]
    row = raw_row(data, place, len(data), "free", "Space after the last frame")
    if rest.tobytes().strip(b"\0"):
        row = row.judged("note", "not all of it is zero: a frame may have been torn (SF-20)")
    return Part(f"After the last frame, {size(len(rest))}", (row,))


_STORED: Final = {b"LWI1": "SlotIdentity", b"LWT1": "SlotTopic"}


def _stored(data: memoryview, start: int, stop: int, most: int) -> Iterator[Part]:
    magic = data[start : min(start + 4, stop)].tobytes()
    if magic == b"LWB1":
        batch = read(message("StoredBatch"), data, start, stop)
        yield part(f"StoredBatch at byte {start}", batch)
        if batch.whole:
            yield from explain_records(data, batch.rows["records"].offset, stop, most=most)
    elif magic in _STORED:
        yield explain_flat(_STORED[magic], data, start, stop)
    elif magic == QWP_MAGIC:
        yield from explain_qwp(data, start, stop)


def _dual(name: str) -> Explain:
    def explain(data: memoryview, _most: int) -> Iterator[Part]:
        if name == "WatermarkRecord" and len(data) == message("WatermarkSimple").size:
            yield explain_flat("WatermarkSimple", data, 0, len(data))
            return
        if len(data) not in _PLACES:
            row = raw_row(data, 0, len(data), "file", "Two records, of which the newer holds")
            sizes = "128 or 8,192 bytes"
            yield Part(name, (row.judged("fault", f"expected {sizes}, there are {len(data)}"),))
            return
        for place in _PLACES[len(data)]:
            yield _one_of_two(name, data, place)

    return explain


def _one_of_two(name: str, data: memoryview, place: int) -> Part:
    if not any(data[place : place + _RECORD]):
        row = raw_row(data, place, place + _RECORD, "record", "Never written")
        return Part(f"{name} at byte {place}", (row,))
    return explain_flat(name, data, place, place + _RECORD)


def _dictionary(data: memoryview, most: int) -> Iterator[Part]:
    header = qwp.SymbolDictionaryHeader.SIZE
    yield explain_part("SymbolDictionaryHeader", "qwp.SymbolDictionaryHeader", data[:header])
    place, number = header, 0
    while place < len(data) and number < most:
        chunk, place = _chunk(data, place, number)
        yield chunk
        number += 1


def _chunk(data: memoryview, place: int, number: int) -> tuple[Part, int]:
    watched = Watched(composed()["qwp"], data, 0)
    title = f"SymbolChunk {number} at byte {place}"
    return watched.explain(title, qwp.SymbolChunk, place), watched.place


def _row_of(name: str) -> Explain:
    return lambda data, most: explain_each(name, data, 0, most=most)


def _whole(name: str) -> Explain:
    return lambda data, _most: iter([explain_flat(name, data, 0, len(data))])


def _log(data: memoryview, most: int) -> Iterator[Part]:
    """Explain a segment of a topic; the one that is written may end inside a record."""
    return explain_records(data, 0, len(data), most=most, may_be_cut=True)


def _log_record(data: memoryview, _most: int) -> Iterator[Part]:
    yield explain_part("LogRecord", "replication.LogRecord", data)


KINDS: Final = (
    FileKind("sidecar", "entries of batches, next to a segment", b"LNCBATCH", "", _sidecar),
    FileKind("sf-segment", "a segment of a slot, .sfa or .sfl", b"SF01", "", _segment),
    FileKind("slot-metadata", ".lwp-slot", b"LWM1", "", _slot_metadata),
    FileKind("manifest", "sf-manifest.bin", b"SFM1", "", _dual("ManifestRecord")),
    FileKind("watermark", ".ack-watermark", b"AKW1", "", _dual("WatermarkRecord")),
    FileKind("fsn-floor", ".next-fsn", b"FSN1", "", _dual("FsnFloorRecord")),
    FileKind("slot-state", ".slot-state", b"SLS1", "", _dual("SlotStateRecord")),
    FileKind("symbol-dict", ".symbol-dict", b"SYD1", "", _dictionary),
    FileKind("log-record", "an entry of a cluster's log", b"LNRL", "", _log_record),
    FileKind("lock-holder", ".lock.pid", b"", ".lock.pid", _whole("LockHolder")),
    FileKind("failed", ".failed", b"", ".failed", _whole("FailedSentinel")),
    FileKind("log", "a segment of a topic, .lnc", b"", ".lnc", _log),
    FileKind("sparse-index", ".sparse.idx", b"", ".sparse.idx", _row_of("SparseIndexEntry")),
    FileKind(
        "secondary-index",
        ".secondary.idx",
        b"",
        ".secondary.idx",
        _row_of("SecondaryIndexEntry"),
    ),
    FileKind(
        "published-index",
        "a published server's .idx",
        b"",
        ".idx",
        _row_of("PublishedIndexEntry"),
    ),
    FileKind(
        "published-secondary-index",
        "a published server's .sidx",
        b"",
        ".sidx",
        _row_of("SecondaryIndexEntry"),
    ),
    FileKind("wal", "a write-ahead log", b"", ".wal", explain_wal),
)
"""Every kind of file; those that their bytes tell apart come first."""

_LATER: Final = {b"SFM1": "manifest", b"AKW1": "watermark", b"FSN1": "fsn-floor"}
_SECOND: Final = 4096
_NAMES: Final = {
    "sf-manifest.bin": "manifest",
    ".ack-watermark": "watermark",
    ".next-fsn": "fsn-floor",
    ".symbol-dict": "symbol-dict",
    ".lwp-slot": "slot-metadata",
}


def kind_of(data: memoryview, file_name: str) -> FileKind | None:
    """Return which kind of file some bytes are, or None.

    The first record of a side file may never have been written, so the second is looked at too.
    """
    for each in KINDS:
        if each.fits(data, file_name):
            return each
    later = _LATER.get(data[_SECOND : _SECOND + 4].tobytes())
    named = next((kind for end, kind in _NAMES.items() if file_name.endswith(end)), None)
    return kind_named(later or named or "")


def is_known_name(file_name: str) -> bool:
    """Whether a file's name says what it is, so that its bytes are never a dump of others."""
    named = any(file_name.endswith(end) for end in _NAMES)
    return named or any(each.suffix and file_name.endswith(each.suffix) for each in KINDS)


def kind_named(name: str) -> FileKind | None:
    """Return the kind of file that ``--as`` calls by a name, or None."""
    return next((each for each in KINDS if each.name == name), None)
