"""The whole server in the simulated world: no plan breaks a promise, planted faults are found."""

import os
import sys
from collections import Counter

import pytest
from tests.simulation.mutants import Mutant, is_found
from tests.simulation.plan import Operation
from tests.simulation.report import describe_server
from tests.simulation.server.plan import Limits, ServerPlan, ServerSettings, make_plan
from tests.simulation.server.planted import SERVER, SERVER_MUTANTS
from tests.simulation.server.run import ServerRun, carry_out

RUNS = int(os.environ.get("LANCE_SERVER_RUNS", "150"))
"""Plans that each Python carries out; the long profile sets many more."""
FIRST = RUNS * (sys.version_info.minor - 11)
"""The first seed; each Python that the tests run on takes others."""
BLOCK = 50
WHOLE = "LANCE_SIM_MUTANTS" in os.environ


@pytest.mark.parametrize("first", range(FIRST, FIRST + RUNS, BLOCK))
def test_who_behaves_is_served(first: int) -> None:
    """Whatever others do: within bounds, rightly, and nothing is left of those who are gone."""
    acknowledged, answers, crashes, floods, fired = 0, 0, 0, 0, Counter[str]()
    for seed in range(first, first + BLOCK):
        result = carry_out(make_plan(seed))
        assert result.violation is None, describe_server(make_plan(seed))
        acknowledged += result.acknowledged
        answers += result.answers
        crashes += result.crashes
        floods += result.floods
        fired += result.fired
    assert acknowledged > 5 * BLOCK, "too little was stored for the search to mean anything"
    assert answers > 20 * BLOCK, "too little was answered"
    assert min(crashes, floods) > BLOCK // 8, "too little happened"
    assert fired, "the disk never refused"


@pytest.mark.parametrize("mutant", SERVER_MUTANTS, ids=lambda mutant: mutant.name)
def test_a_planted_fault_of_the_server_is_found(mutant: Mutant) -> None:
    """A promise is broken that the server without the fault keeps."""
    assert is_found(mutant, SERVER, whole=WHOLE), f"it survives: {mutant.name}"


@pytest.mark.parametrize("seed", range(6))
def test_a_seed_gives_the_same_run_of_a_server_each_time(seed: int) -> None:
    """The same answers, at the same time, and the same bytes on the disk."""

    def trace() -> tuple[object, ...]:
        run = ServerRun(make_plan(seed))
        result = run.carry_out()
        topics = [(each.name, each.taken) for each in run.topics.values()]
        return str(result), run.world.now, topics

    assert trace() == trace()


def plan_of(limits: Limits, *steps: tuple[str, dict[str, object]]) -> ServerPlan:
    """Return a plan of some steps, after a start and a first batch of each peer."""
    begin: list[tuple[str, dict[str, object]]] = [("start", {}), ("wait", {"seconds": 0.5})]
    begin += [("append", {"peer": peer, "count": 5, "size": 300}) for peer in range(3)]
    begin.append(("wait", {"seconds": 0.5}))
    operations = [Operation(name, seed, how) for seed, (name, how) in enumerate([*begin, *steps])]
    return ServerPlan(1, "by hand", ServerSettings(limits=limits), tuple(operations))


def flood(kind: str, count: int, *, shut: bool = False) -> tuple[str, dict[str, object]]:
    """Return a step in which a peer pipelines requests, and does not read."""
    return "flood", {"kind": kind, "count": count, "reads": False, "shut": shut}


SMALL = Limits(memory=24 << 10, room=(1 << 17, 1 << 10))
HELD = Limits(memory=24 << 10, unacked=1 << 20, room=(1 << 17, 1 << 11))
LARGE = Limits(memory=1 << 20, room=(1 << 17, 1 << 10))
ENDED_AND_UNREAD = (
    flood("create", 20, shut=True),
    ("wait", {"seconds": 1.0}),
    ("fate", {"back": 0, "fate": "vanish"}),
)
HELD_BEYOND_MEMORY = (
    ("fetch", {"peer": 1, "share": 0.9, "size": 5000}), flood("waiting", 60), ("settle", {}),
)  # fmt: skip
WAITED_AND_WENT_ON = (
    flood("append", 150, shut=True), ("fetch", {"peer": 2, "share": 0.2, "size": 5000}),
    ("wait", {"seconds": 1.0}), ("fetch", {"peer": 2, "share": 0.3, "size": 5000}),
    ("settle", {}),
)  # fmt: skip
PRODUCERS = tuple(
    step
    for peer in (0, 1, 2, 0)
    for step in (
        ("append", {"peer": peer, "count": 100, "size": 20}), ("wait", {"seconds": 0.3}),
        ("settle", {"soon": True}),
    )
)  # fmt: skip


@pytest.mark.parametrize(
    ("limits", "steps"),
    [
        pytest.param(LARGE, ENDED_AND_UNREAD, id="a peer ends its side and takes nothing"),
        pytest.param(HELD, HELD_BEYOND_MEMORY, id="requests hold all memory"),
        pytest.param(SMALL, WAITED_AND_WENT_ON, id="one that waited for memory needs none"),
        pytest.param(
            Limits(96 << 10, 1 << 20, 64, 0, (1 << 17, 1 << 14)),
            PRODUCERS,
            id="producers that are known well",
        ),
    ],
)
def test_what_stopped_a_server_once(
    limits: Limits, steps: tuple[tuple[str, dict[str, object]], ...]
) -> None:
    """Sequences after which connections were left for ever, or nobody was served."""
    assert carry_out(plan_of(limits, *steps)).violation is None
