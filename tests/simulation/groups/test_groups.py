"""The search for sequences of faults that break what groups promise."""

from dataclasses import replace

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


FOUND_BY = {
    "L1: a commit refused while outside ends the member": 6,
    "L2: an error of one topic silences the others": 0,
    "L3: an outage ends the topics": 2,
    "L4: the end is looked for by every owner": 9,
    "L5: the earlier topic keeps its claim": 0,
    "L9: a member of the earlier topic is let in": 0,
    "a new owner starts where the group first stood": 0,
    "a commit is one record too far": 0,
    "a commit of an earlier assignment is taken": 23,
    "nobody is taken for dead": 21,
    "heartbeats never tell of changes": 3,
    "L12: a half-open connection keeps its name": 5,
    "nobody is asked to release": 5,
    "a commit is taken from anybody": 2,
    "a host that is named for a topic is not gone to": 8,
    "the topics of a host that is gone are not looked for": 8,
}
"""The seed whose plan finds each planted fault; see `FOUND_WITH` for others."""


def both_get(at: float, count: int) -> tuple[Happening, ...]:
    """Return records for both topics at a time."""
    return tuple(Happening(at, "append", {"topic": each, "count": count}) for each in range(2))


ONE = (Happening(0.0, "member", {"who": 0}),)
TWO = (*ONE, Happening(0.1, "member", {"who": 1}))
FOUND_WITH: dict[str, Plan] = {
    "L8: whoever comes back first is the owner": Plan(
        1,
        Settings(topics=2),
        (
            *TWO,
            *both_get(4.0, 20),
            Happening(4.6, "suspend", {"who": 1, "seconds": 7.0}),
            *both_get(9.5, 30),
            Happening(11.9, "coordinator", {"seconds": 0.4}),
            *both_get(12.5, 20),
        ),
    ),
    "members keep what they lost": Plan(
        1,
        Settings(topics=2, rebalance=1.0),
        (
            *ONE,
            *both_get(4.0, 5),
            Happening(5.0, "stop", {"who": 0, "seconds": 3.2}),
            Happening(5.2, "member", {"who": 1}),
            *both_get(6.0, 5),
        ),
    ),
    "what is released stays with its owner": Plan(
        1,
        Settings(topics=2, rebalance=20.0),
        (
            *ONE,
            *both_get(4.0, 5),
            Happening(39.0, "member", {"who": 1}),
        ),
    ),
    "a commit is confirmed that was not stored": Plan(
        1,
        Settings(topics=2),
        (
            *ONE,
            *both_get(4.0, 40),
            Happening(4.1, "broken_store", {"seconds": 2.0}),
        ),
    ),
    "what a member leaves behind is not divided": Plan(
        1,
        Settings(topics=2),
        (
            *TWO,
            Happening(20.0, "leave", {"who": 1}),
            *both_get(39.0, 5),
        ),
    ),
    "a topic goes over while its commit is being stored": Plan(
        0,
        Settings(topics=2, rebalance=1.0),
        (
            *ONE,
            *both_get(4.0, 40),
            Happening(4.1, "slow_store", {"seconds": 8.0}),
            Happening(4.3, "member", {"who": 1}),
            *both_get(4.5, 40),
        ),
    ),
    "a member that gets a topic anew goes on under its old generation": Plan(
        1,
        Settings(topics=2),
        (
            *TWO,
            *both_get(4.0, 5),
            Happening(4.9, "stop", {"who": 1, "seconds": 1.0}),
            Happening(5.0, "coordinator", {"seconds": 0.3}),
            *both_get(7.5, 20),
        ),
    ),
    "later partitions are known and not asked for": Plan(
        1,
        Settings(topics=2),
        (
            *ONE,
            Happening(5.0, "extend", {"count": 3}),
        ),
    ),
    "L7: a commit that arrives late is stored": Plan(
        0,
        Settings(topics=1),
        (
            *ONE,
            Happening(4.0, "slow_network", {"seconds": 4.0}),
            Happening(4.05, "append", {"topic": 0, "count": 40}),
            Happening(4.6, "cut", {"who": 0, "host": "coordinator"}),
            Happening(5.9, "cut", {"who": 0, "host": "coordinator"}),
        ),
    ),
    "L7: commits get their generation when they are sent": Plan(
        1,
        Settings(topics=1, rebalance=1.0, request_timeout=12.0),
        (
            *ONE,
            Happening(4.0, "append", {"topic": 0, "count": 40}),
            Happening(4.17, "cut", {"who": 0, "host": "coordinator"}),
            Happening(4.17, "stop", {"who": 0, "seconds": 5.5}),
            Happening(4.3, "member", {"who": 1}),
            Happening(8.8, "append", {"topic": 0, "count": 5}),
            Happening(9.3, "leave", {"who": 1}),
            Happening(9.5, "slow_network", {"seconds": 4.0}),
            Happening(11.05, "cut", {"who": 0, "host": "coordinator"}),
        ),
    ),
}
"""Plans that find a fault which few seeds find."""
AFTER = 8.0
"""Seconds in which what happened last has its effect, before faults are ended."""


@pytest.mark.parametrize("name", FOUND_BY)
def test_planted_fault_is_found(name: str) -> None:
    """A mistake in a core breaks a promise in some run."""
    with planted(name):
        assert carry_out(make_plan(FOUND_BY[name])) is not None


@pytest.mark.parametrize("name", FOUND_WITH)
def test_planted_fault_is_found_by_what_it_takes(name: str) -> None:
    """The same happenings break nothing where no fault is planted."""
    plan = FOUND_WITH[name]
    span = plan.happenings[-1].at + AFTER
    plan = replace(plan, settings=replace(plan.settings, span=span))
    with planted(name):
        assert carry_out(plan) is not None
    assert carry_out(plan) is None


def test_assignments_of_one_member_are_told_apart() -> None:
    """A restart while a slow store has a commit: what the member did before does not count after.

    The shortest plan of a violation that the search found: a member lost its topic, got it back
    in the same generation, and its earlier commits counted.
    """
    happenings = (
        Happening(0.1, "member", {"who": 1}),
        Happening(6.96, "slow_store", {"seconds": 8.0}),
        Happening(7.06, "append", {"topic": 2, "count": 38}),
        Happening(8.16, "append", {"topic": 0, "count": 24}),
        Happening(12.46, "coordinator", {"seconds": 0.84}),
    )
    assert carry_out(Plan(23, Settings(topics=3), happenings)) is None


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
