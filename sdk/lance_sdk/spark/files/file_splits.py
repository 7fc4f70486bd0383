"""Ranges of topics in files: where they are cut, and how their records are read."""

import time
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pyarrow as pa
from crc32c import crc32c

from lance_sdk.errors import MisalignedOffset, OpaqueRecords
from lance_sdk.offsets.contract import TopicIdentity
from lance_sdk.spark.errors import DataDamaged, DataLost
from lance_sdk.spark.files.plain_segments import boundaries, read_plain
from lance_sdk.spark.files.segments import (
    Entries,
    Segment,
    TopicFiles,
    opaque,
    read_entries,
    topic_files,
)
from lance_sdk.spark.files.storage import ReadMemory
from lance_sdk.spark.logs.losses import lost
from lance_sdk.spark.options import Options, RecordFormat
from lance_sdk.spark.rows.columns import TIME_COLUMNS, Parted, to_batch
from lance_spec.errors import DecodeError

CHUNK: Final = 1 << 20
"""Bytes of records that become one Arrow batch, about."""
_TRIES: Final = 10
_PAUSE: Final = 0.05
"""Seconds in which a server has given both files of a segment their names."""


class _Unsettled(Exception):  # noqa: N818 - it says what the files are
    """A segment and its sidecar do not fit: a server may be merging segments just now."""


