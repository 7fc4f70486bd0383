"""Planted faults that do harm only after two or three unlikely things in a row.

Each is a way in which a store lost, or seemed to lose, what it had acknowledged: a failed save,
then a merge, then a restart. Where several mends stand one after the other, all are taken away.
"""

from bisect import bisect_right
from collections.abc import Callable
from typing import Any, Final

from greenlet import getcurrent
from tests.simulation.mutants import Mutant, Patch, always, nothing

from lance_server.log import flusher, maintenance, partition
from lance_server.log.metadata import consumer_offsets, topic_file, topic_folders
from lance_server.log.recovery import discovery, startup, topic_recovery
from lance_server.log.retention import enforcement, expiry_clock
from lance_server.log.segments import active_segment, segment_files
from lance_server.runtime import completion
from lance_server.runtime.completion import Completion
from lance_server.storage import contract, wal, wal_file, wal_replay
from lance_spec.errors import DecodeError


def _base_kept(right: Any) -> Callable[..., Any]:
    def add_base(self: Any, key: str, base_offset: int) -> None:
        try:
            right(self, key, base_offset)
        except OSError:
            self.bases = {**self.bases, key: base_offset}
            raise

    return add_base


def _create_keeps_base(_: Any) -> Callable[..., Any]:
    """Return a writer's making that notes the base first and does not take it back."""

    def new_writer(self: Any, now_ns: int, place: Any) -> Any:
        last_start = max(self._last_start, place.last.start_ns if place.last else 0)
        name = segment_files.SegmentName(place.record, max(now_ns, last_start + 1))
        self._last_start = name.start_ns
        begun = segment_files.Segment(
            self._file.folder, name, place.offset, place.record, live=active_segment.BatchIndex()
        )
        self._file.add_base(name.key, begun.base_offset)
        return segment_files.SegmentWriter.create(self._storage, begun, self._file.identity.id)

    return new_writer


def _merge_forgotten(right: Any) -> Callable[..., Any]:
    """Return upkeep that gives a recorded merge up when a step of it fails."""

    def finish(self: Any, topic: Any) -> Any:
        try:
            yield from right(self, topic)
        except OSError:
            self._merging.pop(topic.file, None)
            topic.file.merging = None
            raise

    return finish


def _room_at_once(right: Any) -> Callable[..., Any]:
    """Return a commit that makes room in the log itself, where it is full."""

    def take(self: Any, length: int) -> Any:
        file = right(self, length)
        if file is None and self._files and not self._finished:
            self._asked = length
            self._make_room()
            file = right(self, length)
        return file

    return take


def _limited_alone(_: Any) -> Callable[..., Any]:
    """Return retention that drops what a recorded merge makes before that is finished."""
    return lambda self, topic: self.retention.steps(topic)


def _kept_after_close(_: Any) -> Callable[..., Any]:
    """Return a close that keeps the writer of an empty segment whose removal fails."""

    def close(self: Any) -> None:
        writer = self._writer
        if writer is None:
            return
        if writer.batches:
            writer.close(sync=not self._synced)
            writer.segment.live = None
            self._writer = None
        else:
            segment_files.remove_files(self._storage, writer.segment)
        self._storage.sync_dir(writer.segment.folder)
        if self._writer is not None:
            writer.release()
            self._writer = None

    return close


class _DrawnEarly:
    """Gives a number that was drawn before the file was taken."""

    def __init__(self, first: int) -> None:
        self._following = first
        self._drawn: dict[Any, int] = {}

    def draw(self) -> None:
        self._drawn[getcurrent()] = self._following
        self._following += 1

    def __next__(self) -> int:
        return self._drawn.pop(getcurrent())


def _placed_by_sidecar(right: Any) -> Callable[..., Any]:
    """Return a placing of segments that believes any sidecar that can be read."""

    def place(self: Any, name: Any) -> Any:
        try:
            header = self._header(name)
        except (DecodeError, FileNotFoundError):
            return right(self, name)
        return segment_files.Segment(self._folder, name, header.base_offset, name.start_record)

    return place


def _lost_by_offset(_: Any) -> Callable[..., Any]:
    """Return a search for lost segments that looks at offsets alone, not at names."""

    def with_lost(self: Any, segments: list[Any], end: int) -> list[Any]:
        bounds = sorted({*(each.base_offset for each in segments), end})
        for key, base in self._file.bases.items():
            name = segment_files.SegmentName.parse(key + segment_files.DATA_SUFFIX)
            following = bisect_right(bounds, base)
            if base not in bounds and name is not None and following < len(bounds):
                stub = name._replace(end_ns=name.start_ns)
                segments.append(self._stub(stub, base, bounds[following]))
        return sorted(segments, key=lambda each: (each.base_offset, each.name))

    return with_lost


