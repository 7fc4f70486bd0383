"""Snapshot: a copy of a data directory while it is served.

It is made topic by topic, each as it was at one moment: what was acknowledged before the snapshot
was asked for is in it, and nothing that was not acknowledged. Closed segments, which never
change, are linked where the file system can do that; of the segment that is being written its
durable part is copied. What a write-ahead log holds stands in those files, too, and is made
durable there. The copy gets its name when it is whole.
"""

import errno
import logging
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

from lance_server.errors import ConfigError
from lance_server.log.maintenance import Maintenance
from lance_server.log.metadata.catalog import FILE_NAME as CATALOG_FILE
from lance_server.log.metadata.checksummed_file import load_document, save_document
from lance_server.log.metadata.consumer_offsets import FILE_NAME as CONSUMERS_FILE
from lance_server.log.metadata.consumer_offsets import Commit, encode_commits
from lance_server.log.metadata.topic_file import LogStart, TopicFile
from lance_server.log.partitioned_topics import PartitionedTopics, wait_for_all
from lance_server.log.retention.expiry_clock import FILE_NAME as CLOCK_FILE
from lance_server.log.retention.rules import WINDOW_SUFFIX
from lance_server.log.segments.indexes import index_names
from lance_server.log.segments.segment_files import Segment, SegmentName
from lance_server.log.segments.sidecar import ENTRY_SIZE, HEADER_SIZE
from lance_server.log.segments.sidecar_scan import scan_segment
from lance_server.log.topic import Topic
from lance_server.runtime.completion import Completion
from lance_server.runtime.scheduling import Scheduler
from lance_server.storage.contract import StorageBackend, opened, read_at
from lance_server.storage.pwritev import PwritevStorage

_log = logging.getLogger(__name__)
_CHUNK: Final = 1024 * 1024
_UNFINISHED: Final = ".partial"
_ATTEMPTS: Final = 3
"""How often a segment is looked for: it may get its closed name in between."""
_NO_LINKS: Final = frozenset({errno.EXDEV, errno.EPERM, errno.EMLINK, errno.EOPNOTSUPP})
"""Errors where a file is copied that cannot be linked."""

_NO_NAMES: Final = frozenset({"", ".."})
"""What the last part of a path may be that names no new folder."""

LinkFile = Callable[[Path, Path], None]
"""Gives a file a second name."""


@dataclass(slots=True)
class SnapshotReport:
    """What is in a snapshot.

    Attributes:
        target: where it is.
        topics: how many topics are in it.
        linked: files that it shares with the data directory.
        copied: bytes that were copied.
        skipped: why a topic is not in it, by id.
    """

    target: Path
    topics: int = 0
    linked: int = 0
    copied: int = 0
    skipped: dict[int, str] = field(default_factory=dict)

    def to_body(self) -> dict[str, Any]:
        """Return it as the HTTP port tells it."""
        return {
            "target": str(self.target),
            "topics": self.topics,
            "linked_files": self.linked,
            "copied_bytes": self.copied,
            "skipped": {str(key): reason for key, reason in self.skipped.items()},
        }


class _Durable(NamedTuple):
    """A segment at one moment.

    Attributes:
        segment: it; its name may change meanwhile.
        size: bytes that were durable.
        batches: how many batches they are, if it was being written, or None.
    """

    segment: Segment
    size: int
    batches: int | None


class _Moment(NamedTuple):
    """A topic at one moment."""

    file: TopicFile
    start: LogStart
    segments: Sequence[_Durable]
    commits: dict[int, Commit]


def moment_of(topic: Topic) -> _Moment:
    """Return what is durable of a topic now (event loop's thread)."""
    segments = [
        _Durable(each, each.size, None if each.live is None else len(each.live))
        for each in topic.partition.segment_list
    ]
    return _Moment(topic.file, topic.partition.log_start, segments, topic.consumers.commits())


class _Names:
    """What the segments of a topic are called now.

    Args:
        storage: the backend.
        folder: of the topic.

    Attributes:
        folder: of the topic.
        present: the names of all files in it.
    """

    def __init__(self, storage: StorageBackend, folder: Path) -> None:
        self._storage = storage
        self.folder = folder
        self.read()

    def read(self) -> None:
        """Read the folder.

        Raises:
            OSError: the disk refused.
        """
        self.present = frozenset(self._storage.list_dir(self.folder))
        parsed = (SegmentName.parse(each) for each in self.present)
        found = sorted((each for each in parsed if each is not None), key=lambda n: n.end_ns or 0)
        self._by_key = {each.key: each for each in found}

    def of(self, segment: Segment) -> SegmentName:
        """Return what a segment is called.

        Raises:
            OSError: it is missing.
        """
        name = self._by_key.get(segment.name.key)
        if name is None:
            raise OSError(errno.EIO, f"{segment.data_path} is missing")
        return name


