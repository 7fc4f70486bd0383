"""Fetch state: a consumer's position in its log, and how each response moves it.

It knows no connection: `lance_sdk._protocol.consume.fetcher` sends requests and hands over
responses.
"""

import math
from dataclasses import dataclass, replace

from lance_sdk._errors.base import LanceError
from lance_sdk._protocol.backoff import Backoff
from lance_sdk._protocol.consume.consume_errors import (
    LONGEST_WAIT,
    HostLagsError,
    LogEndVerdict,
    TruncationDetector,
    misaligned,
    opaque,
)
from lance_sdk._protocol.consume.dialect_fallback import DialectFallback
from lance_sdk._protocol.consume.fetch_buffer import FetchBuffer
from lance_sdk._protocol.consume.fetch_response import DecodedFetch
from lance_sdk._protocol.consume.fetch_settings import FetchSettings, Moment, Start
from lance_sdk._protocol.consume.relocation import OVERLAP, Relocation
from lance_sdk._protocol.consume.truncation_check import CheckResult, TruncationCheck
from lance_sdk._protocol.events import Event, Notice
from lance_sdk.errors import (
    CorruptRecord,
    InvalidOffset,
    LogTruncated,
    NotLeader,
    RateLimited,
    RemoteProtocolError,
    ServerError,
)
from lance_spec.dialect import Dialect

_MOST_GAPS = 1000
"""Answers without a record, one after the other, that may each name a later offset (AMB-29)."""
_END_REFRESH = 1.0
"""Seconds after which the known end is asked for again while data keeps coming."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What a Fetch asked for.

    Attributes:
        start: its offset.
        size: most bytes in the answer.
        room: most bytes that any answer of this server may have.
        overlap: bytes before the place reached that the answer must begin with.
    """

    start: int
    size: int
    room: int
    overlap: bytes = b""


