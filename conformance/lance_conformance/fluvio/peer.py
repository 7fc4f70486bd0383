"""One connection to the target: requests out, responses in."""

from collections import deque
from dataclasses import dataclass
from typing import Any, Generic, NoReturn, TypeVar

from lance_conformance.engine.deadline import Deadline
from lance_conformance.engine.event_reader import FLOOD, EventReader
from lance_conformance.engine.expectations import ANOTHER_KIND, Allowed, Violation, closed
from lance_conformance.engine.failures import Blocked, Failure
from lance_conformance.engine.raw_connection import RawConnection
from lance_conformance.fluvio.wire.calls import CLIENT_ID, Call, api_versions
from lance_conformance.fluvio.wire.primitives import Reader, UnreadableError

A = TypeVar("A")

MOST = 64 * 1024 * 1024
"""Bytes of the largest response that is waited for."""
CITE = "FLV-01"


@dataclass(frozen=True, slots=True)
class Response:
    """A response before it is read."""

    correlation: int
    body: bytes

    def __str__(self) -> str:
        return f"a response with id {self.correlation} and {len(self.body)} bytes"


@dataclass(frozen=True, slots=True)
class Ticket(Generic[A]):
    """A request that was sent, and entitles to a response."""

    correlation: int
    call: Call[A]

    def __str__(self) -> str:
        return f"the answer to {self.call} with id {self.correlation}"


class Frames:
    """Takes a stream of responses apart."""

    def __init__(self) -> None:
        self._unread = b""

    def __repr__(self) -> str:
        return f"<Frames {self.pending} bytes of the next>"

    @property
    def pending(self) -> int:
        """Bytes of a response that is not complete yet."""
        return len(self._unread)

    def feed(self, data: bytes) -> None:
        """Take more bytes."""
        self._unread += data

    def next(self) -> Response | Violation | None:
        """The next response, or what is not a response."""
        if len(self._unread) < 4:
            return None
        length = int.from_bytes(self._unread[:4], "big", signed=True)
        if not 4 <= length <= MOST:
            return Violation("field:length", f"a response that claims {length} bytes")
        if len(self._unread) < 4 + length:
            return None
        message, self._unread = self._unread[4 : 4 + length], self._unread[4 + length :]
        return Response(int.from_bytes(message[:4], "big", signed=True), message[4:])