class SnapshotWriter:
    """Writes a snapshot (worker thread).

    Args:
        source: the log's backend.
        data_dir: the data directory.
        storage: the backend for the copy.
        target: the folder that it becomes; it does not exist yet.
        link: gives a file a second name.

    Attributes:
        report: what is in it.
        begun: whether its folder was made.
    """

    def __init__(
        self,
        source: StorageBackend,
        data_dir: Path,
        storage: StorageBackend,
        target: Path,
        link: LinkFile,
    ) -> None:
        self._source = source
        self._data_dir = data_dir
        self._storage = storage
        self._target = target
        self._draft = target.with_name(target.name + _UNFINISHED)
        self._link_file = link
        self.report = SnapshotReport(target)
        self.begun = False

    def __repr__(self) -> str:
        return f"<SnapshotWriter {self._target}: {self.report.topics} topics>"

    def begin(self) -> None:
        """Make the folder, with what belongs to no topic.

        Raises:
            ConfigError: there is something in its place.
            OSError: the disk refused.
        """
        names = self._storage.list_dir(self._target.parent)
        if self._target.name in names:
            raise ConfigError(f"'{self._target}' exists already; name a folder that does not exist")
        if self._draft.name in names:
            raise ConfigError(
                f"'{self._draft}' is the rest of a snapshot that was interrupted; remove it"
            )
        self.begun = True
        self._storage.make_dir(self._draft)
        self._storage.make_dir(self._draft / "segments")
        for name in (f"segments/{CATALOG_FILE}", CLOCK_FILE):
            document = load_document(self._source, self._data_dir / name)
            if document is not None:
                save_document(self._storage, self._draft / name, document.body)

    def add(self, moment: _Moment) -> None:
        """Add a topic; nothing else may be done to its files meanwhile, but writing batches.

        Raises:
            OSError: the disk refused, or the topic is not as it should be.
        """
        folder = self._draft / "segments" / moment.file.folder.name
        self._storage.make_dir(folder)
        self._add_segments(moment, folder)
        names = self._source.list_dir(moment.file.folder)
        for name in (name for name in names if name.endswith(WINDOW_SUFFIX)):
            self._share(moment.file.folder / name, folder / name)
        if moment.commits:
            self._write(folder / CONSUMERS_FILE, [encode_commits(moment.commits)])
        self._write_metadata(moment, folder)
        self._storage.sync_dir(folder)
        self.report.topics += 1

    def finish(self) -> SnapshotReport:
        """Give the copy its name, durably.

        Raises:
            OSError: the disk refused.
        """
        for folder in (self._draft / "segments", self._draft):
            self._storage.sync_dir(folder)
        self._storage.rename(self._draft, self._target)
        self._storage.sync_dir(self._target.parent)
        return self.report

    def give_up(self) -> None:
        """Remove what was made.

        Raises:
            OSError: the disk refused; some of it is left.
        """
        if self._draft.name in self._storage.list_dir(self._target.parent):
            segments = self._draft / "segments"
            if "segments" in self._storage.list_dir(self._draft):
                for name in self._storage.list_dir(segments):
                    if name.isdecimal():
                        self._empty(segments / name)
                self._empty(segments)
            self._empty(self._draft)

    def _empty(self, folder: Path) -> None:
        for name in self._storage.list_dir(folder):
            self._storage.remove(folder / name)
        self._storage.remove(folder)

    def _write_metadata(self, moment: _Moment, folder: Path) -> None:
        before = moment.file
        file = TopicFile(self._storage, folder, before.identity, before.retention)
        file.log_start, file.next_offset = moment.start, before.next_offset
        file.bases = {each.segment.name.key: each.segment.base_offset for each in moment.segments}
        file.holes = before.holes
        file.seen = {key: when for key, when in before.seen.items() if key in file.bases}
        file.save()

    # Segments ----------------------------------------------------------------------------------

    def _add_segments(self, moment: _Moment, folder: Path) -> None:
        """Add all segments of a topic; its folder is read again only where a name has changed."""
        names = _Names(self._source, moment.file.folder)
        for each in moment.segments:
            for attempt in range(1, _ATTEMPTS + 1):
                name = names.of(each.segment)
                try:
                    if name.end_ns is None:
                        self._copy_part(each, name, folder)
                    else:
                        self._share_segment(name, names, folder)
                except FileNotFoundError:  # it got its closed name just now
                    if attempt == _ATTEMPTS:
                        raise
                    names.read()
                else:
                    break

    def _share_segment(self, name: SegmentName, names: "_Names", folder: Path) -> None:
        for each in (name.data, name.sidecar, *index_names(name.key)):
            if each in names.present:
                self._share(names.folder / each, folder / each)

    def _copy_part(self, durable: _Durable, name: SegmentName, folder: Path) -> None:
        """Copy what was durable of the segment that is being written, and look at the copy."""
        assert durable.batches is not None, "a segment with its open name is being written"
        source = durable.segment.folder
        sidecar_size = HEADER_SIZE + durable.batches * ENTRY_SIZE
        self._copy(source / name.data, folder / name.data, durable.size)
        self._copy(source / name.sidecar, folder / name.sidecar, sidecar_size)
        with (
            opened(self._storage, folder / name.data) as data,
            opened(self._storage, folder / name.sidecar) as sidecar,
        ):
            scan = scan_segment(self._storage, data, sidecar)
        if scan.end != durable.size or not all(scan.slots):
            raise OSError(errno.EIO, f"{source / name.data} does not match its checksums")

    # Files -------------------------------------------------------------------------------------

    def _share(self, source: Path, target: Path) -> None:
        """Give a file that never changes a second name, or copy it; it is durable then."""
        with opened(self._source, source) as fd:
            self._source.sync(fd)
            size = self._source.size(fd)
        try:
            self._link_file(source, target)
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            self._copy(source, target, size)
        else:
            self.report.linked += 1

    def _copy_whole(self, source: Path, target: Path) -> None:
        with opened(self._source, source) as fd:
            self._write(target, self._chunks(fd, self._source.size(fd)))

    def _copy(self, source: Path, target: Path, size: int) -> None:
        with opened(self._source, source) as fd:
            self._write(target, self._chunks(fd, size))

    def _chunks(self, fd: int, size: int) -> Iterable[bytes | bytearray]:
        for start in range(0, size, _CHUNK):
            yield read_at(self._source, fd, min(_CHUNK, size - start), start)

    def _write(self, target: Path, chunks: Iterable[bytes | bytearray]) -> None:
        if target.name in self._storage.list_dir(target.parent):  # of an attempt before
            self._storage.remove(target)
        with opened(self._storage, target, create=True) as fd:
            place = 0
            for chunk in chunks:
                self._storage.write(fd, chunk, place)
                place += len(chunk)
            self._storage.sync(fd)
        self.report.copied += place


