"""Targets that go on with right answers for ever: every case ends all the same."""

import asyncio

import pytest

from lance_conformance.dialect import SPECIFIED
from lance_conformance.engine import deadline
from lance_conformance.engine.conditions import Conditions, Target
from lance_conformance.engine.deadline import LONGEST, Deadline
from lance_conformance.engine.failures import Failure
from lance_conformance.engine.run.schedule import ask_all
from lance_conformance.engine.run.verdict import Result, Verdict
from lance_conformance.engine.suite import StartServer, Suite
from lance_conformance.engine.suites import suite_named
from lance_conformance.server.case_context import ALIVE, CaseContext
from lance_conformance.server.golden.server import serving, sessions
from lance_conformance.server.golden.specified import Specified
from lance_conformance.wire.control import LIST_TOPICS

LIMIT = 30.0
"""Seconds in which a case of the self-test's budget must have ended, however busy the machine."""


def asked(suite: Suite, server: StartServer, name: str) -> Result:
    """Ask one case of a server that is made for it, within the limit."""

    async def run() -> Result:
        preset = next(iter(suite.presets.values()))
        async with asyncio.timeout(LIMIT), server() as port:
            base = Conditions(Target("127.0.0.1", port), preset, preset)
            found, _ = await suite.preflight(base)
            [result] = await ask_all([suite.by_id[name]], found, retry=False)
        return result

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("protocol", "mutant", "case", "reason"),
    [
        ("lwp", "brings-the-first-record-without-end", "log/acked-is-there", "data"),
        ("lwp", "brings-the-first-record-without-end", "log/nothing-twice", "data-size"),
        ("lwp", "brings-the-first-record-without-end", "num/records-257", "data"),
        ("lwp", "brings-the-first-record-without-end", "vol/512-kib", "data"),
        ("fluvio", "sends-the-first-batch-without-end", "fl-stream/from-the-middle", "timeout"),
    ],
)
def test_a_log_without_an_end_fails_for_what_it_is(
    protocol: str, mutant: str, case: str, reason: str
) -> None:
    """A loop over answers ends when more has come than there can be."""
    suite = suite_named(protocol)
    server = suite.proof().mutant(mutant, next(iter(suite.presets)), "")
    result = asked(suite, server, case)
    assert (result.verdict, result.reason) == (Verdict.FAIL, reason)


async def _for_ever(ctx: CaseContext) -> None:
    while True:
        await ctx.side.ask(LIST_TOPICS, ALIVE)


def ended(step: float) -> Failure:
    """How a loop without an end of its own is ended, with this time for each answer."""

    async def run() -> Failure:
        async with asyncio.timeout(LIMIT), serving(sessions(Specified())) as port:
            where = Target("127.0.0.1", port)
            ctx = CaseContext(Conditions(where, SPECIFIED, SPECIFIED, budget=step), "x/y", step)
            await ctx.begin()
            try:
                await _for_ever(ctx)
            except Failure as failure:
                return failure
            finally:
                await ctx.end(clean=False)
        raise AssertionError("a loop without an end has ended")

    return asyncio.run(run())


def test_a_case_takes_only_so_many_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Right answers as fast as they can come end a case by their number."""
    monkeypatch.setattr(deadline, "MOST_ANSWERS", 50)
    failure = ended(10.0)
    assert (failure.reason, failure.timing) == ("endless", False)
    assert failure.message == "50 right answers came, and the target still goes on"


def test_a_case_takes_only_so_many_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers of whatever kind end a case by their size."""
    monkeypatch.setattr(deadline, "MOST_BYTES", 2000)
    assert ended(10.0).reason == "endless"


def test_a_deadline_moves_only_so_far() -> None:
    """However slowly right answers come, the deadline stops at a fixed time."""

    async def run() -> None:
        began = asyncio.get_running_loop().time()
        slow = Deadline(began, step=1000.0)
        slow.last = began + 5
        slow.progress()
        assert slow.at == began + 5
        assert Deadline(began + 2, step=0.5).last == began + 2 + 0.5 * LONGEST

    asyncio.run(run())


def test_one_silence_lasts_only_so_long() -> None:
    """Where one answer is waited for less than the whole case, its deadline stays."""

    async def run() -> None:
        now = asyncio.get_running_loop().time()
        patient, other = Deadline(now + 100), Deadline(now + 100, longest=2.0)
        assert patient.due() == now + 100
        assert now + 2 <= other.due() < now + 3
        assert other.at == now + 100
        assert Deadline(now - 1, longest=2.0).due() == now - 1

    asyncio.run(run())


def test_what_follows_a_case_has_its_own_time() -> None:
    """Tidying up begins with the full number of answers and of seconds."""

    async def run() -> None:
        now = asyncio.get_running_loop().time()
        limits = Deadline(now - 10, step=1.0)
        limits.progress()
        limits.restart(2.0)
        assert now + 2 <= limits.at <= limits.last
        assert limits.answers == 0

    asyncio.run(run())
