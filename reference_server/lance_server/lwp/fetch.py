"""Fetch: the answer of one connection to one request (LWP section 5.8)."""

import time
from collections.abc import Callable, Sequence
from functools import partial
from struct import Struct
from typing import TYPE_CHECKING, Final
from weakref import ref

from lance_server.log.log_manager import Topic
from lance_server.log.reading.reader import Fetched, Range
from lance_server.lwp.flow_control.throttle import ReadGate, rate_limited
from lance_server.lwp.push import Subscriptions
from lance_server.lwp.refusals import Refusal
from lance_server.lwp.requests import read_request
from lance_server.lwp.response_queue import ResponseQueue
from lance_server.lwp.responses import (
    Answer,
    catching_up,
    fetch_form,
    fetch_response,
    room_for_headers,
)
from lance_server.lwp.service import Service
from lance_server.lwp.topic_access import permitted_topic
from lance_server.runtime.completion import Completion
from lance_server.security.access import Right
from lance_server.security.authorizer import Authorizer
from lance_spec.dialect import Dialect
from lance_spec.enums import Command, ErrorCode, Flag
from lance_spec.frames import Frame
from lance_spec.limits import END_OFFSET
from lance_spec.messages import lwp

if TYPE_CHECKING:
    from lance_server.log.reading.fast_fetch import FastFetch, Form

# Plain integers: an enumeration costs more to compare with, and these are compared per frame.
_FETCH: Final = int(Command.FETCH)
_CONTROL: Final = int(Flag.CONTROL)
_WANTED: Final = Struct("<LQL")  # `Fetch`; a test compares
_WANTED_SIZE: Final = _WANTED.size
_unpack: Final = _WANTED.unpack


def _no_fast_fetch() -> None:
    """Stand in for a weak reference whose fast path is gone: return None."""


