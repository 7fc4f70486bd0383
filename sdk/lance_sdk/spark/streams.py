"""A streaming query's place in a log, from one micro-batch to the next; Spark stands outside."""

import logging
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any

from lance_sdk.spark.batches import resolve
from lance_sdk.spark.contract import Log, Piece, TopicView
from lance_sdk.spark.errors import DataLost
from lance_sdk.spark.marks import (
    STORED_VERSION,
    VERSION,
    Mark,
    decode_marks,
    encode_marks,
    version_of,
)
from lance_sdk.spark.options import Options, RecordFormat

_log = logging.getLogger(__name__)
_FIRST_WAIT = 0.05
_LONGEST_WAIT = 2.0


class Progress:
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
        self._asked_at = -options.poll_interval

    def __repr__(self) -> str:
        return f"<Progress {self._log!r} target={self._target}>"

    def initial(self) -> dict[str, Any]:
        """Return where a new query begins; always the same, though Spark asks twice."""
        if self._initial is None:
            marks = {}
            for view in self._look():
                start = resolve(self._log, view, self._options.start(view.name))
                start = min(max(start, view.start), view.end)
                marks[view.name] = Mark(view.identity, start, start)
            self._initial = encode_marks(marks, self._version)
        return self._initial

    def stop_at_now(self) -> None:
        """Read what is there now, and nothing that comes later."""
        self._target = {view.name: view.end for view in self._look()}

    def ends(self) -> dict[str, Any]:
        """Return where the topics end, as Spark shows it."""
        marks = {v.name: Mark(v.identity, v.end, v.end) for v in self._views}
        return encode_marks(marks)

    def advance(self, start: Mapping[str, Any], limit: int) -> dict[str, Any]:
        """Return the end of the next micro-batch; ``start`` itself when there is nothing new.

        Args:
            start: the end of the last one.
            limit: bytes to take at most, over all topics.

        Raises:
            DataLost: what comes next is gone, or is not what followed before.
        """
        before = decode_marks(start)
        views = {view.name: self._bounded(view) for view in self._look(before)}
        self._refuse_missing(before, views)
        after = dict(before)
        waiting = [view for view in views.values() if self._has_news(before, view)]
        left = limit
        for number, view in enumerate(waiting):
            share = max(1, left // (len(waiting) - number))
            mark = before.get(view.name) or Mark(view.identity, view.start, view.start)
            moved = self._moved(mark, view, share)
            after[view.name] = moved
            left = max(0, left - (moved.offset - moved.start))
        if len(after) == len(before) and all(
            after[name].offset == mark.offset and after[name].topic == mark.topic
            for name, mark in before.items()
        ):
            return dict(start)
        rest = {name: mark.resting() for name, mark in after.items() if mark is before.get(name)}
        return encode_marks(after | rest, self._version_after(start))

    def pieces(self, end: Mapping[str, Any]) -> list[Piece]:
        """Return the pieces of a micro-batch; its beginning stands in its end."""
        marks = decode_marks(end)
        pieces = [piece for name in sorted(marks) for piece in self._log.pieces(marks[name])]
        form: RecordFormat = "stored" if version_of(end) == STORED_VERSION else "payload"
        return [piece.shown_as(form) for piece in pieces]

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
        return self._views

    def _bounded(self, view: TopicView) -> TopicView:
        if self._target is None:
            return view
        return replace(view, end=min(view.end, self._target.get(view.name, view.start)))

    def _refuse_missing(self, before: Mapping[str, Mark], views: Mapping[str, TopicView]) -> None:
        missing = sorted(set(before) - set(views))
        if missing and self._options.fail_on_data_loss:
            raise DataLost(
                f"the query has read topic {missing[0]!r}, which is gone or not asked for any "
                "more; failOnDataLoss=false goes on without it"
            )

    def _has_news(self, before: Mapping[str, Mark], view: TopicView) -> bool:
        mark = before.get(view.name)
        if mark is None:
            return view.end > view.start
        changed = mark.topic.difference(view.identity) is not None
        if self._target is not None and view.end <= mark.offset and not changed:
            return False  # what Trigger.AvailableNow was to read has been read
        return changed or view.end != mark.offset

    def _moved(self, mark: Mark, view: TopicView, limit: int) -> Mark:
        """Advance one topic, or decide what is to become of it."""
        difference = mark.topic.difference(view.identity)
        if difference is not None:
            return self._anew(mark, view, limit, f"is another topic now: {difference}")
        if view.end < mark.offset:
            caught_up = self._caught_up(mark, view)
            if caught_up is None:
                return self._cut(mark, view)
            view = caught_up
        if mark.offset < view.start:
            why = f"begins at {view.start} now, behind offset {mark.offset}"
            return self._anew(mark, view, limit, why)
        try:
            return self._log.advance(mark, view, limit)
        except DataLost as error:
            return self._anew(mark, view, limit, str(error))

    def _caught_up(self, mark: Mark, view: TopicView) -> TopicView | None:
        """Wait for a log that ends before the mark: a replica may only be behind (AMB-31)."""
        until = self._clock() + self._options.catch_up_timeout
        wait = _FIRST_WAIT
        while self._clock() < until:
            self._sleep(min(wait, max(0.0, until - self._clock())))
            wait = min(2 * wait, _LONGEST_WAIT)
            for now in self._log.look({view.name}):
                if now.name == view.name and now.end >= mark.offset:
                    return self._bounded(now)
        return None

    def _cut(self, mark: Mark, view: TopicView) -> Mark:
        """Go on at the end of a log that was cut, where that was allowed."""
        text = (
            f"topic {view.name!r} ends at {view.end}, before the query's offset {mark.offset}, and "
            f"did not grow in {self._options.catch_up_timeout:.0f} s"
        )
        if self._options.fail_on_data_loss:
            raise DataLost(f"{text}; failOnDataLoss=false goes on at its end")
        _log.warning("%s: going on at its end", text)
        return Mark(view.identity, view.end, view.end, rest=mark.rest)

    def _anew(self, mark: Mark, view: TopicView, limit: int, why: str) -> Mark:
        """Begin a topic again at its earliest record, where that was allowed."""
        if self._options.fail_on_data_loss:
            raise DataLost(
                f"topic {view.name!r}: {why}; failOnDataLoss=false begins at its earliest record"
            )
        _log.warning("topic %r: %s: going on at offset %d", view.name, why, view.start)
        fresh = Mark(view.identity, view.start, view.start, rest=mark.rest)
        return self._log.advance(fresh, view, limit) if view.end > view.start else fresh