class SnapshotMaker(ABC):
    """Makes snapshots, one at a time. Belongs to the event loop's thread.

    Args:
        data_dir: the data directory.
        storage: its backend.
        scheduler: where work runs.

    Attributes:
        under_way: settled when the one that is being made is done, or None. Topics are deleted
            only after that.
    """

    def __init__(self, data_dir: Path, storage: StorageBackend, scheduler: Scheduler) -> None:
        self._data_dir = data_dir
        self._storage = storage
        self._scheduler = scheduler
        self.under_way: Completion[SnapshotReport] | None = None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._data_dir}>"

    def take(
        self, target: Path, storage: StorageBackend | None = None, link: LinkFile = os.link
    ) -> Completion[SnapshotReport]:
        """Copy the data directory as it is served.

        The outcome fails with a `ConfigError` where something is in the way, and with an
        `OSError` where a disk refused; nothing of the copy is left then.

        Args:
            target: the folder that it becomes, outside of the data directory.
            storage: the backend for the copy.
            link: gives a file a second name.

        Raises:
            ConfigError: it is inside the data directory or has no name, or another one is being
                made.
        """
        if self.under_way is not None:
            raise ConfigError("a snapshot is being made; wait for its end")
        if not target.is_absolute() or target.resolve().is_relative_to(self._data_dir.resolve()):
            raise ConfigError(f"'{target}' must be an absolute path outside of the data directory")
        if target.name in _NO_NAMES:
            raise ConfigError(
                f"'{target}' must end with the name of a folder that is not there yet"
            )
        outcome = self.under_way = Completion()
        outcome.wake(self._end)
        try:
            self._make(target, storage or PwritevStorage(), link, outcome)
        except BaseException:  # it has not begun: topics must not wait for its end
            self._end()
            raise
        return outcome

    @abstractmethod
    def _make(
        self,
        target: Path,
        storage: StorageBackend,
        link: LinkFile,
        outcome: Completion[SnapshotReport],
    ) -> None:
        """Begin a copy, and tell what came of it."""

    def _end(self) -> None:
        self.under_way = None

    @staticmethod
    def fail(outcome: Completion[SnapshotReport], error: Exception, left: Exception | None) -> None:
        """Tell that there is no snapshot.

        Args:
            outcome: of the snapshot.
            error: why there is none.
            left: why what was made of it could not be removed, or None.
        """
        if left is not None:
            _log.warning("what was made of a snapshot could not be removed: %s", left)
        outcome.fail(error)


