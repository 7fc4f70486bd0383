"""The golden client: one connection at a time, and what is done over it."""

import asyncio
import contextlib
import time
from collections.abc import Sequence

from lance_conformance.client.golden.connection import Connection
from lance_conformance.client.golden.deployed import Deployed
from lance_conformance.client.golden.specified import Specified
from lance_conformance.client.golden.values import (
    BACKPRESSURE,
    CONTROL,
    Batch,
    Fetched,
    ProblemError,
    Record,
    Settings,
)
from lance_conformance.server.golden.codec import Wire

GOLDEN: dict[str, type[Specified]] = {"specified": Specified, "deployed": Deployed}
ERROR, FETCH_RESPONSE, CATCHING_UP = 0xFF, 0x11, 0x12
WINDOW = 64
BARRIERS = 2


class Client:
    """A client.

    Args:
        rules: How it reads, writes and decides.
        settings: What connect was told.
    """

    def __init__(self, rules: Specified, settings: Settings) -> None:
        self.rules = rules
        self.settings = settings
        self.batches: list[Batch] = []
        self.clock = asyncio.get_running_loop().time
        self._connection: Connection | None = None
        self._open: list[Connection] = []
        self._place = (settings.host, settings.port)
        self._last_id = 0
        self._attempts = 0
        self._not_before = 0.0
        self._window = WINDOW
        self._on_their_way: set[int] = set()
        self._unattributed: tuple[ProblemError, int] | None = None
        self._beat: asyncio.Task[None] | None = None

    # -- connections -------------------------------------------------------------------------------

    def until(self) -> float:
        """When an operation that begins now ends."""
        return self.clock() + self.rules.operation_timeout(self.settings.timeout)

    async def connection(self, deadline: float) -> Connection:
        """The connection, made if there is none.

        Raises:
            ProblemError: There is none in time.
        """
        if self._connection is not None and self._connection.problem is None:
            return self._connection
        if self._connection is not None and not self.rules.reconnects():
            raise self._connection.problem or ProblemError("closed", "closed")
        self._on_their_way.clear()
        self._unattributed = None
        await self._sleep_until(self._not_before, deadline)
        self._attempts += 1
        self._not_before = self.clock() + self.rules.delay(self._attempts, self.settings.timeout)
        self._connection = await self.dial(deadline)
        return self._connection

    async def dial(self, deadline: float) -> Connection:
        """A fresh connection, authenticated.

        Raises:
            ProblemError: It cannot be made, or the server does not let us in.
        """
        loop = asyncio.get_running_loop()
        ca, connection = self.settings.ca, Connection(self.rules)
        context = None if ca is None else self.rules.tls(ca)
        try:
            async with asyncio.timeout_at(deadline):
                await loop.create_connection(lambda: connection, *self._place, ssl=context)
        except TimeoutError:
            raise ProblemError("timeout", "no connection in time") from None
        except OSError as problem:
            raise ProblemError("closed", f"no connection: {problem}") from problem
        hello = self.rules.hello(self.settings.token)
        if hello is not None:
            connection.write(self.rules.control(0x08, hello))
            self.rules.admitted((await self.answer(connection, 0x09, deadline)).payload)
        self._open = [each for each in self._open if each.problem is None] + [connection]
        if self.settings.keepalive and self._beat is None:
            self._beat = asyncio.get_running_loop().create_task(self._beating())
        return connection

    async def _sleep_until(self, moment: float, deadline: float) -> None:
        if moment > deadline:
            await asyncio.sleep(max(0.0, deadline - self.clock()))
            raise ProblemError("timeout", "no connection in time")
        await asyncio.sleep(max(0.0, moment - self.clock()))

    async def _beating(self) -> None:
        """Keep quiet connections alive."""
        interval = self.settings.keepalive
        while True:
            await asyncio.sleep(interval / 4)
            for connection in self.rules.kept_alive(self._open):
                quiet = self.clock() - connection.last_traffic
                if connection.problem is None and self.rules.keepalive_due(quiet, interval):
                    connection.ping()

    async def close(self) -> None:
        """End everything."""
        if self._beat is not None:
            self._beat.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._beat
        if self._connection is not None:
            self._connection.drop()

    # -- requests ----------------------------------------------------------------------------------

    async def ask(self, command: int, payload: bytes, wanted: int) -> Wire:
        """Put one request and return its answer; on a lost connection, put it again.

        Raises:
            ProblemError: The server refused, or there is no answer.
        """
        deadline = self.until()
        lost: ProblemError | None = None
        while True:
            try:
                connection = await self.connection(deadline)
                connection.write(self.rules.control(command, payload))
                return await self.answer(connection, wanted, deadline)
            except ProblemError as problem:
                lost = problem if problem.kind == "timeout" else lost or problem
                again = problem.kind == "closed" and self.rules.reconnects()
                if self.clock() >= deadline:
                    raise ProblemError("timeout", f"no answer in time: {lost}") from None
                if not again:
                    raise lost from None

    async def answer(self, connection: Connection, wanted: int, deadline: float) -> Wire:
        """The answer to what was asked over a connection.

        Raises:
            ProblemError: The server refused, or there is no answer.
        """
        while True:
            while connection.frames:
                frame = connection.frames.popleft()
                if self.rules.kind(frame.flags) == CONTROL:
                    return self._judged(connection, frame, wanted)
                self._aside(frame)
            if connection.problem is not None:
                raise connection.problem
            if self.clock() >= deadline:
                late = ProblemError("timeout", "no answer in time")
                if self.rules.gives_up_late():
                    connection.problem = late
                    connection.drop()
                raise late
            await connection.wait(deadline)

    def _judged(self, connection: Connection, frame: Wire, wanted: int) -> Wire:
        self._attempts = 0
        if frame.batch_id == ERROR:
            raise self.told(frame.payload)
        fits = self.rules.answers(wanted, frame.batch_id)
        if not fits and not (wanted == FETCH_RESPONSE and frame.batch_id == CATCHING_UP):
            connection.problem = ProblemError(
                "protocol", f"an answer of command {frame.batch_id:#x}, not {wanted:#x}"
            )
            connection.drop()
            raise connection.problem
        return frame

    def told(self, payload: bytes) -> ProblemError:
        """What an ErrorResponse says."""
        code, text, details = self.rules.error(payload)
        kind = self.rules.kind_of(code)
        shown = self.rules.shown(f"{code:#x}: {text}", self.settings.token)
        return ProblemError(kind, shown, details)

    def _aside(self, frame: Wire) -> None:
        """Acks and Backpressure may come at any time."""
        kind = self.rules.kind(frame.flags)
        if kind == BACKPRESSURE:
            self._window = self.rules.pace(self._window)
        for batch in self.rules.acknowledged(self._waiting(), frame):
            batch.acked = True
            self._attempts = 0
            self._window = WINDOW

    # -- batches -----------------------------------------------------------------------------------

    def _waiting(self) -> list[Batch]:
        return [batch for batch in self.batches if not batch.settled]

    def put(self, topic: int, records: Sequence[Record]) -> Batch:
        """Take a batch; it leaves as soon as it can.

        Raises:
            ProblemError: A record may not be sent.
        """
        if not all(self.rules.may_send(record) for record in records):
            raise ProblemError("fatal", "a record of a type that may not be sent")
        if not self.rules.fits(records):
            raise ProblemError("fatal", "a batch that is larger than a payload may be")
        self._last_id = self.rules.next_batch_id(self._last_id)
        data = self.rules.ingest(self._last_id, time.time_ns(), topic, records)
        batch = Batch(len(self.batches) + 1, self._last_id, data, self.until())
        self.batches.append(batch)
        return batch

    async def push(self) -> None:
        """Send what may leave, if there is a connection or one can be had at once."""
        with contextlib.suppress(ProblemError):
            connection = await self.connection(self.until())
            self._fill(connection)
            self._drain(connection)

    def _fill(self, connection: Connection) -> None:
        """Send every batch that is not on its way, in order."""
        for batch in self.rules.to_send(self.batches):
            if len(self._on_their_way) >= self._window or self._unattributed:
                return
            if batch.ticket not in self._on_their_way and batch.not_before <= self.clock():
                self._on_their_way.add(batch.ticket)
                connection.write(self.rules.again(batch))

    def _drain(self, connection: Connection) -> None:
        while connection.frames:
            frame = connection.frames.popleft()
            if self.rules.kind(frame.flags) == CONTROL and frame.batch_id == ERROR:
                self._refuse(connection, self.told(frame.payload))
            else:
                self._aside(frame)
        for batch in self.batches:
            if batch.settled:
                self._on_their_way.discard(batch.ticket)
        self._attribute(connection)

    def _refuse(self, connection: Connection, problem: ProblemError) -> None:
        sent = [batch for batch in self._waiting() if batch.ticket in self._on_their_way]
        about = self.rules.refused(sent, problem)
        for batch in about:
            self._fail(batch, problem)
        if not about and sent and self._unattributed is None:
            self._unattributed = (problem, connection.sent + BARRIERS)
            for _ in range(BARRIERS):
                connection.ping()

    def _attribute(self, connection: Connection) -> None:
        """After the barriers, a batch without an acknowledgement is one that was refused."""
        if self._unattributed is not None and connection.received >= self._unattributed[1]:
            problem, self._unattributed = self._unattributed[0], None
            for batch in self._waiting():
                if batch.ticket in self._on_their_way:
                    self._fail(batch, problem)

    def _fail(self, batch: Batch, problem: ProblemError) -> None:
        self._on_their_way.discard(batch.ticket)
        if self.rules.worth_another_try(problem):
            batch.refused = problem
            batch.not_before = self.clock() + self.rules.retry_delay(self.settings.timeout)
            self._follow(problem)
        else:
            batch.problem = problem

    def _follow(self, problem: ProblemError) -> None:
        leader = self.rules.leader(problem) if problem.kind == "redirect" else None
        if leader is not None and self._connection is not None:
            self._place = leader
            self._connection.problem = ProblemError("closed", "the leader is elsewhere")
            self._connection.drop()

    async def settle(self) -> None:
        """Wait until every batch is acknowledged or has failed."""
        deadline = self.until()
        lost: ProblemError | None = None
        while self._waiting():
            if self.clock() >= deadline:
                break
            if (
                self._connection is not None
                and self._connection.problem
                and self._connection.frames
            ):
                self._drain(self._connection)  # it ended after them
                continue
            try:
                connection = await self.connection(deadline)
            except ProblemError as problem:
                lost = problem if problem.kind == "timeout" else lost or problem
                if problem.kind != "closed" or not self.rules.reconnects():
                    break
                continue
            self._drain(connection)
            self._fill(connection)  # what was answered made room
            if self._waiting() and connection.problem is None and not connection.frames:
                await connection.wait(min(deadline, self._next_try()))
            lost = connection.problem or lost
        late = ProblemError("timeout", f"not acknowledged in time: {lost}")
        if self.clock() >= deadline:
            lost = late
        for batch in self._waiting():
            batch.problem = batch.refused or lost or late

    def _next_try(self) -> float:
        delays = [batch.not_before for batch in self._waiting() if batch.refused]
        return min(delays, default=float("inf"))

    # -- reading -----------------------------------------------------------------------------------

    async def fetch(self, topic: int, offset: int, max_bytes: int) -> Fetched:
        """Fetch once; a record that is larger than what was asked for is asked for again.

        Raises:
            ProblemError: The server refused, or did not tell what it must.
        """
        while True:
            payload = self.rules.fetch(topic, offset, max_bytes)
            frame = await self.ask(0x10, payload, FETCH_RESPONSE)
            if frame.batch_id == CATCHING_UP:
                return self.rules.catching_up(frame.payload, offset)
            found = self.rules.fetched(frame.payload, offset)
            if not found.more or max_bytes > 16 * 1024 * 1024:
                return found
            size = int.from_bytes(frame.payload[17:21], "little")
            max_bytes = max(2 * max_bytes, size + 5)
