"""Store-and-forward slots: records that wait for a server, read without taking them.

What waits has no offset in a topic yet. The column ``offset`` orders it all the same: the number
of the frame, times 2^24, plus the record's place in the frame.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, Final, NoReturn

import numpy as np
import pyarrow as pa

from lance_sdk.errors import ConfigError, TopicNotFound
from lance_sdk.journal.config import SlotKind
from lance_sdk.journal.files import Files, RealFiles
from lance_sdk.journal.lwp.metadata import SlotMetadata
from lance_sdk.journal.orphans import inspect
from lance_sdk.journal.tools import frames_of, kind_of
from lance_sdk.offsets.contract import TopicIdentity
from lance_sdk.spark.errors import DataDamaged
from lance_sdk.spark.files.storage import entries, read_file
from lance_sdk.spark.logs.contract import EVERYTHING, InputSplit, TopicView, Unread
from lance_sdk.spark.options import Options, RecordFormat
from lance_sdk.spark.rows.columns import Parted, to_batch
from lance_sdk.spark.streaming.checkpoint import TopicCheckpoint
from lance_spec.enums import RecordType
from lance_spec.errors import DecodeError
from lance_spec.messages.store_forward import StoredBatch
from lance_spec.records import encode_record

SUFFIXES: Final = tuple(kind.suffix for kind in SlotKind)
FRAME_SHIFT: Final = 24
"""Bits of ``offset`` below the number of the frame: a frame is smaller than 2^24 bytes."""


def slot_files(path: str) -> tuple[Files, Path]:
    """Return the file system of a slot and its folder there."""
    if "://" not in path:
        return RealFiles(), Path(path)
    return RemoteFiles(path), Path(path.rstrip("/").rpartition("/")[2])


@dataclass(slots=True)
class _Loaded:
    """A file as `lance_sdk.journal.files.SlotFile` shows it, read whole."""

    path: Path | None
    data: bytes

    @property
    def size(self) -> int:
        return len(self.data)

    def read(self, offset: int, length: int) -> bytes:
        """Return some bytes."""
        return self.data[offset : offset + length]

    def close(self) -> None:
        """Do nothing: it is memory."""


class RemoteFiles:
    """A folder that Arrow can open, as `lance_sdk.journal.files.Files`; it can only be read."""

    def __init__(self, folder: str) -> None:
        self._folder = folder.rstrip("/")

    def __repr__(self) -> str:
        return f"RemoteFiles({self._folder!r})"

    def names(self, folder: Path) -> list[str]:
        """Return the names in the folder, sorted."""
        del folder
        return [entry.name for entry in entries(self._folder)]

    def read(self, path: Path, limit: int) -> bytes:
        """Return the first bytes of a file."""
        return read_file(f"{self._folder}/{path.name}", limit)

    def open(self, path: Path, *, writable: bool) -> Any:
        """Read a file whole."""
        assert not writable, "pipelines change no slot"
        data = read_file(f"{self._folder}/{path.name}", 2**31)
        return _Loaded(path, data)

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"{self!r} can only be read; it has no {name!r}")


@dataclass(frozen=True, slots=True)
class SlotSplit:
    """All that waits in one slot.

    Attributes:
        options: of the query.
        topic: the slot's name, for messages.
        start: number of the first frame, as an offset.
        end: number after the last.
        path: the slot.
    """

    options: Options
    topic: str
    start: int
    end: int
    path: str

    @property
    def size(self) -> int:
        """Bytes of the slot's segments."""
        return sum(entry.size for entry in entries(self.path) if entry.name.endswith(SUFFIXES))

    def shown_as(self, form: RecordFormat) -> "SlotSplit":
        """Return the same split in another form of records."""
        return replace(self, options=replace(self.options, record_format=form))

    def read(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Yield the records; of a QWP slot every frame is one record.

        Raises:
            DataDamaged: a frame does not match its checksum, or is not what it should be.
        """
        files, folder = slot_files(self.path)
        kind = kind_of(folder, files)
        self._check(files, folder, kind)
        convert = self._qwp if kind is SlotKind.QWP else partial(self._lwp, _topics(files, folder))
        for fsn, payload in frames_of(folder, files=files):
            if self.start < (fsn + 1) << FRAME_SHIFT and fsn << FRAME_SHIFT < self.end:
                try:
                    found = convert(schema, fsn, payload)
                except DecodeError as error:
                    self._damaged(f"{self.path}, frame {fsn}: {error}")
                    continue
                if found is not None and len(found):
                    yield found

    def topics(self) -> list[str]:
        """Return the topics whose records wait in the slot, as far as the query wants them."""
        files, folder = slot_files(self.path)
        return [name for name in _topics(files, folder).values() if self.options.wants(name)]

    def _check(self, files: Files, folder: Path, kind: SlotKind) -> None:
        for problem in inspect(folder, kind, files=files).problems:
            if problem.kind != "torn_tail":
                self._damaged(str(problem))

    def _damaged(self, text: str) -> None:
        if self.options.on_damage == "raise":
            raise DataDamaged(f"{text}; onDamage=skip leaves it out")

    def _qwp(self, schema: pa.Schema, fsn: int, payload: bytes) -> pa.RecordBatch:
        record = encode_record(payload, RecordType.RAW_DATA)
        return self._batch(schema, fsn, self.topic, record)

    def _lwp(
        self, topics: dict[int, str], schema: pa.Schema, fsn: int, payload: bytes
    ) -> pa.RecordBatch | None:
        stored = StoredBatch.decode(payload)
        topic = topics.get(stored.topic_number, f"#{stored.topic_number}")
        if not self.options.wants(topic):
            return None
        return self._batch(schema, fsn, topic, stored.records, stored.timestamp_ns)

    def _batch(
        self, schema: pa.Schema, fsn: int, topic: str, records: bytes, time_ns: int | None = None
    ) -> pa.RecordBatch:
        parted = self._inside(Parted.of(bytearray(records)), fsn << FRAME_SHIFT)
        times = None if time_ns is None else np.full(len(parted), time_ns)
        origin = self.options.origin(topic, fsn << FRAME_SHIFT, self.topic)
        return to_batch(schema, parted, origin, times)

    def _inside(self, records: Parted, base: int) -> Parted:
        """Return the records of a frame that begin in the range."""
        begins, count = records.places(), len(records)
        first = int(np.searchsorted(begins, self.start - base))
        last = int(np.searchsorted(begins, self.end - base))
        return records.between(records.place(min(first, count)), records.place(min(last, count)))


def _topics(files: Files, folder: Path) -> dict[int, str]:
    known = SlotMetadata(folder, files).topics
    return {topic.topic_number: topic.name.decode(errors="replace") for topic in known}


class SlotLog:
    """Slots, one split each.

    Args:
        options: of the query.
        folders: the slots.
    """

    def __init__(self, options: Options, folders: list[str]) -> None:
        self._options = options
        self._folders = {folder.rstrip("/").rpartition("/")[2]: folder for folder in folders}

    def __repr__(self) -> str:
        return f"<SlotLog {len(self._folders)} slots>"

    def look(self, known: Collection[str] = ()) -> list[TopicView]:
        """Return the slots."""
        del known
        return [self._view(name) for name in sorted(self._folders)]

    def _view(self, name: str) -> TopicView:
        files, folder = slot_files(self._folders[name])
        report = inspect(folder, kind_of(folder, files), files=files)
        first, behind = report.first_fsn, report.last_fsn + 1
        return TopicView(TopicIdentity(0, name), first << FRAME_SHIFT, behind << FRAME_SHIFT)

    def at(self, view: TopicView, moment: datetime) -> int:
        """Refuse: what waits has no time of a server.

        Raises:
            ConfigError: always.
        """
        del moment
        raise ConfigError(f"slot {view.name!r}: what waits in a slot has no time of a server yet")

    def plan(self, view: TopicView, start: int, end: int) -> list[InputSplit]:
        """Return a slot as one split."""
        if start >= end:
            return []
        return [SlotSplit(self._options, view.name, start, end, self._folders[view.name])]

    def advance(
        self, checkpoint: TopicCheckpoint, view: TopicView, limit: int, records: int = EVERYTHING
    ) -> TopicCheckpoint:
        """Refuse: a slot is drained while it is read.

        Raises:
            ConfigError: always.
        """
        del checkpoint, limit, records
        raise ConfigError(
            f"slot {view.name!r} can be read as a batch only: it is drained meanwhile"
        )

    def splits(self, checkpoint: TopicCheckpoint) -> list[InputSplit]:
        """Refuse: see `advance`."""
        raise TopicNotFound(f"slot {checkpoint.topic.label!r} can be read as a batch only")

    def unread(self, view: TopicView, offset: int) -> Unread:
        """Tell nothing: no streaming query reads a slot."""
        del view, offset
        return Unread()
