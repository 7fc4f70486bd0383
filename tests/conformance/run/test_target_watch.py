"""A target that ends or stops during a run: when is told, and no other case is blamed."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

from lance_conformance.dialect import SPECIFIED
from lance_conformance.engine.conditions import Conditions, Target
from lance_conformance.engine.registry import Case
from lance_conformance.engine.run.schedule import ask_all
from lance_conformance.engine.run.verdict import TARGET_GONE, Exit, Result, Verdict, exit_code
from lance_conformance.server.case_context import CaseContext
from lance_conformance.server.cases import all_cases
from lance_conformance.server.expect import keepalive
from lance_conformance.server.golden.server import sessions
from lance_conformance.server.golden.specified import Specified
from lance_conformance.wire.control import KEEPALIVE

CaseFunction = Callable[[CaseContext], Awaitable[None]]


class Mortal:
    """A golden server that can be ended, stopped and started again."""

    def __init__(self) -> None:
        self.port = 0
        self._stopped = False
        self._open: set[asyncio.Transport] = set()
        self._make = sessions(Specified())

    async def start(self) -> None:
        """Listen, on the same port as before."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self._connection, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    def _connection(self) -> asyncio.Protocol:
        session = self._make()
        made = session.connection_made
        if self._stopped:
            session.data_received = lambda _data: None  # type: ignore[method-assign]

        def connection_made(transport: asyncio.BaseTransport) -> None:
            assert isinstance(transport, asyncio.Transport)
            self._open.add(transport)
            made(transport)

        session.connection_made = connection_made  # type: ignore[method-assign]
        return session

    def end(self) -> None:
        """Close the port and every connection, as a process that ends does."""
        self._server.close()
        for transport in self._open:
            transport.abort()
        self._open.clear()

    def stop(self) -> None:
        """Accept connections and answer nothing more, as a stopped process does."""
        self._stopped = True
        for transport in self._open:
            transport.pause_reading()


def case(name: str, function: CaseFunction) -> Case:
    """A case that asks this."""
    return replace(all_cases()[0], id=f"kal/{name}", function=function)


async def is_answered(ctx: CaseContext) -> None:
    """Asks for one answer."""
    await ctx.side.ask(KEEPALIVE, keepalive())


def run(ask: Callable[[Mortal], list[Case]], *, jobs: int = 1, budget: float = 0.2) -> list[Result]:
    """Ask a server that may end these questions."""

    async def asked() -> list[Result]:
        target = Mortal()
        await target.start()
        try:
            conditions = Conditions(
                Target("127.0.0.1", target.port), SPECIFIED, SPECIFIED, budget=budget
            )
            return await ask_all(ask(target), conditions, jobs=jobs)
        finally:
            target.end()

    return asyncio.run(asked())


def test_the_case_that_ended_the_target_is_named_and_no_other_is_asked() -> None:
    """Its last bytes are told, the cases after it are inconclusive, and the exit code says why."""

    def cases(target: Mortal) -> list[Case]:
        async def ends_it(ctx: CaseContext) -> None:
            await is_answered(ctx)
            target.end()
            await is_answered(ctx)

        return [case("before", is_answered), case("ends-it", ends_it), case("after", is_answered)]

    before, killer, after = results = run(cases)
    assert before.verdict is Verdict.PASS
    assert (killer.verdict, killer.reason) == (Verdict.FAIL, TARGET_GONE)
    assert killer.message.startswith("the target closed its port during kal/ends-it; ")
    assert "4c 41 4e 43" in killer.message
    assert (after.verdict, after.reason) == (Verdict.INCONCLUSIVE, TARGET_GONE)
    assert after.message == "not asked: the target closed its port during kal/ends-it"
    assert exit_code(results) is Exit.TARGET_GONE


def test_a_target_that_stopped_is_noticed_at_the_first_case_that_gets_no_answer() -> None:
    """The cases after it are not asked, so that each does not wait for its whole deadline."""

    def cases(target: Mortal) -> list[Case]:
        async def stops_it(ctx: CaseContext) -> None:
            target.stop()
            await is_answered(ctx)

        return [case("stops-it", stops_it), *(case(f"after-{n}", is_answered) for n in range(50))]

    first, *others = run(cases)
    assert (first.verdict, first.reason) == (Verdict.INCONCLUSIVE, TARGET_GONE)
    assert "the target has answered nothing since kal/stops-it" in first.message
    assert {each.message for each in others} == {
        "not asked: the target has answered nothing since kal/stops-it"
    }


def test_a_case_that_only_stood_beside_the_end_is_asked_again() -> None:
    """Where the target comes back, whoever was under way is asked again alone."""

    def cases(target: Mortal) -> list[Case]:
        waiting, ended = asyncio.Event(), asyncio.Event()

        async def innocent(ctx: CaseContext) -> None:
            if not ended.is_set():
                waiting.set()
                await ended.wait()
            await is_answered(ctx)

        async def ends_it(ctx: CaseContext) -> None:
            if not ended.is_set():
                await waiting.wait()
            target.end()
            await target.start()
            ended.set()
            await is_answered(ctx)

        return [case("innocent", innocent), case("ends-it", ends_it)]

    innocent, killer = run(cases, jobs=2, budget=5.0)
    assert (innocent.verdict, innocent.retried) == (Verdict.PASS, True)
    assert killer.verdict is Verdict.FAIL
