"""The requests of a consumer: at most one for data and one for the end at a time."""

from collections.abc import Callable
from typing import TypeAlias

from lance_sdk._protocol.connection import Connection, Request
from lance_sdk._protocol.consume.fetch_response import FETCH_ANSWERS, DecodedFetch, read_answer
from lance_sdk.errors import RemoteProtocolError, ServerError
from lance_spec.dialect import Dialect
from lance_spec.enums import Command
from lance_spec.errors import DecodeError
from lance_spec.limits import END_OFFSET
from lance_spec.messages.lwp import Fetch, OffsetForTime, OffsetForTimeResponse

OnAnswer: TypeAlias = Callable[[DecodedFetch, float], None]
OnError: TypeAlias = Callable[[ServerError, float], None]


class FetchRequests:
    """Puts requests on the wire and hands their answers on.

    Args:
        on_error: takes an ErrorResponse and the time.
        on_garbage: takes the error for an answer that cannot be read: asking again would give
            the same.

    Attributes:
        topic_id: the topic that is asked about.
        data: the request for data, or for what comes before data, that is under way.
        end: the request for the end that is under way.
    """

    def __init__(
        self, topic_id: int, on_error: OnError, on_garbage: Callable[[RemoteProtocolError], None]
    ) -> None:
        self._on_error = on_error
        self._on_garbage = on_garbage
        self.topic_id = topic_id
        self.data: Request | None = None
        self.end: Request | None = None

    def __repr__(self) -> str:
        return f"<FetchRequests data={self.data is not None} end={self.end is not None}>"

    def forget(self) -> None:
        """Let the answers that are under way fall into tombstones."""
        for request in (self.data, self.end):
            if request is not None:
                request.abandoned = True
        self.data = self.end = None

    def fetch(
        self, connection: Connection, offset: int, size: int, on_answer: OnAnswer, now: float
    ) -> None:
        """Ask for data (LWP section 5.8)."""
        self.data = self._fetch(connection, offset, size, on_answer, now)

    def fetch_end(self, connection: Connection, on_answer: OnAnswer, now: float) -> None:
        """Ask where the log ends (AMB-06)."""
        self.end = self._fetch(connection, END_OFFSET, 1, on_answer, now)

    def _fetch(
        self, connection: Connection, offset: int, size: int, on_answer: OnAnswer, now: float
    ) -> Request:
        def answered(code: int, payload: memoryview, at: float) -> None:
            self._answered(request)
            if (answer := self.read(code, payload, connection.dialect)) is not None:
                on_answer(answer, at)

        def refused(error: ServerError, at: float) -> None:
            self._answered(request)
            self._on_error(error, at)

        payload = Fetch(topic_id=self.topic_id, start_offset=offset, max_bytes=size).encode()
        request = Request(Command.FETCH, payload, FETCH_ANSWERS, answered, refused)
        connection.ask(request, now)
        return request

    def offset_for_time(
        self,
        connection: Connection,
        time_ns: int,
        on_offset: Callable[[int, float], None],
        on_error: OnError,
        now: float,
    ) -> None:
        """Ask where the records of a time begin (AMB-37)."""

        def answered(_code: int, payload: memoryview, at: float) -> None:
            self.data = None
            on_offset(OffsetForTimeResponse.decode(payload).offset, at)

        def refused(error: ServerError, at: float) -> None:
            self.data = None
            on_error(error, at)

        payload = OffsetForTime(self.topic_id, time_ns).encode()
        expects = frozenset({Command.OFFSET_FOR_TIME_RESPONSE})
        self.data = Request(Command.OFFSET_FOR_TIME, payload, expects, answered, refused)
        connection.ask(self.data, now)

    def read(self, code: int, payload: memoryview, dialect: Dialect) -> DecodedFetch | None:
        """Read an answer to Fetch, or a push; None when it cannot be read."""
        try:
            return read_answer(code, payload, dialect)
        except DecodeError as error:
            wrong = f"the answer to FETCH cannot be read: {error}"
            self._on_garbage(RemoteProtocolError(wrong))
            return None

    def _answered(self, request: Request) -> None:
        if request is self.data:
            self.data = None
        else:
            self.end = None