@dataclass(frozen=True, slots=True)
class FileSplit:
    """A range of one segment file.

    Attributes:
        options: of the query.
        topic: the topic's name.
        start: byte offset in the topic at which it begins; a known boundary.
        end: byte offset at which it ends.
        folder: the topic's folder.
        segment: the file, as it was when it was listed.
        identity: which topic it is; a folder that holds another one has none of its records.
    """

    options: Options
    topic: str
    start: int
    end: int
    folder: str
    segment: Segment
    identity: TopicIdentity | None = None

    @property
    def size(self) -> int:
        """Bytes to read for it."""
        return self.end - self.start

    def shown_as(self, form: RecordFormat) -> "FileSplit":
        """Return the same split in another form of records."""
        return replace(self, options=replace(self.options, record_format=form))

    def read(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Yield the records.

        Raises:
            DataDamaged: the bytes are not what checksums or structure say.
            DataLost: the file is gone, and no other holds its records.
        """
        yield from self._attempt(schema, _TRIES)

    def _attempt(self, schema: pa.Schema, tries: int) -> Iterator[pa.RecordBatch]:
        """Yield the records; where the file was closed or merged meanwhile, look for them again."""
        try:
            yield from self._read(self.segment, schema, settled=tries < _TRIES)
        except (FileNotFoundError, _Unsettled):
            if not tries:
                raise
            time.sleep(_PAUSE)
            for split in self._moved():
                yield from split._attempt(schema, tries - 1)  # noqa: SLF001 - its own kind

    def _moved(self) -> list["FileSplit"]:
        """Return the range as splits of the files that hold it now.

        Raises:
            DataLost: not all of it is there, or the folder is another topic's now, and
                ``failOnDataLoss`` holds.
        """
        splits = self._found_again()
        begins = [*(each.start for each in splits), self.end]
        if begins == [self.start, *(each.end for each in splits)]:
            return splits
        text = (
            f"{self.segment.path} is gone, and no other files of {self.folder} hold all from "
            f"offset {self.start} to {self.end}; it was dropped while the query ran"
        )
        if self.options.fail_on_data_loss:
            raise DataLost(f"{text}; failOnDataLoss=false goes on with what is left")
        lost(text, self.size - sum(each.size for each in splits))
        return splits

    def _found_again(self) -> list["FileSplit"]:
        try:
            files = topic_files(self.folder)
        except FileNotFoundError:  # the topic is deleted
            return []
        if self.identity is not None and self.identity.difference(files.identity) is not None:
            return []
        return cut_range(self.options, files, self.start, self.end, self.end)

    def _read(
        self, segment: Segment, schema: pa.Schema, *, settled: bool = False
    ) -> Iterator[pa.RecordBatch]:
        first, behind = self.start - segment.base, self.end - segment.base
        if segment.sidecar is None:
            for offset, records in read_plain(segment, first, behind):
                origin = self.options.origin(self.topic, segment.base + offset, segment.label)
                yield to_batch(schema, records, origin)
            return
        found, void = read_entries(segment)
        self._check_void(segment, void)
        ends = found["start"] + found["length"]
        found = found[(ends > first) & (found["start"] < behind)]
        if segment.name.is_closed:
            self._check_cover(segment, _hole(found, first, behind), settled=settled)
        memory = ReadMemory()
        with segment.opened() as file:
            for part in _chunks(found):
                start = int(part["start"][0])
                size = int(part["start"][-1]) + int(part["length"][-1]) - start
                yield from self._convert(schema, segment, part, memory.read(file, size, start))

    def _convert(
        self, schema: pa.Schema, segment: Segment, part: Entries, data: memoryview
    ) -> Iterator[pa.RecordBatch]:
        """Yield a run of batches that lie back to back, as few Arrow batches as can be.

        All checksums are compared before the first value is moved.
        """
        good = _matching(part, data) & ~opaque(part)
        if good.all():
            yield self._batch(schema, segment, part, data)
            return
        for index in range(len(part)):
            start = int(part["start"][index]) - int(part["start"][0])
            one, batch = part[index : index + 1], data[start : start + int(part["length"][index])]
            if good[index]:
                yield self._batch(schema, segment, one, batch)
            else:
                yield from self._bad_batch(schema, segment, one, batch)

    def _batch(
        self,
        schema: pa.Schema,
        segment: Segment,
        part: Entries,
        data: memoryview,
        *,
        ok: bool = True,
    ) -> pa.RecordBatch:
        offset = segment.base + int(part["start"][0])
        records = self._trimmed(Parted.of(data), offset, segment)
        times = None
        if not TIME_COLUMNS.isdisjoint(schema.names):
            edges = (part["start"] - part["start"][0]).astype(np.int64)
            numbers = np.searchsorted(edges, records.places(), side="right") - 1
            times = part["server_ns"][numbers]
        return to_batch(
            schema,
            records,
            self.options.origin(self.topic, offset, segment.label, crc_ok=ok),
            times,
        )

    def _trimmed(self, records: Parted, offset: int, segment: Segment) -> Parted:
        """Leave out the records of a batch that lie outside of the range."""
        first = max(0, self.start - offset)
        inside = records.between(first, self.end - offset)
        if inside.place(0) != first:
            raise MisalignedOffset(
                f"{segment.path}: offset {self.start} lies inside a record; begin at an offset "
                "that a row had",
                self.start,
            )
        return inside

    def _bad_batch(
        self, schema: pa.Schema, segment: Segment, part: Entries, data: memoryview
    ) -> Iterator[pa.RecordBatch]:
        offset = segment.base + int(part["start"][0])
        if opaque(part)[0]:
            if self.options.on_opaque == "raise":
                raise OpaqueRecords(
                    f"{segment.path}: the {len(data)} bytes from offset {offset} were stored "
                    "without being records; onOpaque=skip leaves them out",
                    offset,
                    offset + len(data),
                )
            return
        if "crc_ok" in schema.names:
            try:
                yield self._batch(schema, segment, part, data, ok=False)
            except DecodeError:
                pass  # not even records any more: judged as any other damage
            else:
                return
        if self.options.on_damage == "raise":
            raise DataDamaged(
                f"{segment.path}: the {int(part['length'][0])} bytes from offset {offset} do not "
                "match their checksum; onDamage=skip leaves them out, the column crc_ok shows them"
            )

    def _check_cover(
        self, segment: Segment, hole: tuple[int, int] | None, *, settled: bool
    ) -> None:
        if hole is None:
            return
        if not settled:
            raise _Unsettled
        if self.options.on_damage == "raise":
            raise DataDamaged(
                f"{segment.sidecar}: it knows no batch for bytes {hole[0]} to {hole[1]} of "
                f"{segment.label}; it was cut, or is another segment's. Run lance-server repair "
                "on the data directory; onDamage=skip reads what the sidecar knows"
            )

    def _check_void(self, segment: Segment, void: int) -> None:
        if void and self.options.on_damage == "raise":
            raise DataDamaged(
                f"{segment.sidecar}: {void} entries are void, so that batches of {segment.path} "
                "cannot be told; onDamage=skip leaves them out, lwp pipeline audit tells more"
            )


def _hole(found: Entries, first: int, behind: int) -> tuple[int, int] | None:
    """Return the first part of a range that belongs to no batch."""
    starts: list[int] = [*found["start"].tolist(), behind]
    ends: list[int] = [first, *(found["start"] + found["length"]).tolist()]
    return next(
        ((end, start) for end, start in zip(ends, starts, strict=True) if end < start), None
    )


def _matching(part: Entries, data: memoryview) -> np.ndarray[Any, Any]:
    starts = (part["start"] - part["start"][0]).tolist()
    ends = (part["start"] - part["start"][0] + part["length"]).tolist()
    sums = [crc32c(data[start:end]) for start, end in zip(starts, ends, strict=True)]
    whole = np.array(ends) <= len(data)
    return (np.array(sums, dtype=np.uint32) == part["crc"]) & whole


def _chunks(found: Entries, limit: int = CHUNK) -> Iterator[Entries]:
    """Yield runs of batches without a hole between them, of about ``limit`` bytes."""
    ends = found["start"] + found["length"]
    holes: list[int] = (np.flatnonzero(found["start"][1:] != ends[:-1]) + 1).tolist()
    first = 0
    for behind in [*holes, len(found)]:
        while first < behind:
            target = int(found["start"][first]) + limit
            last = max(first + 1, min(behind, int(np.searchsorted(ends, target, side="right"))))
            yield found[first:last]
            first = last


def cut_range(
    options: Options, files: TopicFiles, start: int, end: int, split_bytes: int
) -> list[FileSplit]:
    """Cut a range of a topic at segment starts, and at batches known from sidecars or indexes."""
    splits = []
    for segment, behind in _with_ends(files.segments, end):
        if behind <= start or segment.base >= end:
            continue
        first = max(start, segment.base)
        edges = [first, *_edges(segment, first, behind, split_bytes), behind]
        splits += [
            FileSplit(
                options,
                files.identity.label,
                begin,
                stop,
                files.folder,
                segment,
                files.identity,
            )
            for begin, stop in pairwise(edges)
            if begin < stop
        ]
    return splits


def _with_ends(segments: Sequence[Segment], end: int) -> Iterator[tuple[Segment, int]]:
    for segment in segments:
        yield segment, min(end, segment.end)


def _edges(segment: Segment, first: int, behind: int, split_bytes: int) -> list[int]:
    """Return boundaries between ``first`` and ``behind``, about ``split_bytes`` apart."""
    if behind - first <= split_bytes:
        return []
    if segment.sidecar is None:
        known = boundaries(segment)
    else:
        known = read_entries(segment)[0]["start"].astype(np.int64)
    places = (known + segment.base).tolist()
    found: list[int] = []
    due = first + split_bytes
    while due < behind:
        index = bisect_right(places, due) - 1
        if index < 0 or places[index] <= (found[-1] if found else first):
            index += 1
        if index >= len(places) or places[index] >= behind:
            break
        found.append(places[index])
        due = places[index] + split_bytes
    return found