def _draw_first(right: Any) -> Callable[..., Any]:
    def take(self: Any, length: int) -> Any:
        self._number.draw()
        return right(self, length)

    return take


def _until_it_falls(right: Any) -> Callable[..., Any]:
    """Return a reading of a log file that stops at the first number that does not rise."""

    def read_frames(data: Any, use: Any) -> Any:
        frames, damaged = right(data, use)
        rising: list[Any] = []
        for frame in frames:
            if rising and frame.number <= rising[-1].number:
                break
            rising.append(frame)
        return rising, damaged

    return read_frames


def _use_taken_back(right: Any) -> Callable[..., Any]:
    """Return a recycle after whose failure the file goes on as it was."""

    def recycle(self: Any) -> None:
        use = self._use
        try:
            right(self)
        except OSError:
            self._use, self.unsure = use, False
            raise

    return recycle


def _no_gaps(right: Any) -> Callable[..., Any]:
    def read_all(storage: Any, paths: Any) -> Any:
        contents = right(storage, paths)
        numbers = sorted({each.number for each in contents.writes})
        if numbers and len(numbers) != numbers[-1] - numbers[0] + 1:
            raise ValueError("numbers are missing")
        return contents

    return read_all


def _not_taken_back(_: Any) -> Callable[..., Any]:
    """Return an append of commits that leaves what failed where it is."""

    def append(self: Any, fd: int, data: bytes) -> None:
        try:
            size = consumer_offsets._SLOT * (1 + self._slots)
            self._storage.write(fd, data, size)
            self._storage.sync(fd)
        except OSError:
            self._is_sound = False
            raise

    return append


def _memory_first(right: Any) -> Callable[..., Any]:
    """Return a change of commits that readers see before it is durable."""

    def change(self: Any, consumer_id: int, commit: Any) -> Any:
        self._committed = consumer_offsets._changed(self._committed, {consumer_id: commit})
        return right(self, consumer_id, commit)

    return change


def _settled_anyway(_: Any) -> Callable[..., Any]:
    def written(self: Any, changes: Any, _written: Any, outcome: Completion[None]) -> None:
        self._writing, self._under_way = False, {}
        self._committed = consumer_offsets._changed(self._committed, changes)
        outcome.settle(None)
        if self._waiting is not None:
            self._writing = True
            self._begin()

    return written


def _wake_until_it_fails(_: Any) -> Callable[..., Any]:
    def wake_all(waiters: Any) -> None:
        for waiter in waiters:
            waiter()

    return wake_all


def _release_raises(_: Any) -> Callable[..., Any]:
    def release(self: Any) -> None:
        for fd in (self._data, self._sidecar):
            self._storage.close(fd)

    return release


def _seal_lowers(_: Any) -> Callable[..., Any]:
    return lambda self: self._active_segment.seal(self.written_end)


def _seek_once(_: Any) -> Callable[..., Any]:
    return lambda _, view, find: find(view)


def _decided(_: Any) -> Any:
    class Decided(contract.UndecidedError):
        @classmethod
        def after(cls, error: OSError) -> Any:
            return OSError(error.errno, error.strerror)

    return Decided


def _as_it_is(_: Any) -> Callable[..., Any]:
    return lambda name: name


def _limit_is_least(right: Any) -> Callable[..., Any]:
    """Return retention that keeps at least what a limit in bytes says."""

    def expired(segments: Any, policy: Any, *rest: Any) -> int:
        by_age: int = right(segments, topic_file.Retention(policy.max_age_secs, 0), *rest)
        left, count = sum(each.size for each in segments), 0
        for each in segments:
            left -= each.size
            if each.live is not None or not policy.max_bytes or left < policy.max_bytes:
                break
            count += 1
        return max(by_age, count)

    return expired


def _refused(_: Any) -> Callable[..., Any]:
    def open_or_look(self: Any, topic_id: int, folder: Any) -> Any:
        del folder
        return self.open_topic(topic_id)

    return open_or_look


_HALFWAY: Final = Patch(topic_file.TopicFile, "_settle", nothing)