class FetchHandler:
    """Answers the Fetch requests of one connection.

    Args:
        service: what all connections share.
        authorizer: judges the client.
        subscriptions: what the connection is subscribed to.
        reads: decides when it may read.
    """

    def __init__(
        self,
        service: Service,
        authorizer: Authorizer,
        subscriptions: Subscriptions,
        reads: ReadGate,
    ) -> None:
        self._engine = service.engine
        self._counters = service.counters
        self._is_linear = service.engine.is_linear
        self._security = service.security
        self._authorizer = authorizer
        self._subscriptions = subscriptions
        self._reads = reads
        self._dialect: Dialect | None = None
        self._form: Form | None = None
        self._fast_fetch: Callable[[], FastFetch | None] = _no_fast_fetch
        self._fast_fetch_topic = 0

    def __repr__(self) -> str:
        return f"<FetchHandler {self._reads!r}>"

    def fetch_plainly(
        self, frames: Sequence[Frame], dialect: Dialect, answers: ResponseQueue
    ) -> int:
        """Answer the usual requests: everyone may read, and there is memory for what is there.

        Nothing happens to the first that is another one, or for which the disk would have to be
        waited for, and to those after it: `fetch` has to look at it, or it is not a Fetch.

        Args:
            frames: any frames.
            dialect: of the connection.
            answers: where answers are put as long as there is room.

        Returns:
            How many were answered.
        """
        if not self._security.allows_anonymous or self._subscriptions.by_topic:
            return 0
        if self._is_linear:  # each waits for a barrier first
            return 0
        if dialect is not self._dialect:
            self._dialect, self._form, self._fast_fetch = (
                dialect,
                fetch_form(dialect),
                _no_fast_fetch,
            )
        free, room = self._reads.free_bytes(), room_for_headers(dialect)
        counters, clock = self._counters, time.perf_counter_ns
        answered, begun = 0, clock()
        try:
            for frame in frames:
                if frame.flags != _CONTROL or frame.batch_id != _FETCH or not answers.has_room:
                    break
                answer = self._answer_plainly(frame.payload, dialect, room, free)
                if answer is None:
                    break
                answers.send(answer)
                answered += 1
                ended, size = clock(), len(answer)
                counters.answered += 1
                counters.fetches += 1
                counters.bytes_out += size - room
                counters.read_latency.observe(ended - begun)
                if counters.on_span is not None:
                    topic_id = _unpack(frame.payload)[0]
                    self._note_span(self._engine.find(topic_id), ended - begun, size)
                begun = ended
        except Refusal as refusal:
            answers.add_error(dialect, refusal, None)
            answered += 1
        return answered

    def _answer_plainly(
        self, payload: memoryview, dialect: Dialect, room: int, free: int
    ) -> Answer | None:
        """Answer one request with what is in memory, or return None."""
        if len(payload) != _WANTED_SIZE:
            return None
        topic_id, start, max_bytes = _unpack(payload)
        topic = self._engine.find(topic_id)
        if topic is None:
            return None
        partition = topic.partition
        end = partition.end_offset
        most = min(max_bytes, dialect.max_fetch_data, end - start)
        if not 0 < most <= free:
            return None
        form = self._form
        if (
            form is not None
            and topic_id == self._fast_fetch_topic
            and start >= partition.log_start.offset
        ):
            fast = self._fast_fetch()
            answer = None if fast is None else fast.answer(form, start, most)
            if answer is not None:
                return answer
        fetched = self._engine.fetch_at_once(topic, Range(start, most, not dialect.strict, room))
        if fetched is None:
            return None
        if form is not None:
            fast = partition.fast_fetch_at(start)
            self._fast_fetch, self._fast_fetch_topic = (
                (_no_fast_fetch if fast is None else ref(fast)),
                topic_id,
            )
        return fetch_response(dialect, fetched, end)

    def fetch(
        self, payload: memoryview, dialect: Dialect, now: float
    ) -> Answer | Completion[Answer]:
        """Answer a request at once from memory, or else once the disk was read.

        Args:
            payload: the request.
            dialect: of the connection.
            now: the current time in seconds.

        Raises:
            Refusal: there is nothing that can be read there, or not by this client.
            PostponedError: there is no memory for the answer now.
        """
        self._authorizer.check(Right.READ)
        request = read_request(lwp.Fetch, payload, dialect)
        if self._subscriptions:
            raise Refusal(
                ErrorCode.INVALID_PAYLOAD,
                "This connection is subscribed: unsubscribe, or fetch on another one",
            )
        topic_id, start = request.topic_id, request.start_offset
        text = f"Topic {topic_id} not found"
        topic = permitted_topic(self._engine, self._authorizer, Right.READ, topic_id, text=text)
        end = self._end_offset(topic)
        if end < start < END_OFFSET:
            return catching_up(dialect, end)
        start = min(start, end)
        max_bytes = min(request.max_bytes, dialect.max_fetch_data)
        if (pause := self._reads.wait(now)) > 0:
            self._counters.throttled += 1
            raise rate_limited(pause)
        size = min(max_bytes, end - start)
        wanted = Range(start, size, not dialect.strict, room_for_headers(dialect))
        return self._read(topic, wanted, dialect, size)

    def _end_offset(self, topic: Topic) -> int:
        """Return the offset after the last byte that may be read."""
        return topic.partition.end_offset

    def _read(
        self, topic: Topic, wanted: Range, dialect: Dialect, size: int
    ) -> Answer | Completion[Answer]:
        """Read with ``size`` bytes set aside for the answer."""
        self._reads.begin(size)
        begun = time.perf_counter_ns()
        try:
            fetched = self._engine.fetch(topic, wanted)
        except Refusal:
            self._reads.end(size, 0)
            raise
        self._counters.fetches += 1
        if isinstance(fetched, Completion):
            fetched.wake(partial(self._end_read, topic, size, fetched, begun))
            return fetched.then(partial(self._answer, dialect, topic))
        length = len(fetched.buffer)
        self._reads.end(size, length)
        self._note_read(topic, begun, length)
        return self._answer(dialect, topic, fetched)

    def _end_read(
        self, topic: Topic, reserved: int, fetched: Completion[Fetched], begun: int
    ) -> None:
        size = 0 if fetched.error else len(fetched.result().buffer)
        self._note_read(topic, begun, size)
        self._reads.end(reserved, size)

    def _note_read(self, topic: Topic, begun: int, size: int) -> None:
        took_ns = time.perf_counter_ns() - begun
        self._counters.read_latency.observe(took_ns)
        self._note_span(topic, took_ns, size)

    def _note_span(self, topic: Topic | None, took_ns: int, size: int) -> None:
        if self._counters.on_span is None:
            return
        destination = (
            {} if topic is None else {"messaging.destination.name": topic.file.identity.name}
        )
        self._counters.span("lance.fetch", took_ns, **destination, bytes=size)

    def _answer(self, dialect: Dialect, topic: Topic, fetched: Fetched) -> Answer:
        self._counters.bytes_out += len(fetched.buffer) - room_for_headers(dialect)
        return fetch_response(dialect, fetched, topic.partition.end_offset)
