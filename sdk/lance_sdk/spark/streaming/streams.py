"""A streaming query's place in a log, from one micro-batch to the next; Spark stands outside."""

import logging
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any

from lance_sdk.errors import LanceError, TopicDeleted, TopicNotFound
from lance_sdk.spark.errors import DataLost
from lance_sdk.spark.logs.batches import resolve, warn_of_no_match
from lance_sdk.spark.logs.contract import InputSplit, Log, TopicView
from lance_sdk.spark.options import Options, RecordFormat
from lance_sdk.spark.streaming.checkpoint import (
    LAG,
    STORED_VERSION,
    VERSION,
    TopicCheckpoint,
    decode_checkpoint,
    encode_checkpoint,
    version_of,
)

_log = logging.getLogger(__name__)
_FIRST_WAIT = 0.05
_LONGEST_WAIT = 2.0


class StreamOffsets:
    """Answers Spark's questions about offsets.

    Args:
        log: what is read.
        options: of the query.
        clock: monotonic seconds.
        sleep: waits.
    """

    def __init__(
        self,
        log: Log,
        options: Options,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._log = log
        self._options = options
        self._clock = clock
        self._sleep = sleep
        self._version = STORED_VERSION if options.stored else VERSION
        self._initial: dict[str, Any] | None = None
        self._target: dict[str, int] | None = None
        self._views: list[TopicView] = []
        self._reached: Mapping[str, TopicCheckpoint] = {}
        """Where the last micro-batch ends that was planned."""
        self._asked_at = -options.poll_interval
        self._is_warned = False
        self._batch_at: float | None = None
        """When the last micro-batch was planned; the first one waits for nothing."""

    def __repr__(self) -> str:
        return f"<Progress {self._log!r} target={self._target}>"

    def initial(self) -> dict[str, Any]:
        """Return where a new query begins; always the same, though Spark asks twice."""
        if self._initial is None:
            checkpoints = {}
            for view in self._look():
                start = resolve(self._log, view, self._options.start(view.name))
                start = min(max(start, view.start), view.end)
                checkpoints[view.name] = TopicCheckpoint(view.identity, start, start)
            self._initial = encode_checkpoint(checkpoints, self._version)
        return self._initial

    def stop_at_now(self) -> None:
        """Read what is there now, and nothing that comes later."""
        self._target = {view.name: view.end for view in self._look()}

    def ends(self) -> dict[str, Any]:
        """Return where the topics end, as Spark shows it, and how far the query is behind."""
        checkpoints = {
            v.name: TopicCheckpoint(v.identity, v.end, v.end, rest={LAG: self._lag(v)})
            for v in self._views
        }
        return encode_checkpoint(checkpoints)

    def _lag(self, view: TopicView) -> dict[str, float]:
        """Return the lag in one topic; what cannot be found out now is left out."""
        reached = self._reached.get(view.name)
        is_same = reached is not None and reached.topic.difference(view.identity) is None
        offset = max(reached.offset, view.start) if reached and is_same else view.start
        if offset >= view.end:
            return {"bytes": 0, "records": 0, "seconds": 0.0}
        found: dict[str, float] = {"bytes": view.end - offset}
        try:
            unread = self._log.unread(view, offset)
        except (LanceError, OSError) as error:
            _log.debug("topic %r: its lag in records and seconds: %s", view.name, error)
            return found
        if unread.records is not None:
            found["records"] = unread.records
        if unread.since_ns is not None:
            found["seconds"] = round(max(0, time.time_ns() - unread.since_ns) / 1e9, 3)
        return found

    def advance(self, start: Mapping[str, Any], limit: int) -> dict[str, Any]:
        """Return the end of the next micro-batch; ``start`` itself when there is nothing new.

        Args:
            start: the end of the last one.
            limit: bytes to take at most, over all topics.

        Raises:
            DataLost: what comes next is gone, or is not what followed before.
        """
        end = self._advanced(start, limit)
        self._reached = decode_checkpoint(end)
        return end

    def _advanced(self, start: Mapping[str, Any], limit: int) -> dict[str, Any]:
        before = decode_checkpoint(start)
        views = {view.name: self._bounded(view) for view in self._look(before)}
        self._refuse_missing(before, views)
        after = dict(before)
        waiting = [view for view in views.values() if self._has_news(before, view)]
        left, left_records = limit, self._options.max_offsets_per_trigger
        for number, view in enumerate(waiting):
            share = max(1, left // (len(waiting) - number))
            records = max(1, left_records // (len(waiting) - number))
            checkpoint = before.get(view.name) or TopicCheckpoint(
                view.identity, view.start, view.start
            )
            moved = self._moved(checkpoint, view, (share, records))
            after[view.name] = moved
            left = max(0, left - (moved.offset - moved.start))
            left_records = max(0, left_records - moved.records)
        if len(after) == len(before) and all(
            after[name].offset == checkpoint.offset and after[name].topic == checkpoint.topic
            for name, checkpoint in before.items()
        ):
            return dict(start)
        if self._is_too_few(sum(moved.records for moved in after.values())):
            return dict(start)
        self._batch_at = self._clock()
        rest = {
            name: checkpoint.resting()
            for name, checkpoint in after.items()
            if checkpoint is before.get(name)
        }
        return encode_checkpoint(after | rest, self._version_after(start))

    def _is_too_few(self, records: int) -> bool:
        """Whether more records are waited for (``minOffsetsPerTrigger``)."""
        if self._target is not None or self._batch_at is None:
            return False
        waited = self._clock() - self._batch_at
        is_few = records < self._options.min_offsets_per_trigger
        return is_few and waited < self._options.max_trigger_delay

    def splits(self, end: Mapping[str, Any]) -> list[InputSplit]:
        """Return the splits of a micro-batch; its beginning stands in its end."""
        checkpoints = decode_checkpoint(end)
        splits = [
            split for name in sorted(checkpoints) for split in self._log.splits(checkpoints[name])
        ]
        form: RecordFormat = "stored" if version_of(end) == STORED_VERSION else "payload"
        return [split.shown_as(form) for split in splits]

    def _version_after(self, start: Mapping[str, Any]) -> int:
        """Return the version of what follows: a query keeps its form unless it is told another."""
        return self._version if self._options.record_format is not None else version_of(start)

    def _look(self, known: Collection[str] = ()) -> list[TopicView]:
        """Return the topics; the answer of a moment ago, when Spark asks again at once."""
        now = self._clock()
        if now - self._asked_at < self._options.poll_interval and self._views:
            self._sleep(self._options.poll_interval - (now - self._asked_at))
        self._views = self._log.look(known)
        self._asked_at = self._clock()
        self._warn_of_no_match()
        return self._views

    def _warn_of_no_match(self) -> None:
        if self._options.topics_pattern is not None and not self._views and not self._is_warned:
            warn_of_no_match(self._options)
            self._is_warned = True

    def _bounded(self, view: TopicView) -> TopicView:
        if self._target is None:
            return view
        return replace(view, end=min(view.end, self._target.get(view.name, view.start)))

    def _refuse_missing(
        self, before: Mapping[str, TopicCheckpoint], views: Mapping[str, TopicView]
    ) -> None:
        missing = sorted(set(before) - set(views))
        if missing and self._options.fail_on_data_loss:
            raise DataLost(
                f"the query has read topic {missing[0]!r}, which is gone or not asked for any "
                "more; failOnDataLoss=false goes on without it"
            )

    def _has_news(self, before: Mapping[str, TopicCheckpoint], view: TopicView) -> bool:
        checkpoint = before.get(view.name)
        if checkpoint is None:
            return view.end > view.start
        changed = checkpoint.topic.difference(view.identity) is not None
        if self._target is not None and view.end <= checkpoint.offset and not changed:
            return False  # what Trigger.AvailableNow was to read has been read
        return changed or view.end != checkpoint.offset

    def _moved(
        self, checkpoint: TopicCheckpoint, view: TopicView, room: tuple[int, int]
    ) -> TopicCheckpoint:
        """Advance one topic, or decide what is to become of it."""
        difference = checkpoint.topic.difference(view.identity)
        if difference is not None:
            return self._anew(checkpoint, view, room, f"is another topic now: {difference}")
        if view.end < checkpoint.offset:
            caught_up = self._caught_up(checkpoint, view)
            if caught_up is None:
                return self._cut(checkpoint, view)
            view = caught_up
        if checkpoint.offset < view.start:
            why = f"begins at {view.start} now, after offset {checkpoint.offset}"
            return self._anew(checkpoint, view, room, why)
        return self._taken(checkpoint, view, room)

    def _caught_up(self, checkpoint: TopicCheckpoint, view: TopicView) -> TopicView | None:
        """Wait for a log that ends before the checkpoint: a replica may only be behind (AMB-31)."""
        until = self._clock() + self._options.catch_up_timeout
        wait = _FIRST_WAIT
        while self._clock() < until:
            self._sleep(min(wait, max(0.0, until - self._clock())))
            wait = min(2 * wait, _LONGEST_WAIT)
            for now in self._log.look({view.name}):
                if now.name == view.name and now.end >= checkpoint.offset:
                    return self._bounded(now)
        return None

    def _cut(self, checkpoint: TopicCheckpoint, view: TopicView) -> TopicCheckpoint:
        """Go on at the end of a log that was cut, where that was allowed."""
        text = (
            f"topic {view.name!r} ends at {view.end}, before the query's offset "
            f"{checkpoint.offset}, and did not grow in {self._options.catch_up_timeout:.0f} s"
        )
        if self._options.fail_on_data_loss:
            raise DataLost(f"{text}; failOnDataLoss=false goes on at its end")
        _log.warning("%s: going on at its end", text)
        return TopicCheckpoint(view.identity, view.end, view.end, rest=checkpoint.rest)

    def _anew(
        self, checkpoint: TopicCheckpoint, view: TopicView, room: tuple[int, int], why: str
    ) -> TopicCheckpoint:
        """Begin a topic again at its earliest record, where that was allowed."""
        if self._options.fail_on_data_loss:
            raise DataLost(
                f"topic {view.name!r}: {why}; failOnDataLoss=false begins at its earliest record"
            )
        _log.warning("topic %r: %s: going on at offset %d", view.name, why, view.start)
        fresh = TopicCheckpoint(view.identity, view.start, view.start, rest=checkpoint.rest)
        return self._taken(fresh, view, room, is_fresh=True) if view.end > view.start else fresh

    def _taken(
        self,
        checkpoint: TopicCheckpoint,
        view: TopicView,
        room: tuple[int, int],
        *,
        is_fresh: bool = False,
    ) -> TopicCheckpoint:
        """Go on in the log; take nothing from a topic that was deleted since it was looked at."""
        try:
            return self._log.advance(checkpoint, view, *room)
        except (TopicNotFound, TopicDeleted) as error:
            if self._options.fail_on_data_loss:
                raise DataLost(
                    f"the query reads topic {view.name!r}, which is gone: {error}; "
                    "failOnDataLoss=false goes on without it"
                ) from error
            _log.warning("topic %r is gone: %s: going on without it", view.name, error)
            return checkpoint.resting()
        except DataLost as error:
            if is_fresh:
                raise
            return self._anew(checkpoint, view, room, str(error))
