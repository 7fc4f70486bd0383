"""Records out of a data directory, without a server; nothing is changed."""

import base64
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lance_server.errors import ConfigError
from lance_server.log.metadata.topic_file import TopicFile
from lance_server.log.segments.segment_files import SegmentName
from lance_server.log.segments.sidecar import HEADER_SIZE, OPAQUE, decode_header
from lance_server.log.segments.sidecar_scan import read_entries
from lance_server.offline.verifying import ReadOnlyStorage
from lance_server.storage.contract import read_at
from lance_spec.checksum import CRC32C
from lance_spec.errors import DecodeError
from lance_spec.limits import RECORD_HEADER_SIZE
from lance_spec.messages.engine import SidecarEntry
from lance_spec.records import decode_records


@dataclass(frozen=True, slots=True)
class Dumped:
    """Something that stands in a topic.

    Attributes:
        offset: where in the topic it begins.
        type: the record's type; None where there is no record.
        value: the record's value.
        problem: why there is no record, or None.
    """

    offset: int
    type: int | None
    value: bytes = b""
    problem: str | None = None

    def as_json(self) -> dict[str, Any]:
        """Return it as a JSON object; a value that is not UTF-8 text is base64."""
        if self.problem is not None:
            return {"offset": self.offset, "problem": self.problem}
        try:
            value = {"value": self.value.decode()}
        except UnicodeDecodeError:
            value = {"value_base64": base64.b64encode(self.value).decode()}
        return {"offset": self.offset, "type": self.type, **value}


def find_topic(data_dir: Path, wanted: str) -> TopicFile:
    """Return a topic's file.

    Args:
        data_dir: a data directory.
        wanted: the topic's name or number.

    Raises:
        ConfigError: there is no such topic.
        DataDirError: a topic's file cannot be used.
    """
    storage, names = ReadOnlyStorage(), []
    for folder in sorted((data_dir / "segments").iterdir()):
        loaded = TopicFile.load(storage, folder) if folder.is_dir() else None
        if loaded is None:
            continue
        names.append(loaded[0].identity.name)
        if wanted in (names[-1], folder.name):
            return loaded[0]
    raise ConfigError(f"there is no topic '{wanted}'; there are: {', '.join(names) or 'none'}")


def dump(file: TopicFile, start: int = 0) -> Iterator[Dumped]:
    """Yield what stands in a topic, from an offset to the end; damage is told and passed.

    Args:
        file: the topic's.
        start: records that begin before this offset are left out.

    Raises:
        OSError: a file cannot be read.
    """
    storage = ReadOnlyStorage()
    for name in _in_order(storage, file):
        for each in _segment(storage, file.folder, name):
            if each.offset >= max(start, file.log_start.offset):
                yield each


def _in_order(storage: ReadOnlyStorage, file: TopicFile) -> list[SegmentName]:
    """Return the names of the segments by where they begin."""
    names = [SegmentName.parse(each) for each in storage.list_dir(file.folder)]
    found = [name for name in names if name is not None and name.key not in file.retiring]
    return sorted(found, key=lambda name: (file.bases.get(name.key, 0), name.start_ns))


def _segment(storage: ReadOnlyStorage, folder: Path, name: SegmentName) -> Iterator[Dumped]:
    data = storage.open(folder / name.data)
    try:
        sidecar = storage.open(folder / name.sidecar)
        try:
            header = decode_header(read_at(storage, sidecar, HEADER_SIZE, 0))
            end = 0
            for entry in read_entries(storage, sidecar):
                if entry is None:
                    yield Dumped(header.base_offset + end, None, problem="a void sidecar entry")
                    continue
                end = entry.relative_offset + entry.stored_length
                yield from _batch(storage, data, entry, header.base_offset)
        except DecodeError as error:
            yield Dumped(0, None, problem=f"{folder / name.sidecar}: {error}")
        finally:
            storage.close(sidecar)
    except FileNotFoundError as error:
        yield Dumped(0, None, problem=f"{error.filename} is missing")
    finally:
        storage.close(data)


def _batch(storage: ReadOnlyStorage, data: int, entry: SidecarEntry, base: int) -> Iterator[Dumped]:
    offset = base + entry.relative_offset
    batch = bytes(read_at(storage, data, entry.stored_length, entry.relative_offset))
    if CRC32C.compute(batch) != entry.stored_crc:
        note = f"{entry.stored_length} damaged bytes: they do not match their checksum"
        yield Dumped(offset, None, problem=note)
    elif entry.flags & OPAQUE:
        yield Dumped(offset, None, batch, problem=f"{len(batch)} bytes that are not records")
    else:
        for record_type, value in decode_records(batch):
            yield Dumped(offset, record_type, value)
            offset += RECORD_HEADER_SIZE + len(value)
