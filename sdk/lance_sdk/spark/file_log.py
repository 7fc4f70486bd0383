"""Topics in files: data directories, topic folders and single segments, without a server."""

from collections.abc import Collection, Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any, Final, Protocol

import numpy as np

from lance_sdk.errors import ConfigError, TopicNotFound
from lance_sdk.offsets.contract import Fingerprint
from lance_sdk.spark.contract import Piece, TopicView
from lance_sdk.spark.errors import DataDamaged, DataLost
from lance_sdk.spark.file_pieces import FilePiece, cut_range
from lance_sdk.spark.losses import lost, planned_range
from lance_sdk.spark.marks import Mark
from lance_sdk.spark.options import Options
from lance_sdk.spark.packing import wanted_bytes
from lance_sdk.spark.segments import Segment, TopicFiles, read_entries, topic_files
from lance_sdk.spark.storage import opened, steadily
from lance_sdk.values.keyed import as_time_ns

_MOST_NAMES: Final = 10
"""Topics that a message names."""
DEFAULT_TOPIC: Final = 0
"""Number of the topic that every server has, and shows only once it is used (AMB-34)."""


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
            files = topic_files(folder)
            name = files.identity.label
            unused = files.identity.id == DEFAULT_TOPIC and not files.segments
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

    def plan(self, view: TopicView, start: int, end: int) -> list[Piece]:
        """Cut a range into pieces."""
        size = wanted_bytes(end - start, self._options)

        def cut() -> list[FilePiece]:
            return cut_range(self._options, self._files(view), start, end, size)

        return list(steadily(cut, self.look))

    def advance(self, mark: Mark, view: TopicView, limit: int) -> Mark:
        """Go on from a mark by whole batches."""
        return steadily(lambda: self._advance(mark, view, limit), self.look)

    def _advance(self, mark: Mark, view: TopicView, limit: int) -> Mark:
        files = self._files(view)
        self._judge(mark, view, files)
        end, last = mark.offset, None
        for segment in files.segments:
            if segment.end <= mark.offset:
                continue
            if segment.sidecar is None:
                raise ConfigError(
                    f"{segment.path} has no sidecar, and without one it is not known where the "
                    "next batch ends; read the folder as a batch, or import it with lance-server"
                )
            for start, length in self._batches(segment, max(end, mark.offset), view.end):
                if last is not None and start + length - mark.offset > limit:
                    return self._marked(mark, end, last)
                end, last = start + length, (segment, start - segment.base, length)
        return mark.resting() if last is None else self._marked(mark, end, last)

    def _batches(self, segment: Segment, after: int, end: int) -> Iterator[tuple[int, int]]:
        found, _ = read_entries(segment)
        starts: np.ndarray[Any, Any] = found["start"].astype(np.int64) + segment.base
        for start, length in zip(starts.tolist(), found["length"].tolist(), strict=True):
            if after < start + length <= end:
                yield start, length

    def _marked(self, mark: Mark, end: int, last: tuple[Segment, int, int]) -> Mark:
        segment, start, length = last
        with opened(segment.path) as file:
            data = bytes(file.read_at(length, start))
        return mark.moved(end, Fingerprint.of(data, end), ())

    def _judge(self, mark: Mark, view: TopicView, files: TopicFiles) -> None:
        """Compare the records before the mark, where they are still there (AMB-30).

        Raises:
            DataLost: they are others.
        """
        known = mark.fingerprint
        if known is None or known.start < view.start:
            return
        if not known.matches(_bytes_of(files, known.start, known.end)):
            raise DataLost(
                f"topic {view.name!r}: the records before offset {known.end} are not those that "
                "the query has read; begin with another checkpointLocation, or say "
                "failOnDataLoss=false"
            )

    def pieces(self, mark: Mark) -> list[Piece]:
        """Return the pieces of a micro-batch, held against what is there now.

        Raises:
            DataLost: what was planned is not there any more, or not all of it, or is something
                else, and ``failOnDataLoss`` holds; else what is left of it is returned.
        """
        if mark.offset <= mark.start:
            return []
        name = mark.topic.label
        now = {view.name: view for view in self.look({name})}
        start, end = planned_range(mark, now.get(name), fail=self._options.fail_on_data_loss)
        if start >= end:
            return []
        view = now[name]
        try:
            steadily(lambda: self._judge(mark, view, self._files(view)), self.look)
        except DataLost as error:
            if self._options.fail_on_data_loss:
                raise
            lost(str(error), mark.offset - mark.start)
            return []
        return self.plan(view, start, end)

    def _view(self, files: TopicFiles) -> TopicView:
        """Return where a topic begins and ends; behind its last whole batch while it is written."""
        if not files.segments:
            return TopicView(files.identity, files.floor, files.floor)
        last = files.segments[-1]
        end = last.end
        if not last.name.is_closed and last.sidecar is not None:
            found, _ = read_entries(last)
            size = int(found["start"][-1]) + int(found["length"][-1]) if len(found) else 0
            end = last.base + size
            grown = replace(last, size=max(size, last.size))
            files = replace(files, segments=(*files.segments[:-1], grown))
            self._seen[files.identity.label] = files
        return TopicView(files.identity, files.segments[0].base, end)


def _bytes_of(files: TopicFiles, start: int, end: int) -> bytes:
    """Return the bytes of a range, as far as the segments have them."""
    found = b""
    for segment in files.segments:
        first, behind = max(start, segment.base), min(end, segment.end)
        if first < behind:
            with opened(segment.path) as file:
                found += bytes(file.read_at(behind - first, first - segment.base))
    return found