class SnapshotTask:
    """Makes a snapshot, step by step, between the writes of clients (event loop's thread).

    Args:
        writer: writes it.
        run: runs work on the thread of topic files.
        alone: runs work on that thread when nothing else is done to a topic's files.
        reason: tells why a topic is not to be copied now, or returns None.
        outcome: settled with what is in it.
    """

    def __init__(
        self,
        writer: SnapshotWriter,
        run: Callable[[Callable[[], Any]], Completion[Any]],
        alone: Callable[[Topic, Callable[[], Callable[[], None]]], Completion[None]],
        reason: Callable[[Topic], str | None],
        outcome: Completion[SnapshotReport],
    ) -> None:
        self._writer = writer
        self._run = run
        self._alone = alone
        self._reason = reason
        self._left: list[Topic] = []
        self._outcome = outcome

    def __repr__(self) -> str:
        return f"<SnapshotTask {self._writer!r}, {len(self._left)} topics are left>"

    def start(self, topics: Iterable[Topic], unavailable: Mapping[int, str]) -> None:
        """Copy topics.

        Args:
            topics: by rising id.
            unavailable: why other topics cannot be served, by id.
        """
        self._writer.report.skipped.update(unavailable)
        self._left = list(topics)[::-1]
        self._after(self._run(self._writer.begin), self._next, undo=False)

    def _next(self) -> None:
        while self._left:
            topic = self._left.pop()
            reason = self._reason(topic)
            if reason is None:
                self._after(self._alone(topic, partial(self._work_on, topic)), self._next)
                return
            self._writer.report.skipped[topic.id] = reason
        finished = self._run(self._writer.finish)
        self._after(finished, lambda: self._outcome.settle(finished.result()))

    def _work_on(self, topic: Topic) -> Callable[[], None]:
        moment = moment_of(topic)
        return lambda: self._writer.add(moment)

    def _after(self, done: Completion[Any], then: Callable[[], None], *, undo: bool = True) -> None:
        done.wake(lambda: self._go_on(done, then, undo=undo))

    def _go_on(self, done: Completion[Any], then: Callable[[], None], *, undo: bool) -> None:
        error = done.error
        if error is None:
            then()
        elif undo:
            removed = self._run(self._writer.give_up)
            removed.wake(lambda: SnapshotMaker.fail(self._outcome, error, removed.error))
        else:
            self._outcome.fail(error)


class Log(Protocol):
    """What is copied, as far as this needs it."""

    partitioned: PartitionedTopics
    creating: dict[str, Completion[Topic]]

    @property
    def problems(self) -> Mapping[int, str]:
        """Why topics cannot be written to or cannot be served, by id."""
        ...

    def find(self, topic_id: int) -> Topic | None:
        """Return a topic that can be served, or None."""
        ...

    def topics_with_default(self) -> list[Topic]:
        """Return all topics, by id."""
        ...


class Snapshots(SnapshotMaker):
    """Makes snapshots of a log, one at a time. Belongs to the event loop's thread.

    Args:
        log: what is copied.
        data_dir: its data directory.
        storage: its backend.
        scheduler: where work runs.
        upkeep: what else is done to topics.
    """

    def __init__(
        self,
        log: Log,
        data_dir: Path,
        storage: StorageBackend,
        scheduler: Scheduler,
        upkeep: Maintenance,
    ) -> None:
        super().__init__(data_dir, storage, scheduler)
        self._log = log
        self._upkeep = upkeep

    def _make(
        self,
        target: Path,
        storage: StorageBackend,
        link: LinkFile,
        outcome: Completion[SnapshotReport],
    ) -> None:
        task = SnapshotTask(
            SnapshotWriter(self._storage, self._data_dir, storage, target, link),
            lambda work: self._scheduler.run("meta", work),
            self._upkeep.alone,
            lambda topic: self._log.problems.get(topic.id),
            outcome,
        )
        busy = [*self._log.creating.values(), *self._log.partitioned.busy.values()]
        wait_for_all(busy, lambda: self._begin(task))

    def _begin(self, task: SnapshotTask) -> None:
        problems = self._log.problems
        unavailable = {key: why for key, why in problems.items() if self._log.find(key) is None}
        task.start(self._log.topics_with_default(), unavailable)
