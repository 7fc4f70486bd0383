"""The conversation of one case, whatever is spoken: connections, controls and checks."""

import asyncio
import random
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from lance_conformance.engine.access import EntryMode
from lance_conformance.engine.conditions import Conditions, Target
from lance_conformance.engine.deadline import Deadline
from lance_conformance.engine.failures import Blocked, Failure
from lance_conformance.engine.raw_connection import RawConnection, connect
from lance_conformance.engine.transcript import Transcript

NO_ANSWER = frozenset({"timeout", "not-closed"})
"""Reasons of failures in which something is still awaited on an open connection."""
QUICK = 0.25
"""Part of a case's usual time in which a target that is not slow serves a fresh connection."""
TEARDOWN = 2.0
"""Seconds for removing what a case has created; what is left then stays."""


class BaseContext(ABC):
    """One case's conversation with the target, under one deadline.

    Args:
        conditions: What the run has in common.
        case_id: Goes into names and into the seed.
        budget: Seconds until the deadline.

    Attributes:
        conditions: What the run has in common.
        time: When the case ends; each right answer moves it.
        rng: Dice that fall the same for the same seed and case.
        transcript: Everything that goes over the connections.
    """

    def __init__(self, conditions: Conditions, case_id: str, budget: float) -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        self.conditions = conditions
        self.time = Deadline(began + budget, conditions.budget, conditions.longest_silence)
        self.rng = random.Random(f"{conditions.seed}/{case_id}")  # noqa: S311 - repeatable values
        self.transcript = Transcript(lambda: loop.time() - began)
        self._slug = case_id.replace("/", "-")
        self._beginning = f"{conditions.prefix}-{conditions.run_id}-"
        self._connections: list[RawConnection] = []
        self._names = 0

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._slug} connections={len(self._connections)}>"

    @property
    def deadline(self) -> float:
        """When the case ends, in the time of the event loop's clock."""
        return self.time.at

    # -- beginning and end -------------------------------------------------------------------------

    async def prepare(self) -> None:  # noqa: B027 - most conversations need nothing
        """Get what must stand before the time of the case begins to run; never raises."""

    @abstractmethod
    async def begin(self) -> None:
        """Ask the control probe; no case starts before it is answered.

        Raises:
            Blocked: It is not.
        """

    @abstractmethod
    async def probe(self) -> object:
        """Put the control probe on a fresh connection: a question that no echo can answer.

        Raises:
            Failure: It is not answered as it must be.
        """

    async def looked_again(self, failure: Failure) -> Failure:
        """A failure of an answer that did not come, as certain as it can be made.

        A target that is slow answers late, and answers others late, too. Where a fresh connection
        is served quickly and the answer does not come in the time of one more, it never will.

        Args:
            failure: What the case ended with.
        """
        number, patience = failure.connection, self.conditions.budget
        waiting = next((each for each in self._connections if each.number == number), None)
        if failure.reason not in NO_ANSWER or waiting is None or waiting.closed is not None:
            return failure
        self.time.alarm = None
        self.time.restart(patience * QUICK)
        try:
            await self.probe()
        except Failure:
            return failure
        if await waiting.wait(asyncio.get_running_loop().time() + patience):
            return failure
        words = f"nothing came in another {patience:.1f} s, while a fresh connection was served"
        return failure.settled(words)

    async def tidy_up(self, *, clean: bool) -> None:
        """Remove what this case has created; it has `TEARDOWN` seconds, and more while it gets on.

        Args:
            clean: All that was asked has been answered, so the first connection can go on.
        """
        del clean

    async def end(self, *, clean: bool) -> None:
        """Tidy up and hang up; whatever goes wrong here is not the target's fault.

        Args:
            clean: All that was asked has been answered, so the first connection can go on.
        """
        self.transcript.recording = False
        self.time.restart(TEARDOWN)
        try:
            async with asyncio.timeout_at(self.deadline) as self.time.alarm:
                await self.tidy_up(clean=clean)
        except (OSError, Failure):
            pass  # a teardown never judges
        finally:
            self.time.alarm = None
            self.hang_up()

    def hang_up(self) -> None:
        """End all connections."""
        for connection in self._connections:
            connection.drop()

    # -- connections -------------------------------------------------------------------------------

    async def connected(
        self, port: int | None = None, host: str | None = None, *, way: EntryMode = EntryMode.USUAL
    ) -> RawConnection:
        """A fresh connection.

        Args:
            port: Another port than the target's own, where a protocol has several servers.
            host: The host there.
            way: How it gets in, where the target speaks TLS.

        Raises:
            Failure: The target does not accept it.
        """
        connection = RawConnection(len(self._connections) + 1, self.transcript)
        target, access = self.conditions.target, self.conditions.access
        if host is not None and port is not None:
            self.transcript.elsewhere[connection.number] = (host, port)
            target = Target(host, port)
        try:
            await connect(
                target.address or target.host,
                target.port,
                connection,
                self.deadline,
                context=access.context(way),
                server_name=access.server_name,
            )
        except OSError as problem:
            reason = "timeout" if isinstance(problem, TimeoutError) else "refused"
            raise Failure(reason, f"no connection to {target}: {problem}") from problem
        self._connections.append(connection)
        return connection

    async def still_alive(self) -> None:
        """After a hostile stimulus: a fresh connection must be served as before.

        Raises:
            Failure: It is not.
        """
        try:
            await self.probe()
        except Failure as failure:
            words = "after the stimulus the target no longer serves anybody"
            raise failure.told_as(Failure, words, "target-died") from failure

    @asynccontextmanager
    async def precondition(self, what: str) -> AsyncIterator[None]:
        """Steps that must succeed before the case proves anything.

        Args:
            what: What the steps are, for the report.

        Raises:
            Blocked: They failed.
        """
        try:
            yield
        except Failure as failure:
            raise failure.told_as(Blocked, f"cannot ask, because {what} failed") from failure

    # -- data and judging --------------------------------------------------------------------------

    def name(self, tail: str = "") -> str:
        """A name that no other case and no other run uses."""
        self._names += 1
        return f"{self._beginning}{self._slug}-{self._names}{tail}"

    def values(self, count: int, size: int = 20) -> list[bytes]:
        """Record values that can be told apart, the same for the same seed."""
        return [self.rng.randbytes(size) for _ in range(count)]

    def check(self, holds: object, reason: str, message: str) -> None:
        """Judge one fact.

        Args:
            holds: Whether it is as it must be.
            reason: The reason code if not.
            message: What must be and what is.

        Raises:
            Failure: It does not hold.
        """
        if not holds:
            raise Failure(reason, message, connection=self.transcript.last_connection())
