"""Records in: fetches ahead of the application, across any cut (LWP section 5.8, AMB-19).

One Fetch is outstanding at a time, and none is sent while enough data waits for the
application, so memory is bounded by ``prefetch_bytes`` and one answer.
"""

import math
from collections import deque
from collections.abc import Callable

from lance_sdk._core.answer import FETCH_ANSWERS, Answer, read_answer
from lance_sdk._core.answers import AnswersOnly
from lance_sdk._core.backoff import Backoff
from lance_sdk._core.connection import Connection, Request
from lance_sdk._core.events import Event, Notice
from lance_sdk._core.fetch_settings import FetchSettings, Start
from lance_sdk._core.outcome import Outcome
from lance_sdk._core.reassembly import Reassembly, misaligned
from lance_sdk._tree import LanceError
from lance_sdk.errors import (
    CorruptRecord,
    InvalidOffset,
    LogTruncated,
    NotLeader,
    RateLimited,
    RemoteProtocolError,
    ServerError,
    TopicChanged,
)
from lance_sdk.types import RecordBatch
from lance_spec.bodies import TopicInfo
from lance_spec.dialect import Dialect
from lance_spec.enums import Command
from lance_spec.errors import DecodeError
from lance_spec.limits import END_OFFSET
from lance_spec.messages.lwp import Fetch

_END_REFRESH = 1.0
"""Seconds after which the known end is asked for again while data keeps coming."""
_PATIENCE = 3
"""CATCHING_UP answers with an unmoved end after which the log counts as truncated (AMB-31)."""


