"""Topics in files: data directories, topic folders and single segments, without a server."""

from collections.abc import Collection, Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any, Final, Protocol

import numpy as np

from lance_sdk.errors import ConfigError, TopicNotFound
from lance_sdk.offsets.contract import Fingerprint
from lance_sdk.spark.errors import DataDamaged, DataLost
from lance_sdk.spark.files.file_splits import FileSplit, cut_range
from lance_sdk.spark.files.segments import Segment, TopicFiles, read_entries, topic_files
from lance_sdk.spark.files.storage import steadily
from lance_sdk.spark.files.topic_folder import load_metadata
from lance_sdk.spark.logs.contract import EVERYTHING, InputSplit, TopicView, Unread
from lance_sdk.spark.logs.input_partitions import wanted_bytes
from lance_sdk.spark.logs.losses import lost, planned_range
from lance_sdk.spark.options import Options
from lance_sdk.spark.streaming.checkpoint import TopicCheckpoint
from lance_sdk.values.keyed import as_time_ns
from lance_spec.limits import DEFAULT_TOPIC_ID

_MOST_NAMES: Final = 10
"""Topics that a message names."""


class Folders(Protocol):
    """Where topics are."""

    def now(self) -> list[str]:
        """Return the folders of all topics that there are now."""
        ...


