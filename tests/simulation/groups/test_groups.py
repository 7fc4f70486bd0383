"""The search for sequences of faults that break what groups promise."""

import pytest
from tests.simulation.groups.plan import Happening, Plan, Settings, make_plan
from tests.simulation.groups.planted import planted
from tests.simulation.groups.shrink import describe, shrink
from tests.simulation.groups.world import carry_out


@pytest.mark.parametrize("seed", range(24))
def test_no_sequence_of_faults_breaks_a_promise(seed: int) -> None:
    """Whatever happens to members, coordinator, server, network and store, groups keep their word.

    More seeds: ``python -m tests.simulation.groups --count 1000``.
    """
    plan = make_plan(seed)
    assert carry_out(plan) is None, describe(plan)


def test_same_seed_same_run() -> None:
    """A failing run can be repeated by its seed."""
    plan = make_plan(3)
    with planted("a commit is one record too far"):
        assert carry_out(plan) == carry_out(plan) is not None


def test_failing_plan_is_made_short() -> None:
    """Of a plan that fails only what it takes is left."""
    happenings = tuple(Happening(float(number), "append", {"topic": number}) for number in range(9))
    plan = Plan(0, Settings(), happenings)

    def run(plan: Plan) -> str | None:
        there = {each.arguments["topic"] for each in plan.happenings}
        return "broken" if {2, 7} <= there else None

    short = shrink(plan, run=run)
    assert [each.arguments["topic"] for each in short.happenings] == [2, 7]