class Fetcher(AnswersOnly):
    """The application of a consumer's session.

    Args:
        start: where to begin.
        settings: how to fetch.
        progress: called whenever data arrives, to reset the session's backoff.
        retry: delays after errors and CATCHING_UP.
        events: where gates are announced.

    Attributes:
        end: offset behind the last byte of the log, as far as it is known.
        error: why there will be no more records; raised once the buffered ones are taken.
        records: records received so far.
        fetched_bytes: bytes of record data received so far.
        fetches: requests sent so far.
        attention: set when room for another Fetch appeared.
    """

    def __init__(
        self,
        start: Start,
        settings: FetchSettings,
        *,
        progress: Callable[[], object],
        retry: Backoff,
        events: list[Event],
    ) -> None:
        self._settings = settings
        self._progress = progress
        self._retry = retry
        self._events = events
        self._topic_id = settings.topic_id
        self._identity: tuple[int, int, int] | None = None
        self._ready: deque[RecordBatch] = deque()
        self._buffered = 0
        self._gate: Outcome | None = None
        self._fetch: Request | None = None
        self._ask_end: Request | None = None
        self._end_at = -math.inf
        self._resume_at = -math.inf
        self._closing = False
        self.end: int | None = None
        self.error: LanceError | None = None
        self.records = 0
        self.fetched_bytes = 0
        self.fetches = 0
        self.attention = False
        self.seek(start)

    def __repr__(self) -> str:
        return (
            f"<Fetcher {self._pieces!r} end={self.end} buffered={self._buffered} "
            f"error={self.error!r}>"
        )

    # What the face calls

    def seek(self, where: Start) -> None:
        """Go on from somewhere else; what was fetched ahead is dropped."""
        for request in (self._fetch, self._ask_end):
            if request is not None:
                request.abandoned = True
        self._fetch = self._ask_end = None
        self._ready.clear()
        self._buffered = 0
        self._pieces = Reassembly(where if isinstance(where, int) else 0)
        self._from_beginning = where == "beginning"
        self._to_end = where == "end"
        self._stop: int | None = None
        self._grown = 0
        self._stalls = 0
        self._stalled_at: int | None = None
        self._resume_at = -math.inf
        self.error = None
        self.attention = True

    def take(self) -> RecordBatch | None:
        """Take the next batch, if one is there."""
        if not self._ready:
            return None
        batch = self._ready.popleft()
        self._buffered -= len(batch.data)
        self.attention = True
        return batch

    @property
    def buffered(self) -> int:
        """Bytes waiting to be taken."""
        return self._buffered

    @property
    def ended(self) -> bool:
        """Whether everything up to the end was taken (``stop_at_end``)."""
        return self._complete and not self._ready

    @property
    def _complete(self) -> bool:
        stop = self._stop
        return stop is not None and self._pieces.offset >= stop and not self._to_end

    @property
    def offset(self) -> int | None:
        """Offset of the next record that `take` will give, once it is known."""
        if self._to_end:
            return None
        return self._ready[0].offset if self._ready else self._pieces.offset

    def gate(self) -> Outcome:
        """Return an outcome that settles when there is something to take, or to raise."""
        if self._gate is None or self._gate.done:
            self._gate = Outcome()
        return self._gate

    # What the session calls

    @property
    def drained(self) -> bool:
        """A consumer that closes leaves nothing behind."""
        return self._closing

    def ready(self, connection: Connection, topic: TopicInfo | None, now: float) -> None:
        """Use this connection; refuse a topic that is not the one it was (AMB-30)."""
        del connection, now
        if topic is None:
            return
        identity = (topic.id, topic.created_at, topic.topic_epoch)
        if self._identity not in {None, identity}:
            raise TopicChanged(
                f"topic {topic.name!r} was deleted and created again (it is number {topic.id} "
                f"now): old offsets mean nothing in it",
                self._pieces.offset,
            )
        self._identity = identity
        self._topic_id = topic.id

    def fill(self, connection: Connection, now: float) -> None:
        """Ask for the end, for data, or for nothing."""
        if self.error is not None or now < self._resume_at:
            return
        if self._ask_end is None and self._wants_end(now):
            self._ask_end = self._ask(connection, END_OFFSET, 1, self._on_end, now)
        if self._fetch is None and self._wants_data():
            self._ask_data(connection, now)

    def _wants_end(self, now: float) -> bool:
        if self._to_end or (self._settings.stop_at_end and self._stop is None):
            return True
        streaming = self._fetch is None and self._wants_data()
        return streaming and now >= self._end_at + _END_REFRESH

    def _wants_data(self) -> bool:
        if self._to_end or self._complete or self._buffered >= self._settings.prefetch_bytes:
            return False
        return not self._settings.stop_at_end or self._stop is not None

    def _ask_data(self, connection: Connection, now: float) -> None:
        start, size = self._pieces.next_fetch, self._size(connection.dialect)
        room = connection.dialect.max_fetch_data

        def on_data(answer: Answer, at: float) -> None:
            self._on_data(answer, start, size, room, at)

        self._fetch = self._ask(connection, start, size, on_data, now)
        self.fetches += 1

    def _size(self, dialect: Dialect) -> int:
        missing = self._pieces.needed - self._pieces.held
        size = max(self._settings.max_fetch_bytes, self._grown, missing)
        if self._stop is not None:
            size = min(size, max(self._stop - self._pieces.next_fetch, 1))
        return min(size, dialect.max_fetch_data)

    def _ask(
        self,
        connection: Connection,
        offset: int,
        size: int,
        on_answer: Callable[[Answer, float], None],
        now: float,
    ) -> Request:
        def answered(code: int, payload: memoryview, at: float) -> None:
            self._answered(request)
            try:
                answer = read_answer(code, payload, connection.dialect)
            except DecodeError as error:  # asking again would give the same
                self.fail(RemoteProtocolError(f"the answer to FETCH cannot be read: {error}"))
            else:
                on_answer(answer, at)

        def refused(error: ServerError, at: float) -> None:
            self._answered(request)
            self._on_error(error, at)

        payload = Fetch(topic_id=self._topic_id, start_offset=offset, max_bytes=size).encode()
        request = Request(Command.FETCH, payload, FETCH_ANSWERS, answered, refused)
        connection.ask(request, now)
        return request

    def _answered(self, request: Request) -> None:
        if request is self._fetch:
            self._fetch = None
        else:
            self._ask_end = None

    def _on_end(self, answer: Answer, now: float) -> None:
        """Take the answer to a Fetch at the end sentinel (AMB-06)."""
        self.end, self._end_at = answer.next_offset, now
        if self._to_end:
            self._to_end = False
            self._pieces = Reassembly(answer.next_offset)
        if self._settings.stop_at_end and self._stop is None:
            if answer.next_offset < self._pieces.offset:
                self._beyond_end(answer.next_offset, self._pieces.offset, now)
            else:
                self._stop = answer.next_offset
        self._open_gate()

    def _on_data(self, answer: Answer, start: int, size: int, room: int, now: float) -> None:
        if answer.catching_up or (not answer.data and answer.next_offset < start):
            self._beyond_end(answer.next_offset, start, now)
        elif answer.next_offset < start + len(answer.data):
            self.fail(
                RemoteProtocolError(
                    f"the server sent {len(answer.data)} bytes from offset {start} and named "
                    f"{answer.next_offset} as the next offset"
                )
            )
        elif answer.data:
            self._add(answer, start, size, room)
            self._skip_gap(answer.next_offset)
        elif answer.next_offset > start:
            self._skip_gap(answer.next_offset)
        else:
            self._at_end(start, now)
        self._open_gate()

    def _add(self, answer: Answer, start: int, size: int, room: int) -> None:
        fresh = self._pieces.held == 0
        found = self._pieces.add(answer.data)
        needed, fault = self._pieces.needed, self._pieces.fault
        can_grow = fresh and not found and min(needed, room) > size and not self._capped(size)
        if fresh and answer.record_count == 0 and not can_grow:
            self.fail(misaligned(start))
            return
        if found:
            self._hand_over(*found)
        if fault is not None:
            self.fail(fault)
        elif can_grow:  # a record larger than the Fetch: once more, from its start (AMB-19)
            self._grown = needed
            self._pieces.drop_held()
        self.end = max(self.end or 0, self._pieces.next_fetch)
        self._retry.reset()
        self._progress()

    def _capped(self, size: int) -> bool:
        """Whether the stop offset, not the settings, made the Fetch this small."""
        return self._stop is not None and self._pieces.offset + size >= self._stop

    def _hand_over(self, offset: int, count: int, data: bytes) -> None:
        self._ready.append(RecordBatch(self._settings.label, offset, count, data))
        self._buffered += len(data)
        self._from_beginning = False
        self._grown = 0
        self._stalls = 0
        self.records += count
        self.fetched_bytes += len(data)

    def _skip_gap(self, next_offset: int) -> None:
        """Go on behind a range that holds nothing (AMB-29)."""
        if next_offset == self._pieces.next_fetch or self._grown or self.error is not None:
            return
        if self._pieces.held:
            message = f"the log goes on at {next_offset}, in the middle of a record"
            self.fail(CorruptRecord(message, self._pieces.offset))
        else:
            self._pieces = Reassembly(next_offset)

    def _at_end(self, start: int, now: float) -> None:
        self.end, self._end_at, self._stalls = start, now, 0
        self._resume_at = now + self._settings.poll_interval
        if self._stop is None:
            return
        self._stop = min(self._stop, start)
        if self._pieces.held:
            message = f"the log ends inside a record; was the start offset a record's? end={start}"
            self.fail(CorruptRecord(message, self._pieces.offset))

    def _beyond_end(self, end: int, start: int, now: float) -> None:
        """Wait for a log that ends before the position, but not forever (AMB-31)."""
        self._stalls = self._stalls + 1 if end == self._stalled_at else 1
        self.end = self._stalled_at = end
        self._end_at = now
        self._resume_at = now + self._retry.next_delay()
        if self._stalls < _PATIENCE:
            return
        message = f"the log ends at {end}, before the position {start}, and does not grow"
        if self._settings.reset_on_truncation:
            self._events.append(Notice(f"{message}: going on at its end (on_truncation='reset')"))
            self._pieces = Reassembly(end)
            self._stalls = 0
        else:
            self.fail(LogTruncated(f"{message}; seek, or use on_truncation='reset'", start))

    def _on_error(self, error: ServerError, now: float) -> None:
        earliest = error.earliest if isinstance(error, InvalidOffset) else None
        if self._from_beginning and earliest is not None and earliest > self._pieces.offset:
            self._pieces = Reassembly(earliest)  # retention has moved the beginning
            return
        if not error.retryable:
            self.fail(error)
            return
        wait = error.retry_after if isinstance(error, RateLimited) else None
        self._resume_at = now + max(wait or 0.0, self._retry.next_delay())
        self._events.append(Notice(f"the server refused a Fetch and it is sent again: {error}"))
        if isinstance(error, NotLeader):
            raise RemoteProtocolError(str(error)) from error

    def fail(self, error: LanceError) -> None:
        """End the stream: what is buffered can still be taken, then ``error`` is raised."""
        if self.error is None:
            self.error = error
        self._open_gate()

    def _open_gate(self) -> None:
        something = self._ready or self.error is not None or self.ended
        if something and self._gate is not None and self._gate.settle():
            self._events.append(self._gate)

    def lost(self, now: float) -> None:
        """Forget what was asked: it is asked again on the next connection."""
        del now
        self._fetch = self._ask_end = None

    def next_deadline(self) -> float:
        """Return when to ask again after a pause."""
        return self._resume_at if self._resume_at > -math.inf else math.inf

    def handle_timeout(self, now: float) -> None:
        """End a pause."""
        if now >= self._resume_at:
            self._resume_at = -math.inf

    def close(self, now: float) -> None:
        """Ask for nothing more, and let go who waits."""
        del now
        self._closing = True
        self._ready.clear()
        self._buffered = 0
        if self._gate is not None and self._gate.settle():
            self._events.append(self._gate)

    def abort(self, error: LanceError, now: float) -> None:
        """End the stream with this error."""
        del now
        self.fail(error)
