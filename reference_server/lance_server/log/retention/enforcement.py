"""Applying retention: segments that a topic need not keep are dropped, oldest first."""

import logging
from collections.abc import Callable, Generator, Sequence
from typing import Any, Final, TypeAlias

from lance_server.log.dedup import WindowLimits
from lance_server.log.disk_reserve import DiskReserve
from lance_server.log.metadata.topic_file import Retention, TopicFile
from lance_server.log.retention.expiry_clock import ExpiryClock
from lance_server.log.retention.rules import expired, prune_windows, remove_retired
from lance_server.log.segments.segment_files import Segment
from lance_server.log.topic import Topic
from lance_server.runtime.completion import Completion
from lance_server.storage.contract import StorageBackend

_log = logging.getLogger(__name__)
_AHEAD_NS: Final = 60 * 1_000_000_000
"""How far ahead of the clock a batch may be that still ages by its own time."""
Steps: TypeAlias = Generator[Completion[Any], Any, None]
"""Yields what must be waited for; gets its result, or its error thrown."""


class RetentionEnforcer:
    """Drops what topics need not keep. Belongs to the event loop's thread.

    Args:
        storage: the backend.
        expiry: the server's time, as far as it may be believed.
        window: the size of the duplicate windows.
        reserve: given up where retention needs room to free some.
        run: runs a step on the thread of topic files.
    """

    def __init__(
        self,
        storage: StorageBackend,
        expiry: ExpiryClock,
        window: WindowLimits,
        reserve: DiskReserve,
        run: Callable[[Callable[[], None]], Completion[None]],
    ) -> None:
        self._storage = storage
        self._expiry = expiry
        self._window = window
        self._reserve = reserve
        self._run = run

    def plan(self, topic: Topic, retention: Retention | None = None) -> Sequence[Segment]:
        """Return the segments that would be dropped now, oldest first; nothing is changed.

        Args:
            topic: the topic.
            retention: what to go by instead of what the topic has.
        """
        segments = topic.partition.segment_list
        file, now_ns = topic.file, self.believed_ns()
        policy = file.retention if retention is None else retention
        return segments[: expired(segments, policy, now_ns, file.seen)]

    def believed_ns(self) -> int | None:
        """Return the time by which something may be too old, or None."""
        return self._expiry.now_ns() if self._expiry.check() else None

    def steps(self, topic: Topic) -> Steps:
        """Drop what the topic need not keep, and finish what an earlier drop left."""
        partition, file = topic.partition, topic.file
        yield from self._note_future(topic)
        gone = self.plan(topic)
        if not gone and not file.retiring:
            return
        log_start = partition.log_start_after(gone)
        keys = [segment.name.key for segment in gone]
        yield self._run(lambda: self._reserve.with_room(lambda: file.retire(keys, log_start)))
        partition.drop(gone, log_start)
        if gone:
            _log.info(
                "topic %d: retention drops %d segments; it begins at offset %d now",
                file.identity.id,
                len(gone),
                log_start.offset,
            )
        now_ns, present = self.believed_ns(), partition.batches
        yield self._run(lambda: self._remove(file, now_ns, present))

    def _note_future(self, topic: Topic) -> Steps:
        """Record when segments of a time to come were seen first: they age from then on."""
        file, now_ns = topic.file, self.believed_ns()
        if not file.retention.max_age_secs or now_ns is None:
            return
        keys = [
            segment.name.key
            for segment in topic.partition.segment_list
            if segment.live is None
            and segment.last_ns > now_ns + _AHEAD_NS
            and segment.name.key not in file.seen
        ]
        if keys:
            yield self._run(lambda: file.see(keys, now_ns))

    def _remove(self, file: TopicFile, now_ns: int | None, present: int) -> None:
        self._reserve.with_room(lambda: remove_retired(self._storage, file))
        prune_windows(self._storage, file.folder, self._window, now_ns, present)
