"""Targets that are right and slow: nothing of it may count against them."""

import asyncio
from dataclasses import replace

import pytest

from lance_conformance.dialect import SPECIFIED
from lance_conformance.engine.conditions import Conditions, Target
from lance_conformance.engine.deadline import Deadline
from lance_conformance.engine.run.schedule import ask_all
from lance_conformance.engine.run.verdict import Verdict
from lance_conformance.server.cases import all_cases
from lance_conformance.server.golden.codec import SIZE, parse
from lance_conformance.server.golden.server import Session, serving
from lance_conformance.server.golden.specified import Specified
from lance_conformance.server.preflight import ROUND_TRIPS, preflight

CASES = {case.id: case for case in all_cases()}
BUDGET = 0.4
"""Seconds that a case gets, far less than a slow target takes for the whole of it."""


def _pieces(data: bytes) -> list[bytes]:
    """Whole frames one by one; what is no frame goes as it is."""
    found = []
    while len(data) >= SIZE and data.startswith(b"LANC"):
        end = SIZE + parse(data).length
        found.append(data[:end])
        data = data[end:]
    return [*found, data] if data else found


class OneAtATime:
    """Golden sessions that serve one frame at a time between them, each after a while.

    Args:
        seconds: How long a frame takes.
    """

    def __init__(self, seconds: float) -> None:
        self.rules = Specified()
        self._seconds = seconds
        self._free_at = 0.0
        self.turns = 0

    def turn(self) -> float:
        """When the next frame is served."""
        self.turns += 1
        self._free_at = max(self._free_at, asyncio.get_running_loop().time()) + self._seconds
        return self._free_at

    def __call__(self) -> Session:
        """One connection."""
        slow = self

        class Slow(Session):
            def data_received(self, data: bytes) -> None:
                serve = super().data_received
                for piece in _pieces(data):
                    asyncio.get_running_loop().call_at(slow.turn(), serve, piece)

        return Slow(self.rules)


def verdicts(seconds: float, *names: str, budget: float = BUDGET) -> dict[str, Verdict]:
    """What becomes of cases against a slow target, asked one after the other."""

    async def run() -> dict[str, Verdict]:
        async with serving(OneAtATime(seconds)) as port:
            conditions = Conditions(Target("127.0.0.1", port), SPECIFIED, SPECIFIED, budget=budget)
            results = await ask_all([CASES[name] for name in names], conditions)
        return {result.case.id: result.verdict for result in results}

    return asyncio.run(run())


@pytest.mark.parametrize("name", ["pipe/depth-200", "kal/burst-of-100", "num/in-flight-129"])
def test_many_frames_may_take_many_times_the_budget(name: str) -> None:
    """Each right answer moves the deadline: two hundred frames of 10 ms are no fault."""
    assert verdicts(0.01, name) == {name: Verdict.PASS}


def test_a_target_that_stops_answering_fails_in_time() -> None:
    """Only right answers move the deadline: a frame that takes too long is too late."""

    async def run() -> float:
        loop = asyncio.get_running_loop()
        async with serving(OneAtATime(60.0)) as port:
            conditions = Conditions(Target("127.0.0.1", port), SPECIFIED, SPECIFIED, budget=0.1)
            began = loop.time()
            [result] = await ask_all([CASES["kal/answered"]], conditions, retry=False)
            assert result.verdict is Verdict.BLOCKED
            return loop.time() - began

    assert asyncio.run(run()) < 30


def test_the_preflight_waits_for_each_step() -> None:
    """A target whose steps take longer than its step timeout altogether is probed all the same."""

    async def run() -> Conditions:
        async with serving(OneAtATime(0.05)) as port:
            base = Conditions(Target("127.0.0.1", port), SPECIFIED, SPECIFIED)
            conditions, axes = await preflight(base, step_timeout=0.5)
        assert axes.missing == frozenset()
        assert axes.capabilities == {
            "push", "cluster-status", "offset-for-time", "batch-times", "partitions"
        }  # fmt: skip
        return conditions

    assert asyncio.run(run()).budget >= 20 * 0.05


def _frames_of_a_preflight() -> int:
    async def run() -> int:
        target = OneAtATime(0.0)
        async with serving(target) as port:
            await preflight(Conditions(Target("127.0.0.1", port), SPECIFIED, SPECIFIED))
        return target.turns

    return asyncio.run(run())


def test_the_preflight_stops_measuring_a_slow_target(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once it has measured for long enough, the first round trip is the last."""
    monkeypatch.setattr("lance_conformance.server.preflight.ENOUGH", 1000.0)
    usual = _frames_of_a_preflight()
    monkeypatch.setattr("lance_conformance.server.preflight.ENOUGH", 0.0)
    assert _frames_of_a_preflight() == usual - (ROUND_TRIPS - 1)


def test_a_slow_target_is_asked_one_case_at_a_time() -> None:
    """One that serves a single request at a time would make cases wait for each other."""

    async def run() -> list[Verdict]:
        async with serving(OneAtATime(0.06)) as port:
            base = Conditions(Target("127.0.0.1", port), SPECIFIED, SPECIFIED)
            conditions, _ = await preflight(base)
            assert conditions.one_by_one
            cases = [CASES[name] for name in ("kal/burst-of-100", "kal/answered", "seg/cut-at-44")]
            results = await ask_all(cases, replace(conditions, budget=BUDGET), jobs=4)
        return [result.verdict for result in results]

    assert asyncio.run(run()) == [Verdict.PASS] * 3


def test_a_deadline_moves_only_forwards() -> None:
    """A right answer early on takes nothing away."""

    async def run() -> None:
        now = asyncio.get_running_loop().time()
        deadline = Deadline(now + 100, step=1.0)
        deadline.progress()
        assert deadline.at == now + 100
        late = Deadline(now - 1, step=50.0)
        late.progress()
        assert late.at >= now + 50

    asyncio.run(run())


def test_patience_follows_the_scale() -> None:
    """--timeout-scale stretches what each step of the preflight may take."""

    async def run(scale: float) -> Conditions:
        async with serving(OneAtATime(0.1)) as port:
            base = Conditions(Target("127.0.0.1", port), SPECIFIED, SPECIFIED)
            return (await preflight(replace(base), scale, step_timeout=0.05))[0]

    assert asyncio.run(run(20.0)).dialect == SPECIFIED
