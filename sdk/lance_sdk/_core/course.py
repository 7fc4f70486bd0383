"""Where a consumer is in its log, and what each answer means for that.

A course knows no connection: `lance_sdk._core.fetcher` asks, a course takes the answers.
"""

import math
from dataclasses import dataclass

from lance_sdk._core.answer import Answer
from lance_sdk._core.backoff import Backoff
from lance_sdk._core.detour import Detour
from lance_sdk._core.events import Event, Notice
from lance_sdk._core.fetch_settings import FetchSettings, Moment, Start
from lance_sdk._core.proof import Proof, Verdict
from lance_sdk._core.supply import Supply
from lance_sdk._core.trouble import Patience, misaligned, opaque
from lance_sdk._tree import LanceError
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

_END_REFRESH = 1.0
"""Seconds after which the known end is asked for again while data keeps coming."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What a Fetch asked for.

    Attributes:
        start: its offset.
        size: most bytes in the answer.
        room: most bytes that any answer of this server may have.
    """

    start: int
    size: int
    room: int


class Course:
    """The way through a log.

    Args:
        settings: how to fetch.
        retry: delays after errors and CATCHING_UP.
        events: where notices go.

    Attributes:
        supply: the records up to the place that was reached.
        to_end: the place is the end, which is not known yet.
        to_time: the place is that of a time, which is not known yet.
        proof: what has to be compared before anything is read.
        detour: the bytes here are no records, and are handed out all the same.
        end: offset behind the last byte of the log, as far as it is known.
        at_tail: the last Fetch found nothing new.
        resume_at: when to ask again.
        error: why there will be no more records.
    """

    def __init__(self, settings: FetchSettings, retry: Backoff, events: list[Event]) -> None:
        self._settings = settings
        self._retry = retry
        self._events = events
        self._patience = Patience()
        self._end_at = -math.inf
        self.supply = Supply(settings.label, settings.codec)
        self.end: int | None = None
        self.seek("beginning")

    def __repr__(self) -> str:
        return f"<Course {self.supply!r} end={self.end} error={self.error!r}>"

    def seek(self, where: Start) -> None:
        """Go on from somewhere else; what was fetched ahead is dropped."""
        self.supply.clear()
        self.supply.place(where if isinstance(where, int) else 0)
        self._from_beginning = where == "beginning"
        self.to_end = where == "end"
        self.to_time = where if isinstance(where, Moment) else None
        self.proof: Proof | None = None
        self.detour: Detour | None = None
        self._stop: int | None = None
        self._grown = 0
        self._patience.reset()
        self.at_tail = False
        self.resume_at = -math.inf
        self.error: LanceError | None = None

    def place(self, offset: int) -> None:
        """Take note of where the place is that was looked for."""
        self.to_end, self.to_time = False, None
        self.supply.place(offset)

    def lost(self) -> None:
        """Take note that the connection is gone: on the next one, compare first, and at once."""
        found = self.supply.evidence(self._settings.take_evidence)
        if self.proof is None and found is not None:
            self.proof = Proof(found)
        if self.at_tail:
            self.resume_at = -math.inf

    def fail(self, error: LanceError) -> None:
        """End the stream: what is there can still be taken, then ``error`` is raised."""
        self.detour = None
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
        return self._stop is not None and self.known and self.supply.pieces.offset >= self._stop

    @property
    def wants_stop(self) -> bool:
        """Whether the end at which to stop is still to be asked for."""
        return self._settings.stop_at_end and self._stop is None

    @property
    def wants_data(self) -> bool:
        """Whether there is room for more, and more to come."""
        full = self.supply.buffered >= self._settings.prefetch_bytes
        return not (full or self.to_end or self.complete or self.wants_stop)

    def end_is_old(self, now: float) -> bool:
        """Whether the known end should be asked for again."""
        return now >= self._end_at + _END_REFRESH

    def next_fetch(self, dialect: Dialect) -> Asked:
        """Return what to fetch next."""
        pieces, room = self.supply.pieces, dialect.max_fetch_data
        if self.detour is not None:
            stop = self.detour.end if self._stop is None else min(self.detour.end, self._stop)
            left = max(stop - pieces.offset, 1)
            return Asked(pieces.offset, min(self._settings.max_fetch_bytes, left, room), room)
        size = max(self._settings.max_fetch_bytes, self._grown, pieces.needed - pieces.held)
        if self._stop is not None:
            size = min(size, max(self._stop - pieces.next_fetch, 1))
        return Asked(pieces.next_fetch, min(size, room), room)

    # What answers mean

    def take_end(self, answer: Answer, now: float) -> None:
        """Take the answer to a Fetch at the end sentinel (AMB-06)."""
        self.end, self._end_at = answer.next_offset, now
        if self.to_end:
            self.place(answer.next_offset)
        if not self.wants_stop:
            return
        if answer.next_offset < self.supply.pieces.offset:
            self._beyond_end(answer.next_offset, self.supply.pieces.offset, now)
        else:
            self._stop = answer.next_offset

    def take_data(self, answer: Answer, asked: Asked | None, now: float) -> None:
        """Take the answer to a Fetch, or data that was pushed when nothing was asked."""
        start = self.supply.pieces.next_fetch
        if answer.catching_up or (not answer.data and answer.next_offset < start):
            self._beyond_end(answer.next_offset, start, now)
        elif answer.next_offset < start + len(answer.data):
            self.fail(
                RemoteProtocolError(
                    f"the server sent {len(answer.data)} bytes from offset {start} and named "
                    f"{answer.next_offset} as the next offset"
                )
            )
        elif answer.data and self.detour is not None:
            self._add_opaque(bytes(answer.data), self.detour)
        elif answer.data:
            self._add(answer, asked)
            self._skip_gap(answer.next_offset)
        elif answer.next_offset > start:
            self._skip_gap(answer.next_offset)
        else:
            self._at_end(start, now)

    def _add(self, answer: Answer, asked: Asked | None) -> None:
        pieces = self.supply.pieces
        fresh = pieces.held == 0
        start = pieces.next_fetch
        found = pieces.add(answer.data)
        can_grow = asked is not None and fresh and not found and self._can_grow(asked)
        if asked is not None and fresh and answer.record_count == 0 and not can_grow:
            self.fail(misaligned(start))
            return
        if found:
            self.supply.add(*found)
            self._from_beginning, self._grown = False, 0
        if pieces.fault is not None:
            self.fail(pieces.fault)
        elif can_grow:  # a record larger than the Fetch: once more, from its start (AMB-19)
            self._grown = pieces.needed
            pieces.drop_held()
        self.end = max(self.end or 0, pieces.next_fetch)
        self.progressed()

    def _add_opaque(self, data: bytes, detour: Detour) -> None:
        place = self.supply.pieces.offset
        found = data[: detour.end - place]
        self.supply.add(place, 1, found, opaque=True)
        self.supply.place(place + len(found))
        if self.supply.pieces.offset >= detour.end:
            self.detour = None
        self._from_beginning = False
        self.progressed()

    def progressed(self) -> None:
        """Take note that the log holds what it should."""
        self._patience.reset()
        self._retry.reset()
        self.at_tail = False

    def _can_grow(self, asked: Asked) -> bool:
        """Whether a larger Fetch would bring more: the stop may have made this one small."""
        capped = self._stop is not None and self.supply.pieces.offset + asked.size >= self._stop
        return min(self.supply.pieces.needed, asked.room) > asked.size and not capped

    def _skip_gap(self, next_offset: int) -> None:
        """Go on behind a range that holds nothing (AMB-29)."""
        pieces = self.supply.pieces
        if next_offset == pieces.next_fetch or self._grown or self.error is not None:
            return
        if pieces.held:
            message = f"the log goes on at {next_offset}, in the middle of a record"
            self.fail(CorruptRecord(message, pieces.offset))
        else:
            self.supply.place(next_offset)

    def _at_end(self, start: int, now: float) -> None:
        self.end, self._end_at = start, now
        self._patience.reset()
        self.at_tail = True
        self.resume_at = now + self._settings.poll_interval
        if self._stop is None:
            return
        self._stop = min(self._stop, start)
        if self.supply.pieces.held:
            message = f"the log ends inside a record; was the start offset a record's? end={start}"
            self.fail(CorruptRecord(message, self.supply.pieces.offset))

    def _beyond_end(self, end: int, start: int, now: float) -> None:
        """Wait for a log that ends before the position, but not forever (AMB-31)."""
        self.end, self._end_at = end, now
        self.resume_at = now + self._retry.next_delay()
        if self._patience.lost_at(end):
            self._cut(f"the log ends at {end}, before the position {start}, and does not grow", end)

    def _cut(self, message: str, end: int) -> None:
        """Give up a place that is not there any more, in the way that was asked for."""
        if not self._settings.reset_on_truncation:
            advice = "seek, or use on_truncation='reset'"
            self.fail(LogTruncated(f"{message}; {advice}", self.supply.pieces.offset))
            return
        text = f"{message}: going on at its end (on_truncation='reset')"
        self._events.append(Notice(text, "truncated"))
        self.proof = None
        self.supply.place(end)
        self._patience.reset()

    def take_proof(self, proof: Proof, answer: Answer, now: float) -> None:
        """Take the answer to a Fetch of the records before the place (AMB-30)."""
        start = proof.next_fetch
        verdict = proof.judge(answer)
        if verdict is Verdict.OPEN:
            return
        if verdict is Verdict.SHORT:
            self._beyond_end(answer.next_offset, self.supply.pieces.offset, now)
        elif verdict is Verdict.OTHER:
            self.proof = None
            place = self.supply.pieces.offset
            message = f"the records before offset {place} are not those that were read there"
            if self._settings.reset_on_truncation:
                self.to_end = True
                text = f"{message}: going on at the end of the log (on_truncation='reset')"
                self._events.append(Notice(text, "truncated"))
            else:
                self._cut(f"{message} (from offset {start} on): the log was cut and grew again", 0)
        else:
            self.proof = None
            self.progressed()

    def take_error(self, error: ServerError, now: float) -> None:
        """Take an ErrorResponse: ask again, go on elsewhere, or end."""
        place = self.supply.pieces.offset
        earliest = error.earliest if isinstance(error, InvalidOffset) else None
        if earliest is not None and self.proof is not None and earliest <= place:
            self.proof = None  # what would be compared is gone: the topic's identity decides
        elif self._from_beginning and earliest is not None and earliest > place:
            self.supply.place(earliest)  # retention has moved the beginning
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
        if self._settings.on_opaque == "bytes" and not self.supply.pieces.held:
            text = f"bytes {place} to {behind} are no records and are read as they are"
            self._events.append(Notice(f"{text} (on_opaque='bytes')", "opaque"))
            self.detour = Detour(place, behind)
        elif self._settings.on_opaque == "skip":
            text = f"bytes {place} to {behind} are no records and are skipped (on_opaque='skip')"
            self._events.append(Notice(text, "opaque"))
            self.supply.place(behind)
        else:
            self.fail(opaque(place, behind))
        return True

    def _ask_again(self, error: ServerError, now: float) -> None:
        wait = error.retry_after if isinstance(error, RateLimited) else None
        self.resume_at = now + max(wait or 0.0, self._retry.next_delay())
        self._events.append(Notice(f"a refused Fetch is sent again: {error}", "refused"))
        if isinstance(error, NotLeader):
            raise RemoteProtocolError(str(error)) from error