class FetchState:
    """The way through a log.

    Args:
        settings: how to fetch.
        retry: delays after errors and CATCHING_UP.
        events: where notices go.

    Attributes:
        fetch_buffer: the records up to the place that was reached.
        to_end: the place is the end, which is not known yet.
        to_time: the place is that of a time, which is not known yet.
        truncation_check: what has to be compared before anything is read.
        relocation: looks for the place, where the server's offsets moved.
        stable: whether the server's offsets name the same byte for ever (AMB-29).
        fallback: the bytes here are not records, and are handed out all the same.
        end: offset after the last byte of the log, as far as it is known.
        at_tail: the last Fetch found nothing new.
        resume_at: when to ask again.
        error: why there will be no more records.
    """

    def __init__(self, settings: FetchSettings, retry: Backoff, events: list[Event]) -> None:
        self._settings = settings
        self._retry = retry
        self._events = events
        self._truncation = TruncationDetector(settings.hosts)
        self._end_at = -math.inf
        self.fetch_buffer = FetchBuffer(settings.label, settings.codec)
        self.end: int | None = None
        self.stable = True
        self._overlaps = True
        self._overlap_size = OVERLAP
        self._seen_end: int | None = None
        """Where a Fetch that read nothing once more found nothing new."""
        self.seek("beginning")

    def __repr__(self) -> str:
        return f"<FetchState {self.fetch_buffer!r} end={self.end} error={self.error!r}>"

    def seek(self, where: Start) -> None:
        """Go on from somewhere else; what was fetched ahead is dropped."""
        self.fetch_buffer.clear()
        self.fetch_buffer.place(where if isinstance(where, int) else 0)
        self._from_beginning = where == "beginning"
        self.to_end = where == "end"
        self.to_time = where if isinstance(where, Moment) else None
        self.truncation_check: TruncationCheck | None = None
        self.relocation: Relocation | None = None
        self.fallback: DialectFallback | None = None
        self._stop: int | None = None
        self._grown = 0
        self._truncation.reset()
        self._empty = 0
        self.at_tail = False
        self.resume_at = -math.inf
        self.error: LanceError | None = None

    def place(self, offset: int) -> None:
        """Take note of where the place is that was looked for."""
        self.to_end, self.to_time = False, None
        self.fetch_buffer.place(offset)

    def lost(self) -> None:
        """Take note that the connection is gone: on the next one, compare first, and at once."""
        found = self.fetch_buffer.fingerprint(self._settings.take_fingerprint)
        if self.truncation_check is None and found is not None:
            self.truncation_check = TruncationCheck(found)
        if self.at_tail:
            self.resume_at = -math.inf

    def fail(self, error: LanceError) -> None:
        """End the stream: what is there can still be taken, then ``error`` is raised."""
        self.fallback = None
        if self.error is None:
            self.error = error

    # What to ask

    @property
    def known(self) -> bool:
        """Whether the place is known."""
        return not self.to_end and self.to_time is None

    @property
    def complete(self) -> bool:
        """Whether everything up to the end is there (``stop_at_end``)."""
        return (
            self._stop is not None and self.known and self.fetch_buffer.pieces.offset >= self._stop
        )

    @property
    def wants_stop(self) -> bool:
        """Whether the end at which to stop is still to be asked for."""
        return self._settings.stop_at_end and self._stop is None

    @property
    def wants_data(self) -> bool:
        """Whether there is room for more, and more to come."""
        full = self.fetch_buffer.buffered >= self._settings.prefetch_bytes
        return not (full or self.to_end or self.complete or self.wants_stop)

    def end_is_old(self, now: float) -> bool:
        """Whether the known end should be asked for again."""
        return now >= self._end_at + _END_REFRESH

    def next_fetch(self, dialect: Dialect) -> Asked:
        """Return what to fetch next."""
        pieces, room = self.fetch_buffer.pieces, dialect.max_fetch_data
        if self.fallback is not None:
            stop = self.fallback.end if self._stop is None else min(self.fallback.end, self._stop)
            left = max(stop - pieces.offset, 1)
            return Asked(pieces.offset, min(self._settings.max_fetch_bytes, left, room), room)
        size = max(self._settings.max_fetch_bytes, self._grown, pieces.needed - pieces.held)
        if self._stop is not None:
            size = min(size, max(self._stop - pieces.next_fetch, 1))
        again = 0 if self.stable or not self._overlaps else self._overlap_size
        overlap = self.fetch_buffer.tail(min(again, pieces.next_fetch))
        start = pieces.next_fetch - len(overlap)
        return Asked(start, min(size + len(overlap), room), room, overlap)

    # What answers mean

    def take_end(self, answer: DecodedFetch, now: float) -> None:
        """Take the answer to a Fetch at the end sentinel (AMB-06)."""
        self.end, self._end_at = answer.next_offset, now
        if self.to_end:
            self.place(answer.next_offset)
        if not self.wants_stop:
            return
        if answer.next_offset < self.fetch_buffer.pieces.offset:
            self._beyond_end(answer.next_offset, self.fetch_buffer.pieces.offset, now)
        else:
            limit = self._settings.stop_at
            self._stop = answer.next_offset if limit is None else min(limit, answer.next_offset)

    def take_data(self, answer: DecodedFetch, asked: Asked | None, now: float) -> None:
        """Take the answer to a Fetch, or data that was pushed when nothing was asked."""
        start = self.fetch_buffer.pieces.next_fetch
        if asked is not None and len(answer.data) > asked.size:
            self.fail(
                RemoteProtocolError(
                    f"the server sent {len(answer.data)} bytes from offset {asked.start} where "
                    f"{asked.size} were asked for at most"
                )
            )
            return
        if asked is not None and asked.overlap:
            fresh = self._after_overlap(answer, asked)
            if fresh is None:
                return
            answer = fresh
        self._overlaps = True
        if answer.catching_up and self._may_have_moved:
            self._relocate(answer.next_offset)
        elif answer.catching_up or (not answer.data and answer.next_offset < start):
            self._beyond_end(answer.next_offset, start, now)
        elif answer.next_offset < start + len(answer.data):
            self.fail(
                RemoteProtocolError(
                    f"the server sent {len(answer.data)} bytes from offset {start} and named "
                    f"{answer.next_offset} as the next offset"
                )
            )
        elif answer.data and self.fallback is not None:
            self._add_opaque(bytes(answer.data), self.fallback)
        elif answer.data:
            self._add(answer, asked)
            self._skip_gap(answer.next_offset)
        elif answer.next_offset > start:
            self._pass_gap(start, answer.next_offset)
        else:
            self._at_end(start, now)

    @property
    def _may_have_moved(self) -> bool:
        """Whether the last records may be looked for elsewhere."""
        return not self.stable and self.fallback is None and bool(self.fetch_buffer.last_records)

    def _after_overlap(self, answer: DecodedFetch, asked: Asked) -> DecodedFetch | None:
        """Return what is new in an answer; None where it is not what was read there before."""
        overlap, found = asked.overlap, answer.data
        if not found and not answer.catching_up and answer.next_offset > asked.start:
            self._overlaps = False  # those bytes are gone, as retention may have it: ask without
            return None
        if found and overlap.startswith(found) and len(found) < len(overlap):
            self._overlap_size = len(found) // 2  # the server's answers are small
            return None
        if found == overlap and self._seen_end != answer.next_offset:
            self._overlaps = False  # the end, or an answer that was cut here: ask without
            return None
        if found[: len(overlap)] == overlap:
            return replace(answer, data=found[len(overlap) :])
        if self._may_have_moved:
            self._relocate(None if found else answer.next_offset)
        else:
            self._cut(f"the bytes before offset {self.fetch_buffer.pieces.next_fetch} changed", 0)
        return None

    def _relocate(self, end: int | None) -> None:
        """Look for the last records where the server has them now."""
        place = self.fetch_buffer.pieces.offset
        self.fetch_buffer.pieces.drop_held()
        self.truncation_check = None
        records = self.fetch_buffer.last_records
        self.relocation = Relocation(records, place if end is None else min(place, end))

    def take_relocation(self, relocation: Relocation, answer: DecodedFetch) -> None:
        """Take the answer to a Fetch of the place that is looked for."""
        relocation.take(answer)
        place = self.fetch_buffer.pieces.offset
        if relocation.found is not None:
            self.relocation = None
            self.fetch_buffer.moved(relocation.found)
            self._stop = None
            text = (
                f"the server's offsets have moved: what ended at {place} ends at "
                f"{relocation.found} now; going on there"
            )
            self._events.append(Notice(text, "moved"))
            self.progressed()
        elif relocation.over:
            self.relocation = None
            where = "" if self.end is None else f", which was known to end at {self.end}"
            message = (
                f"the records before offset {place} are nowhere in the log any more{where}: the "
                f"server's retention has removed them, and perhaps records after them, or the log "
                f"was replaced"
            )
            if self._settings.reset_on_truncation:
                self._from_here_to_end(message)
            else:
                self._cut(message, 0)

    def _from_here_to_end(self, message: str) -> None:
        self.to_end = True
        text = f"{message}: going on at the end of the log (on_truncation='reset')"
        self._events.append(Notice(text, "truncated"))

    def _add(self, answer: DecodedFetch, asked: Asked | None) -> None:
        pieces = self.fetch_buffer.pieces
        fresh = pieces.held == 0
        start = pieces.next_fetch
        found = pieces.add(answer.data)
        can_grow = asked is not None and fresh and not found and self._can_grow(asked)
        if asked is not None and fresh and answer.record_count == 0 and not can_grow:
            self.fail(misaligned(start, self._settings.label))
            return
        if found:
            self.fetch_buffer.add(*found)
            self._from_beginning, self._grown = False, 0
        if pieces.fault is not None:
            self.fail(pieces.fault)
        elif can_grow:  # a record larger than the Fetch: once more, from its start (AMB-19)
            self._grown = pieces.needed
            pieces.drop_held()
        self.end = max(self.end or 0, pieces.next_fetch)
        self.progressed()

    def _add_opaque(self, data: bytes, fallback: DialectFallback) -> None:
        place = self.fetch_buffer.pieces.offset
        found = data[: fallback.end - place]
        self.fetch_buffer.add(place, 1, found, opaque=True)
        self.fetch_buffer.place(place + len(found))
        if self.fetch_buffer.pieces.offset >= fallback.end:
            self.fallback = None
        self._from_beginning = False
        self.progressed()

    def progressed(self) -> None:
        """Take note that the log holds what it should."""
        self._truncation.reset()
        self._retry.reset()
        self._empty = 0
        self.at_tail = False

    def _can_grow(self, asked: Asked) -> bool:
        """Whether a larger Fetch would bring more: the stop may have made this one small."""
        capped = (
            self._stop is not None and self.fetch_buffer.pieces.offset + asked.size >= self._stop
        )
        return min(self.fetch_buffer.pieces.needed, asked.room) > asked.size and not capped

    def _pass_gap(self, start: int, next_offset: int) -> None:
        """Go on after a gap, but not for ever: a log has few of them, one after the other."""
        self._empty += 1
        if self._empty < _MOST_GAPS:
            self._skip_gap(next_offset)
            return
        self.fail(
            RemoteProtocolError(
                f"the server sent {self._empty} answers without a record, the last from offset "
                f"{start} on, and named a later offset each time: it brings no records"
            )
        )

    def _skip_gap(self, next_offset: int) -> None:
        """Go on after a range that holds nothing (AMB-29)."""
        pieces = self.fetch_buffer.pieces
        if next_offset == pieces.next_fetch or self._grown or self.error is not None:
            return
        if pieces.held:
            message = f"the log goes on at {next_offset}, in the middle of a record"
            self.fail(CorruptRecord(message, pieces.offset))
        else:
            self.fetch_buffer.place(next_offset)

    def _at_end(self, start: int, now: float) -> None:
        self.end, self._end_at = start, now
        self._seen_end = start
        self._truncation.reset()
        self.at_tail = True
        self.resume_at = now + self._settings.poll_interval
        if self._stop is None:
            return
        self._stop = min(self._stop, start)
        if self.fetch_buffer.pieces.held:
            message = f"the log ends inside a record; was the start offset a record's? end={start}"
            self.fail(CorruptRecord(message, self.fetch_buffer.pieces.offset))

    def _beyond_end(self, end: int, start: int, now: float) -> None:
        """Wait for a log that ends before the position, here or elsewhere (AMB-31).

        Raises:
            HostLagsError: the session must ask another host.
        """
        self.end, self._end_at = end, now
        self.resume_at = now + min(self._retry.next_delay(), LONGEST_WAIT)
        message = f"the log ends at {end}, before the position {start}, and does not grow"
        verdict = self._truncation.judge(end, now)
        if verdict is LogEndVerdict.ELSEWHERE:
            self._events.append(Notice(f"{message}: asking another host", "lagging"))
            self.resume_at = -math.inf
            raise HostLagsError(f"{message}; another host may know more")
        if verdict is LogEndVerdict.TRUNCATED:
            self._cut(message, end)

    def _cut(self, message: str, end: int) -> None:
        """Give up a place that is not there any more, in the way that was asked for."""
        if not self._settings.reset_on_truncation:
            advice = "seek, or use on_truncation='reset'"
            self.fail(LogTruncated(f"{message}; {advice}", self.fetch_buffer.pieces.offset))
            return
        text = f"{message}: going on at its end (on_truncation='reset')"
        self._events.append(Notice(text, "truncated"))
        self.truncation_check = None
        self.fetch_buffer.place(end)
        self._truncation.reset()

    def take_truncation_check(
        self, check: TruncationCheck, answer: DecodedFetch, now: float
    ) -> None:
        """Take the answer to a Fetch of the records before the place (AMB-30)."""
        start = check.next_fetch
        verdict = check.judge(answer)
        if verdict is CheckResult.OPEN:
            return
        if verdict in {CheckResult.SHORT, CheckResult.OTHER} and self._may_have_moved:
            self._relocate(answer.next_offset if verdict is CheckResult.SHORT else None)
        elif verdict is CheckResult.SHORT:
            self._beyond_end(answer.next_offset, self.fetch_buffer.pieces.offset, now)
        elif verdict is CheckResult.OTHER:
            self.truncation_check = None
            place = self.fetch_buffer.pieces.offset
            message = f"the records before offset {place} are not those that were read there"
            if self._settings.reset_on_truncation:
                self._from_here_to_end(message)
            else:
                self._cut(f"{message} (from offset {start} on): the log was cut and grew again", 0)
        else:
            self.truncation_check = None
            self.progressed()

    def take_error(self, error: ServerError, now: float) -> None:
        """Take an ErrorResponse: ask again, go on elsewhere, or end."""
        place = self.fetch_buffer.pieces.offset
        earliest = error.earliest if isinstance(error, InvalidOffset) else None
        if earliest is not None and self.truncation_check is not None and earliest <= place:
            # What would be compared is gone: the topic's identity decides.
            self.truncation_check = None
        elif self._from_beginning and earliest is not None and earliest > place:
            self.fetch_buffer.place(earliest)  # retention has moved the beginning
        elif isinstance(error, InvalidOffset) and not self.stable and self._overlaps:
            self._overlaps = False  # the bytes before the place may be gone: ask without them
        elif error.details.get("opaque") is True and self._pass_opaque(error, place):
            return
        elif not error.retryable:
            self.fail(error)
        else:
            self._ask_again(error, now)

    def _pass_opaque(self, error: ServerError, place: int) -> bool:
        behind = error.details.get("next_offset")
        if type(behind) is not int or behind <= place:
            return False
        if self._settings.on_opaque == "bytes" and not self.fetch_buffer.pieces.held:
            text = f"bytes {place} to {behind} are not records and are read as they are"
            self._events.append(Notice(f"{text} (on_opaque='bytes')", "opaque"))
            self.fallback = DialectFallback(place, behind)
        elif self._settings.on_opaque == "skip":
            text = f"bytes {place} to {behind} are not records and are skipped (on_opaque='skip')"
            self._events.append(Notice(text, "opaque"))
            self.fetch_buffer.place(behind)
        else:
            self.fail(opaque(place, behind))
        return True

    def _ask_again(self, error: ServerError, now: float) -> None:
        if isinstance(error, NotLeader):  # the session goes on elsewhere, and pauses if it must
            raise RemoteProtocolError(str(error)) from error
        wait = error.retry_after if isinstance(error, RateLimited) else None
        self.resume_at = now + max(wait or 0.0, self._retry.next_delay())
        self._events.append(Notice(f"a refused Fetch is sent again: {error}", "refused"))