SEQUENCES: Final = (
    Mutant("a sidecar that was written over keeps the server from starting",
           (Patch(discovery.SegmentDiscovery, "_place", _placed_by_sidecar),
            Patch(discovery.SegmentDiscovery, "_with_lost", _lost_by_offset)), ("rot",)),
    Mutant("the base of a segment that was not begun is kept", (
        Patch(topic_file.TopicFile, "add_base", _base_kept),
        Patch(active_segment.ActiveSegment, "_new_writer", _create_keeps_base),
        Patch(discovery.SegmentDiscovery, "_forget_stale_bases", nothing),
    ), ("roll", "full", "append")),
    Mutant("numbers of a write-ahead log are drawn before its file is held", (
        Patch(wal, "count", lambda _: _DrawnEarly),
        Patch(wal.WalStorage, "_take", _draw_first),
        Patch(wal_replay, "read_frames", _until_it_falls),
    ), ("burst",), ("wal",)),
    Mutant("a segment whose removal failed is written to",
           (Patch(active_segment.ActiveSegment, "_close", _kept_after_close),),
           ("roll", "append", "full")),
    Mutant("a segment that was begun is missed after a stop",
           (Patch(topic_file.TopicFile, "forget_base", nothing),), (), ("os",)),
    Mutant("a removal after a merge is not repeated",
           (Patch(maintenance.Maintenance, "_finish_merge", _merge_forgotten),), ("merge",)),
    Mutant("what a merge makes is dropped before the merge is finished",
           (Patch(maintenance.Maintenance, "_limiting", _limited_alone),), ("limit",)),
    Mutant("a merge that may be recorded is begun again, and sources go unseen", (
        _HALFWAY, Patch(topic_recovery.TopicRecovery, "_is_whole", always(True)),
    ), ("merge",)),
    Mutant("a save that failed halfway is taken for not done", (_HALFWAY,),
           ("roll",), ("os",)),
    Mutant("what recovery adopts is not made durable",
           (Patch(topic_recovery, "write_again", nothing),)),
    Mutant("a log file goes on where a failed new use may have begun",
           (Patch(wal_file.WalFile, "recycle", _use_taken_back),), ("burst",), ("wal",)),
    Mutant("a commit makes room in the write-ahead log itself",
           (Patch(wal.WalStorage, "_take", _room_at_once),), ("recycle", "burst"), ("inline",)),
    Mutant("replay looks for names that segments had",
           (Patch(wal_replay, "lasting_name", _as_it_is),), (), ("wal",)),
    Mutant("an exception of one who waits stops the others", (
        Patch(completion, "wake_all", _wake_until_it_fails),
        Patch(flusher, "wake_all", _wake_until_it_fails),
        Patch(segment_files.SegmentWriter, "release", _release_raises),
    ), ("delete",)),
    Mutant("a file that cannot be closed stops a deletion",
           (Patch(segment_files.SegmentWriter, "release", _release_raises),), ("delete",)),
    Mutant("a creation that failed is not undone",
           (Patch(topic_folders.TopicFolders, "undo", nothing),), ("create", "full")),
    Mutant("a commit that failed is told as committed",
           (Patch(consumer_offsets.ConsumerOffsets, "_written", _settled_anyway),), ("commit",)),
    Mutant("readers see a commit before it is durable",
           (Patch(consumer_offsets.ConsumerOffsets, "_change", _memory_first),), ("commit", "any")),
    Mutant("a commit that failed is not taken back",
           (Patch(consumer_offsets.ConsumerOffsets, "_append", _not_taken_back),), ("commit",)),
    Mutant("a rename that reports failure is taken for not done",
           (Patch(segment_files.SegmentWriter, "_is_called", always(False)),),
           ("roll", "append", "close")),
    Mutant("a gap in the numbers of a write-ahead log is refused",
           (Patch(wal_replay, "_read_all", _no_gaps),), (), ("wal",)),
    Mutant("a clean stop gives offsets back",
           (Patch(partition.Partition, "seal", _seal_lowers),), (), ("os",)),
    Mutant("a time seek meets a merge",
           (Patch(partition.Partition, "_search", _seek_once),), ("readers",)),
    Mutant("a limit in bytes is what is kept at least",
           (Patch(enforcement, "expired", _limit_is_least),), ("limit",)),
    Mutant("a wall clock that jumped is believed",
           (Patch(expiry_clock.ExpiryClock, "check", always(True)),
            Patch(expiry_clock.ExpiryClock, "now_ns", lambda _: lambda self: self._clock())),
           ("jump",)),
    Mutant("one topic's files keep the store from starting",
           (Patch(startup.LogOpener, "_open_or_look", _refused),),
           ("start",), ("fsync", "os")),
    Mutant("nothing was stored, it is said, when the cut back failed",
           (Patch(active_segment, "UndecidedError", _decided),), ("append", "full", "roll")),
)  # fmt: skip
