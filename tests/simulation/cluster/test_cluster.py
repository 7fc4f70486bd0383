"""Random schedules of nodes, clients, crashes and a log that lags: nothing is lost or differs."""

import os

import pytest
from tests.simulation.cluster.planted import PLANTED, Plant
from tests.simulation.cluster.world import World

SCHEDULES = int(os.environ.get("LANCE_CLUSTER_SCHEDULES", "60"))
"""How many schedules the search looks at; the long run has more."""
STEPS = 300
ENOUGH = 400
"""Schedules within which every planted fault has to be found."""


@pytest.mark.parametrize("part", range(4))
def test_every_schedule_keeps_the_promises(part: int) -> None:
    """Whatever the seed decides."""
    for seed in range(part, SCHEDULES, 4):
        World(seed).run(STEPS)


def test_a_schedule_is_a_function_of_its_seed() -> None:
    """Two runs of one seed leave the same log."""
    logs = []
    for _ in range(2):
        world = World(7)
        world.run(STEPS)
        logs.append([each.record for each in world.log.entries(0, world.log.earliest(0), 1 << 30)])
    assert logs[0] == logs[1]


def test_the_schedules_are_eventful() -> None:
    """Nodes crash and are cloned, clients fail, records are trimmed and topics come and go."""
    worlds = [World(seed) for seed in range(12)]
    for world in worlds:
        world.run(STEPS)
    assert sum(host.starts > 1 for world in worlds for host in world.hosts) > 10
    assert sum(host.clones for world in worlds for host in world.hosts) > 4
    assert sum(client.failed for world in worlds for client in world.clients) > 10
    assert sum(world.log.earliest(0) > 0 for world in worlds) > 3
    assert sum(len(world.created) for world in worlds) > 5
    assert sum(len(world.deleted) for world in worlds) > 0
    assert sum(world.linear_reads for world in worlds) > 20


def is_found(seed: int) -> bool:
    """Whether a schedule shows that something is wrong, however that shows itself."""
    try:
        World(seed).run(STEPS)
    except Exception:  # noqa: BLE001 - a fault may show itself as any error
        return True
    return False


@pytest.mark.parametrize("plant", PLANTED.values(), ids=PLANTED)
def test_a_planted_fault_is_found(plant: Plant) -> None:
    """The search finds what is wrong with the product."""
    with plant():
        assert any(is_found(seed) for seed in range(ENOUGH))
