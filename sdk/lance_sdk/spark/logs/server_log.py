"""Topics at a server."""

import time
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from itertools import pairwise
from time import monotonic
from typing import Any, Final

from lance_sdk import Client
from lance_sdk.errors import MisalignedOffset, TopicDeleted, TopicNotFound, Unsupported
from lance_sdk.offsets.contract import FINGERPRINT_BYTES, Fingerprint, TopicIdentity
from lance_sdk.spark.files.storage import ReadMemory
from lance_sdk.spark.logs.boundaries import Boundaries, stored_since
from lance_sdk.spark.logs.contract import EVERYTHING, InputSplit, TopicView, Unread
from lance_sdk.spark.logs.input_partitions import wanted_bytes
from lance_sdk.spark.logs.losses import planned_range
from lance_sdk.spark.logs.server_calls import (
    FIRST_WAIT,
    LONGEST_WAIT,
    batches_of,
    open_consumer,
    patiently,
)
from lance_sdk.spark.logs.server_split import ServerSplit
from lance_sdk.spark.logs.walk import Walk, replaced
from lance_sdk.spark.options import Options
from lance_sdk.spark.streaming.checkpoint import Cut, TopicCheckpoint
from lance_spec.bodies import TopicInfo

_SMALLEST_SPLIT: Final = 1 << 20
"""Bytes below which a split costs more in starting a task than in reading."""
_LEAST_LEAP: Final = 4 << 20
"""Bytes of a micro-batch up to which reading it is as quick as asking for boundaries."""


def _is_wanted(info: TopicInfo, options: Options) -> bool:
    """Whether a pattern asks for a topic, or for the one that it is a partition of (AMB-59)."""
    whole = None if info.partition is None else info.partition.topic
    return options.wants(info.name) or (whole is not None and options.wants(whole))


def _topics_named(client: Client, name: str) -> list[TopicInfo]:
    """Return a topic, or the partitions of a partitioned one (AMB-59).

    Raises:
        TopicNotFound: there is none.
    """
    try:
        return [client.get_topic(name)]
    except TopicNotFound:
        with suppress(TopicNotFound):
            return [client.get_topic(each.id) for each in client.get_partitioned_topic(name).topics]
        raise