class Peer(EventReader[Response]):
    """The target, as one connection shows it.

    Args:
        connection: The open connection.
        deadline: When the case ends; each right answer moves it.
    """

    def __init__(self, connection: RawConnection, deadline: Deadline) -> None:
        super().__init__(connection, Frames(), deadline)
        self._kept: deque[Response] = deque()
        self._last = 0

    def __repr__(self) -> str:
        return f"<Peer {self.number} {self._connection!r} last id {self._last}>"

    # -- out ---------------------------------------------------------------------------------------

    def ticket(self, call: Call[A], correlation: int | None = None) -> Ticket[A]:
        """Give a request the next correlation id, or this one."""
        if correlation is None:
            self._last += 1
            correlation = self._last
        return Ticket(correlation, call)

    def send(self, *calls: Call[Any]) -> list[Ticket[Any]]:
        """Send requests in one write."""
        tickets = [self.ticket(call) for call in calls]
        self._connection.write(
            b"".join(ticket.call.frame(ticket.correlation) for ticket in tickets)
        )
        return tickets

    def post(
        self, call: Call[A], correlation: int | None = None, client: str = CLIENT_ID
    ) -> Ticket[A]:
        """Send one request.

        Args:
            call: The request.
            correlation: Its id, if not the next one.
            client: Its client id, that of published clients unless it is the question.
        """
        ticket = self.ticket(call, correlation)
        self._connection.write(call.frame(ticket.correlation, client))
        return ticket

    def send_faulty(self, data: bytes, field: str) -> None:
        """Send bytes that are wrong on purpose, in one field."""
        self._connection.write(data, field)

    def send_bytes(self, data: bytes) -> None:
        """Send a piece of a request, for cases about segmentation."""
        self._connection.write(data)

    # -- in ----------------------------------------------------------------------------------------

    async def response(self, wanted: object) -> Response:
        """The next response, whichever request it answers.

        Args:
            wanted: What is expected, for the report.

        Raises:
            Failure: The connection ended, nothing came, or it is not a response.
        """
        found: Response = await self.expect(Allowed(str(wanted), CITE, _is_response))
        return found

    async def raw_answer(self, ticket: Ticket[A]) -> Response:
        """The response to a request; those to others are kept for who asks for them.

        Raises:
            Failure: It does not come, or one comes to a request that was never sent.
        """
        for response in self._kept:
            if response.correlation == ticket.correlation:
                self._kept.remove(response)
                return response
        while (response := await self.response(ticket)).correlation != ticket.correlation:
            if not 0 < response.correlation <= self._last:
                self._fail("field:correlation_id", str(response), ticket)
            if len(self._kept) == FLOOD:
                self._fail("flood", f"{FLOOD} responses that nobody asked for", ticket)
            self._kept.append(response)
        return response

    async def answer(self, ticket: Ticket[A]) -> A:
        """Like `raw_answer`, and read it.

        Raises:
            Failure: It does not come, or no published client could read it.
        """
        return self.read(ticket, await self.raw_answer(ticket))

    def read(self, ticket: Ticket[A], response: Response) -> A:
        """Read a response.

        Raises:
            Failure: No published client could.
        """
        reader = Reader(response.body)
        try:
            found = ticket.call.read(reader)
            reader.end()
        except UnreadableError as problem:
            self._fail(problem.reason, f"{response} that cannot be read: {problem}", ticket)
        return found

    async def ask(self, call: Call[A]) -> A:
        """Send one request and return its answer."""
        return await self.answer(self.post(call))

    async def answer_or_closed(self, ticket: Ticket[A]) -> A | None:
        """The answer to a request, or nothing where the connection was ended instead.

        Raises:
            Failure: Neither happens.
        """
        try:
            return await self.answer(ticket)
        except Failure as failure:
            if failure.reason == "closed-early":
                return None
            raise

    async def expect_closed(self) -> None:
        """The connection ends, and nothing comes before.

        Raises:
            Failure: A response comes, or nothing happens.
        """
        await self.expect(closed(CITE))

    async def expect_anything(self) -> None:
        """A response to whatever request, or the end of the connection.

        Raises:
            Failure: Nothing happens, or what comes is not a response.
        """
        either = Allowed("any response", CITE, _is_response), closed(CITE)
        await self.expect(*either)

    async def early(self, ticket: Ticket[A]) -> A | None:
        """The response to a request, if it comes before two other requests are answered."""
        for _ in range(2):
            await self.ask(api_versions())
        if any(response.correlation == ticket.correlation for response in self._kept):
            return await self.answer(ticket)
        return None

    async def expect_quiet(self, what: str) -> None:
        """Prove that nothing comes: two requests in a row are answered and nothing else.

        Args:
            what: What must not come, for the report.

        Raises:
            Failure: Something else came.
            Blocked: The requests were not answered, so silence cannot be told from slowness.
        """
        for _ in range(2):
            ticket = self.post(api_versions())
            try:
                response = self._kept.popleft() if self._kept else await self.response(ticket)
            except Failure as failure:
                raise Blocked(
                    failure.reason,
                    "the ApiVersions barrier was not answered, so silence proves nothing",
                    connection=self.number,
                ) from failure
            if response.correlation != ticket.correlation:
                self._fail("unexpected-frame", str(response), f"no {what}")

    def _fail(self, reason: str, received: str, wanted: object) -> NoReturn:
        raise self.failure(reason, received, (Allowed(str(wanted), CITE, lambda _: None),))


def _is_response(event: object) -> str | None:
    return None if isinstance(event, Response) else ANOTHER_KIND
