"""Random stimuli: repeatable, and made small where one fails."""

import asyncio
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from lance_conformance.dialect import SPECIFIED
from lance_conformance.engine.conditions import Conditions, Target
from lance_conformance.engine.failures import Blocked, Failure
from lance_conformance.engine.run.schedule import ask
from lance_conformance.engine.run.verdict import Result, Verdict
from lance_conformance.server.cases import all_cases
from lance_conformance.server.cases.chance import TRIES, hunt
from lance_conformance.server.golden.server import Connections, sessions
from lance_conformance.server.mutants import all_mutants

STUB: Any = SimpleNamespace(conditions=SimpleNamespace(seed=42))


def hunted(attempt: Callable[[Sequence[int]], None], steps: Sequence[int]) -> Failure | None:
    """What a hunt comes to."""

    async def once(some: Sequence[int]) -> None:
        attempt(some)

    try:
        asyncio.run(hunt(STUB, steps, once))
    except Failure as failure:
        return failure
    return None


def test_what_is_right_is_asked_once() -> None:
    """Nothing is repeated where nothing is wrong."""
    asked: list[Sequence[int]] = []
    assert hunted(asked.append, [1, 2, 3]) is None
    assert asked == [[1, 2, 3]]


def test_a_failing_stimulus_is_made_as_small_as_it_can_be() -> None:
    """Of thirty steps the two that it takes are left, with the seed to ask again."""

    def attempt(some: Sequence[int]) -> None:
        if 7 in some and 19 in some:
            raise Failure("data", "wrong")

    failure = hunted(attempt, range(30))
    assert failure is not None
    assert (failure.reason, failure.message) == ("data", "with --seed 42, 7, 19: wrong")


def test_another_failure_is_not_taken_for_the_same() -> None:
    """A smaller stimulus that fails for another reason proves something else."""

    def attempt(some: Sequence[int]) -> None:
        raise Failure("data" if len(some) > 3 else "timeout", "wrong")

    failure = hunted(attempt, range(8))
    assert failure is not None
    assert failure.message.count(", ") == 4


def test_lack_of_time_is_not_made_smaller() -> None:
    """Each try would take a whole deadline."""
    asked: list[Sequence[int]] = []

    def attempt(some: Sequence[int]) -> None:
        asked.append(some)
        raise Failure("timeout", "late")

    failure = hunted(attempt, range(8))
    assert failure is not None
    assert failure.timing
    assert len(asked) == 1


def test_it_ends_whatever_happens() -> None:
    """There are only so many tries."""
    asked: list[Sequence[int]] = []

    def attempt(some: Sequence[int]) -> None:
        asked.append(some)
        if len(some) > 200:
            raise Failure("data", "wrong")

    hunted(attempt, range(400))
    assert len(asked) == 1 + TRIES


def test_what_cannot_be_asked_is_blocked() -> None:
    """A control that fails is no failure of the stimulus."""

    def attempt(_some: Sequence[int]) -> None:
        raise Blocked("timeout", "no topic")

    assert isinstance(hunted(attempt, [1, 2]), Blocked)


FOUND = {
    "fetches-a-page-too-far": "fuzz/sequences",
    "trusts-batches-of-five-and-more": "fuzz/chains",
    "wants-whole-microseconds": "fuzz/header-bits",
}


@pytest.mark.parametrize("mutant", FOUND)
def test_the_same_seed_finds_the_same_fault(
    mutant: str, serve: Callable[[Connections], int]
) -> None:
    """Asking again brings the same stimulus, as small as before, whatever else is going on."""

    def found() -> Result:
        port = serve(sessions(all_mutants()[mutant].rules("specified")))
        conditions = Conditions(Target("127.0.0.1", port), SPECIFIED, SPECIFIED, seed=3)
        case = next(case for case in all_cases() if case.id == FOUND[mutant])
        return asyncio.run(ask(case, conditions, 5.0))

    first, second = found(), found()
    assert first.verdict in (Verdict.FAIL, Verdict.WARN)
    assert "--seed 3" in first.message
    assert (first.reason, first.message) == (second.reason, second.message)