class ServerLog:
    """Topics at a server.

    Args:
        options: of the query.
        sleep: waits for a server that is away.
    """

    def __init__(self, options: Options, sleep: Callable[[float], None] = time.sleep) -> None:
        self._options = options
        self._sleep = sleep

    def __repr__(self) -> str:
        return f"<ServerLog {self._options.servers}>"

    def look(self, known: Collection[str] = ()) -> list[TopicView]:
        """Return the topics of the query; one that was named must be there.

        Args:
            known: topics that need not be there any more.

        Raises:
            TopicNotFound: it is not.
        """
        return patiently(lambda: self._look(known), self._options, self._sleep)

    def _look(self, known: Collection[str]) -> list[TopicView]:
        options = self._options
        with Client(options.url(), **options.client_options()) as client:
            if options.topics_pattern is None:
                names = list(options.topics)
            else:
                names = [info.name for info in client.list_topics() if _is_wanted(info, options)]
            found = []
            for name in names:
                try:
                    found += _topics_named(client, name)
                except (TopicNotFound, TopicDeleted):  # which it is for a while, if it was there
                    if name not in known and options.topics_pattern is None:
                        raise
        return [self._view(info) for info in found]

    def at(self, view: TopicView, moment: datetime) -> int:
        """Return the offset of the first record that arrived at a time or later."""
        return self._reached(view.name, moment)

    def plan(self, view: TopicView, start: int, end: int) -> list[InputSplit]:
        """Cut a range: into one split, or as many as are asked for.

        Where the server knows no times, that costs reading the range once.
        """
        if start >= end:
            return []
        if self._options.min_partitions == 1:
            stop = end if end == view.end else None
            found = ServerSplit(
                self._options, view.name, start, end, identity=view.identity, stop=stop
            )
            return [found]
        try:
            return patiently(lambda: self._cut_unread(view, start, end), self._options, self._sleep)
        except Unsupported:
            return self._cut_read(view, start, end)

    def _cut_unread(self, view: TopicView, start: int, end: int) -> list[InputSplit]:
        """Cut a range at boundaries that the server finds; each split has a fingerprint."""
        size = max(_SMALLEST_SPLIT, wanted_bytes(end - start, self._options))
        with Client(self._options.url(), **self._options.client_options()) as client:
            boundaries = Boundaries.at(client, view)
            edges = [start, *boundaries.cut(start, end, size), end]
            return [
                self._fingerprinted(client, view, boundaries, (first, last))
                for first, last in pairwise(edges)
            ]

    def _fingerprinted(
        self, client: Client, view: TopicView, boundaries: Boundaries, ends: tuple[int, int]
    ) -> ServerSplit:
        """Return a split; where a record is known to end with it, it has a fingerprint."""
        start, end = ends
        known = end == view.end or boundaries.has(end)
        return ServerSplit(
            self._options,
            view.name,
            start,
            end,
            identity=view.identity,
            fingerprint=self._fingerprint(client, view, boundaries, ends) if known else None,
            stop=end if known else None,
        )

    def _fingerprint(
        self, client: Client, view: TopicView, boundaries: Boundaries, ends: tuple[int, int]
    ) -> Fingerprint | None:
        """Return the fingerprint of the last records of a range; None where there is none."""
        start, end = ends
        first = max(start, boundaries.before(end - FINGERPRINT_BYTES, FINGERPRINT_BYTES))
        return Fingerprint.of(self._bytes(client, view, first, end), end)

    def _bytes(self, client: Client, view: TopicView, start: int, end: int) -> bytes:
        """Return the records that lie back to back before the end of a range."""
        split = ServerSplit(self._options, view.name, start, end, identity=view.identity, stop=end)
        found, begin = bytearray(), start
        for piece in split.pieces(client, ReadMemory()):
            if piece.offset != begin + len(found):  # nothing lies between (AMB-29)
                found, begin = bytearray(), piece.offset
            found += piece.data
        return bytes(found) if begin + len(found) == end else b""

    def _cut_read(self, view: TopicView, start: int, end: int) -> list[InputSplit]:
        checkpoint = TopicCheckpoint(view.identity, start, start)
        walked = self.advance(checkpoint, replace(view, end=end), end - start)
        return self._cut(walked, walked.start, walked.offset)

    def advance(
        self, checkpoint: TopicCheckpoint, view: TopicView, limit: int, records: int = EVERYTHING
    ) -> TopicCheckpoint:
        """Read on from a checkpoint, so that the next one stands on a record's boundary."""

        def work() -> TopicCheckpoint:
            return self._advance(checkpoint, view, limit, records)

        return patiently(work, self._options, self._sleep)

    def _advance(
        self, checkpoint: TopicCheckpoint, view: TopicView, limit: int, records: int
    ) -> TopicCheckpoint:
        """Go on without reading the records, where that is worth it and the server can help."""
        span = min(limit, view.end - checkpoint.offset)
        counted = records < EVERYTHING or self._options.min_offsets_per_trigger
        if span > _LEAST_LEAP and not counted:
            with suppress(Unsupported):
                if (found := self._leap(checkpoint, view, span)) is not None:
                    return found
        return self._walk(checkpoint, view, limit, records)

    def _leap(
        self, checkpoint: TopicCheckpoint, view: TopicView, span: int
    ) -> TopicCheckpoint | None:
        """Go on to a boundary that the server finds; None where there is none near enough."""
        begin = checkpoint.offset
        size = max(_SMALLEST_SPLIT, wanted_bytes(span, self._options))
        with Client(self._options.url(), **self._options.client_options()) as client:
            self._compare(client, checkpoint, view)
            boundaries = Boundaries.at(client, view)
            end = begin + span
            if end != view.end:
                end = boundaries.before(end, _SMALLEST_SPLIT)
            if end <= begin:
                return None
            edges = [*boundaries.cut(begin, end, size), end]
            fingerprint = self._fingerprint(client, view, boundaries, (begin, end))
        return checkpoint.moved(end, fingerprint, tuple(Cut(edge) for edge in edges), 0)

    def _compare(self, client: Client, checkpoint: TopicCheckpoint, view: TopicView) -> None:
        """Compare the records before a checkpoint, where they are still there (AMB-30).

        Raises:
            DataLost: they are others.
        """
        known = checkpoint.fingerprint
        if known is None or known.start < view.start:
            return
        try:
            found = self._bytes(client, view, known.start, known.end)
        except MisalignedOffset:
            found = b""
        if not known.matches(found):
            raise replaced(checkpoint, known)

    def _walk(
        self, checkpoint: TopicCheckpoint, view: TopicView, limit: int, records: int
    ) -> TopicCheckpoint:
        """Go on by reading the records."""
        size = wanted_bytes(min(limit, max(0, view.end - checkpoint.offset)), self._options)
        walk = Walk(checkpoint, limit, max(_SMALLEST_SPLIT, size), records)
        begin = walk.begin(view.start)
        with open_consumer(self._options, view.name, begin) as consumer:
            for batch in batches_of(consumer, self._options):
                if not walk.take(batch, view.end):
                    break
        return walk.checkpoint()

    def splits(self, checkpoint: TopicCheckpoint) -> list[InputSplit]:
        """Return the splits of a micro-batch, held against what the server has now.

        A batch that was planned from files has no cuts: it is one split here.

        Raises:
            DataLost: the topic is gone, is another one, or lacks a part of the batch, and
                ``failOnDataLoss`` holds; else what is left is returned.
        """
        if checkpoint.offset <= checkpoint.start:
            return []
        fail = self._options.fail_on_data_loss
        start, end = planned_range(checkpoint, self._caught_up(checkpoint), fail=fail)
        return self._cut(checkpoint, start, end) if start < end else []

    def _caught_up(self, checkpoint: TopicCheckpoint) -> TopicView | None:
        """Return the topic of a micro-batch; wait for one that does not reach its end yet.

        A replica may be behind, and so may the server whose files the batch was planned from.
        """
        name, wait = checkpoint.topic.label, FIRST_WAIT
        until = monotonic() + self._options.catch_up_timeout
        while True:
            now = next((view for view in self.look({name}) if view.name == name), None)
            left = until - monotonic()
            if now is None or now.end >= checkpoint.offset or left <= 0:
                return now
            if checkpoint.topic.difference(now.identity) is not None:
                return now
            self._sleep(min(wait, left))
            wait = min(2 * wait, LONGEST_WAIT)

    def _cut(self, checkpoint: TopicCheckpoint, start: int, end: int) -> list[InputSplit]:
        """Return the splits of a checkpoint as far as they lie in a range."""
        found: list[InputSplit] = []
        begin = checkpoint.start
        for cut in checkpoint.cuts or (Cut(checkpoint.offset),):
            first, behind = max(begin, start), min(cut.end, end)
            if first < behind:
                whole = (first, behind) == (begin, cut.end)
                split = ServerSplit(
                    self._options,
                    checkpoint.topic.label,
                    first,
                    behind,
                    cut.crc if whole else None,
                    checkpoint.topic,
                    checkpoint.fingerprint if behind == checkpoint.offset else None,
                    behind,
                )
                found.append(split)
            begin = cut.end
        return found

    def unread(self, view: TopicView, offset: int) -> Unread:
        """Return what there is from an offset on: records by their mean size, the time by looks."""
        records = view.records
        if records is not None and offset > view.start:
            records = round(records * (view.end - offset) / (view.end - view.start))
        since = None
        with (
            suppress(Unsupported),  # a published server knows no times
            Client(self._options.url(), **self._options.client_options()) as client,
        ):
            since = stored_since(client, view, offset)
        return Unread(records, since)

    def _view(self, info: TopicInfo) -> TopicView:
        end = info.end_offset
        if end is None:  # a published server does not say (AMB-06)
            end = self._reached(info.name, "end")
        return TopicView(TopicIdentity.of(info), info.start_offset or 0, end, info.record_count)

    def _reached(self, topic: str, where: Any) -> int:
        """Return at which offset a consumer finds the first record after a place."""
        with open_consumer(self._options, topic, where) as consumer:
            for batch in batches_of(consumer, self._options):
                return batch.offset
            position = consumer.position
        if position is None:
            raise TopicNotFound(f"the server does not say where topic {topic!r} ends")
        return position