class FileLog:
    """Topics in folders.

    Args:
        options: of the query.
        folders: where the topics are.
    """

    def __init__(self, options: Options, folders: Folders) -> None:
        self._options = options
        self._folders = folders
        self._seen: dict[str, TopicFiles] = {}

    def __repr__(self) -> str:
        return f"<FileLog {self._folders!r}>"

    def look(self, known: Collection[str] = ()) -> list[TopicView]:
        """Return the topics of the query, also those that came since the last look.

        Raises:
            TopicNotFound: one that was named is not there.
            ConfigError: two folders hold topics of one name.
        """
        return steadily(lambda: self._look(known))

    def _look(self, known: Collection[str]) -> list[TopicView]:
        self._seen = {}
        others: list[str] = []
        for folder in self._folders.now():
            if (other := self._other_topic(folder)) is not None:
                others.append(other)
                continue
            files = topic_files(folder)
            name = files.identity.label
            unused = files.identity.id == DEFAULT_TOPIC_ID and not files.segments  # as in AMB-34
            if unused:
                continue
            if not self._options.wants(name):
                others.append(name)
                continue
            if name in self._seen:
                raise ConfigError(
                    f"{folder} and {self._seen[name].folder} both hold a topic {name!r}; "
                    "read one path at a time"
                )
            self._check_whole(files)
            self._seen[name] = files
        if missing := set(self._options.topics) - set(self._seen) - set(known):
            there = ", ".join(sorted([*self._seen, *others])[:_MOST_NAMES]) or "none"
            raise TopicNotFound(
                f"there is no topic {min(missing)!r} in {self._options.path[0]}; there are: {there}"
            )
        return [self._view(self._seen[name]) for name in sorted(self._seen)]

    def _other_topic(self, folder: str) -> str | None:
        """Return the topic of a folder that its metadata alone shows not to be asked for."""
        found = load_metadata(folder)
        if found is None or found[1].identity.id == DEFAULT_TOPIC_ID:
            return None
        name = found[1].identity.label
        return None if self._options.wants(name) else name

    def _check_whole(self, files: TopicFiles) -> None:
        """Refuse a folder that is not what its metadata says, unless damage may be skipped."""
        if files.problems and self._options.on_damage == "raise":
            raise DataDamaged(
                f"{files.folder}: {files.problems[0]}; run lance-server repair on the data "
                "directory. onDamage=skip reads what is there, lwp pipeline audit tells more"
            )

    def _files(self, view: TopicView) -> TopicFiles:
        if view.name not in self._seen:
            raise TopicNotFound(f"topic {view.name!r} was deleted while it was read")
        return self._seen[view.name]

    def at(self, view: TopicView, moment: datetime) -> int:
        """Return the offset of the first batch that arrived at a time or later."""
        return steadily(lambda: self._at(view, moment), self.look)

    def _at(self, view: TopicView, moment: datetime) -> int:
        wanted = as_time_ns("timestamp", moment)
        for segment in self._files(view).segments:
            if segment.name.end_ns is not None and segment.name.end_ns < wanted:
                continue
            if segment.sidecar is None:
                raise ConfigError(f"{segment.path} has no sidecar, so that its times are not known")
            found, _ = read_entries(segment)
            late = np.flatnonzero(found["server_ns"] >= wanted)
            if len(late):
                return segment.base + int(found["start"][late[0]])
        return view.end

    def plan(self, view: TopicView, start: int, end: int) -> list[InputSplit]:
        """Cut a range into splits."""
        size = wanted_bytes(end - start, self._options)

        def cut() -> list[FileSplit]:
            return cut_range(self._options, self._files(view), start, end, size)

        return list(steadily(cut, self.look))

    def advance(
        self, checkpoint: TopicCheckpoint, view: TopicView, limit: int, records: int = EVERYTHING
    ) -> TopicCheckpoint:
        """Go on from a checkpoint by whole batches."""
        return steadily(lambda: self._advance(checkpoint, view, limit, records), self.look)

    def _advance(
        self, checkpoint: TopicCheckpoint, view: TopicView, limit: int, records: int
    ) -> TopicCheckpoint:
        files = self._files(view)
        self._judge(checkpoint, view, files)
        end, last, taken = checkpoint.offset, None, 0
        for segment in files.segments:
            if segment.end <= checkpoint.offset:
                continue
            if segment.sidecar is None:
                raise ConfigError(
                    f"{segment.path} has no sidecar, and without one it is not known where the "
                    "next batch ends; read the folder as a batch, or import it with lance-server"
                )
            after = max(end, checkpoint.offset)
            for start, length, count in self._batches(segment, after, view.end):
                is_full = start + length - checkpoint.offset > limit or taken + count > records
                if last is not None and is_full:
                    return self._checkpoint_at(checkpoint, end, last, taken)
                end, last = start + length, (segment, start - segment.base, length)
                taken += count
        if last is None:
            return checkpoint.resting()
        return self._checkpoint_at(checkpoint, end, last, taken)

    def _batches(self, segment: Segment, after: int, end: int) -> Iterator[tuple[int, int, int]]:
        found, _ = read_entries(segment)
        starts: np.ndarray[Any, Any] = found["start"].astype(np.int64) + segment.base
        columns = (starts.tolist(), found["length"].tolist(), found["records"].tolist())
        for start, length, count in zip(*columns, strict=True):
            if after < start + length <= end:
                yield start, length, count

    def _checkpoint_at(
        self, checkpoint: TopicCheckpoint, end: int, last: tuple[Segment, int, int], records: int
    ) -> TopicCheckpoint:
        segment, start, length = last
        with segment.opened() as file:
            data = bytes(file.read_at(length, start))
        return checkpoint.moved(end, Fingerprint.of(data, end), (), records)

    def _judge(self, checkpoint: TopicCheckpoint, view: TopicView, files: TopicFiles) -> None:
        """Compare the records before the checkpoint, where they are still there (AMB-30).

        Raises:
            DataLost: they are others.
        """
        known = checkpoint.fingerprint
        if known is None or known.start < view.start:
            return
        if not known.matches(_bytes_of(files, known.start, known.end)):
            raise DataLost(
                f"topic {view.name!r}: the records before offset {known.end} are not those that "
                "the query has read; begin with another checkpointLocation, or say "
                "failOnDataLoss=false"
            )

    def splits(self, checkpoint: TopicCheckpoint) -> list[InputSplit]:
        """Return the splits of a micro-batch, held against what is there now.

        Raises:
            DataLost: what was planned is not there any more, or not all of it, or is something
                else, and ``failOnDataLoss`` holds; else what is left of it is returned.
        """
        if checkpoint.offset <= checkpoint.start:
            return []
        name = checkpoint.topic.label
        now = {view.name: view for view in self.look({name})}
        start, end = planned_range(checkpoint, now.get(name), fail=self._options.fail_on_data_loss)
        if start >= end:
            return []
        view = now[name]
        try:
            steadily(lambda: self._judge(checkpoint, view, self._files(view)), self.look)
        except DataLost as error:
            if self._options.fail_on_data_loss:
                raise
            lost(str(error), checkpoint.offset - checkpoint.start)
            return []
        return self.plan(view, start, end)

    def unread(self, view: TopicView, offset: int) -> Unread:
        """Return what there is from an offset on: records by the names and sidecars of segments."""
        return steadily(lambda: self._unread(view, offset), self.look)

    def _unread(self, view: TopicView, offset: int) -> Unread:
        segments = [each for each in self._files(view).segments if each.end > offset]
        if not segments or segments[0].sidecar is None or segments[-1].sidecar is None:
            return Unread()
        first, last = segments[0], segments[-1]
        found, _ = read_entries(first)
        left = found[found["start"] + found["length"] + first.base > offset]
        since = int(left["server_ns"][0]) if len(left) else last.name.start_ns
        if first is last:
            return Unread(int(left["records"].sum()), since)
        before = first.name.start_index + int(found["records"].sum()) - int(left["records"].sum())
        tail, _ = read_entries(last)
        return Unread(last.name.start_index + int(tail["records"].sum()) - before, since)

    def _view(self, files: TopicFiles) -> TopicView:
        """Return where a topic begins and ends; behind its last whole batch while it is written."""
        if not files.segments:
            return TopicView(files.identity, files.start, max(files.start, files.reached))
        last = files.segments[-1]
        end = last.end
        if not last.name.is_closed and last.sidecar is not None:
            found, _ = read_entries(last)
            size = int(found["start"][-1]) + int(found["length"][-1]) if len(found) else 0
            end = last.base + size
            grown = replace(last, size=max(size, last.size))
            files = replace(files, segments=(*files.segments[:-1], grown))
            self._seen[files.identity.label] = files
        return TopicView(files.identity, files.start, max(end, files.reached))


def _bytes_of(files: TopicFiles, start: int, end: int) -> bytes:
    """Return the bytes of a range, as far as the segments have them."""
    found = b""
    for segment in files.segments:
        first, behind = max(start, segment.base), min(end, segment.end)
        if first < behind:
            with segment.opened() as file:
                found += bytes(file.read_at(behind - first, first - segment.base))
    return found
