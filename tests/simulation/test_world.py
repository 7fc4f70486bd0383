"""The simulated world: one seed decides everything."""

from pathlib import Path
from random import Random

import pytest
from tests.simulation.faults import Fault
from tests.simulation.store.plan import INSIDE, StorePlan, make_plan
from tests.simulation.store.run import Run
from tests.simulation.world import Pace, SimLock, SimQueue, StuckError, World


def busy_world(seed: int) -> World:
    """Return a world whose threads are often interrupted."""
    return World(Random(seed), Pace(pause=0.5, far=0.5, longest=1.0))


def trace_of(plan: StorePlan) -> tuple[object, ...]:
    """Return all that comes of a plan: what was answered, the time, and the disk."""
    run = Run(plan)
    result = run.carry_out()
    files = [(str(path), bytes(file.content)) for path, file in run.disk.files(run.data_dir)]
    return str(result), run.world.now, files


@pytest.mark.parametrize("seed", range(12))
def test_a_seed_gives_the_same_run_each_time(seed: int) -> None:
    """The same answers, at the same time, and the same bytes on the disk."""
    assert trace_of(make_plan(seed)) == trace_of(make_plan(seed))


def test_threads_are_interrupted_in_many_ways() -> None:
    """Two threads that take turns write different stories under different seeds."""
    stories = set()
    for seed in range(20):
        story: list[str] = []
        world = busy_world(seed)

        def tell(world: World, letter: str, story: list[str]) -> None:
            for _ in range(4):
                story.append(letter)
                world.pause()

        for letter in "ab":
            world.spawn(lambda w=world, each=letter, s=story: tell(w, each, s))  # type: ignore[misc]
        world.run()
        stories.add("".join(story))
    assert len(stories) > 10


@pytest.mark.parametrize("seed", range(10))
def test_a_lock_is_held_by_one_thread(seed: int) -> None:
    """A thread that is interrupted while it holds a lock keeps the others out."""
    world, inside = busy_world(seed), []
    lock = SimLock(world)

    def work() -> None:
        with lock:
            inside.append(1)
            world.pause()
            assert len(inside) == 1
            inside.pop()

    for _ in range(4):
        world.spawn(work)
    world.run()
    assert (inside, world.errors) == ([], [])


def test_a_queue_gives_each_item_once() -> None:
    """Who waits for an item gets one, in order."""
    got: list[int] = []
    world = busy_world(3)
    queue = SimQueue(world)
    world.spawn(lambda: got.extend(queue.get() for _ in range(3)))
    for item in range(3):
        queue.put(item)
    world.run()
    assert got == [0, 1, 2]


def test_time_passes_when_nobody_has_anything_to_do() -> None:
    """A sleep of an hour takes no real time."""
    world = busy_world(1)
    world.spawn(lambda: world.sleep(3600))
    world.run()
    assert world.now == 3600


def test_a_thread_that_never_ends_is_noticed() -> None:
    """A run does not hang with the code that it runs."""
    world = World(Random(1), Pace(pause=1.0, far=0.0))

    def spin() -> None:
        while True:
            world.pause()

    world.spawn(spin)
    with pytest.raises(StuckError):
        world.rest(1.0)


def test_half_of_the_plans_follow_a_template() -> None:
    """Every step of the store has plans with faults inside it."""
    templates = [make_plan(seed).template for seed in range(400)]
    assert templates.count("any") == 200
    assert set(INSIDE) <= set(templates)


def test_an_operation_keeps_its_randomness_when_others_go() -> None:
    """What is deleted from a plan changes nothing of what stays, so that plans can be shrunk."""
    plan = make_plan(7)
    shorter = plan.keeping(plan.operations[3:])
    assert shorter.operations == plan.operations[3:]
    assert len({each.seed for each in plan.operations}) == len(plan.operations)


def test_a_fault_is_planned_for_each_call_in_turn() -> None:
    """A fault of several calls hits so many, and no more."""
    fault = Fault("*", "*", 0, "EIO", times=2)
    assert [fault.meets("sync", Path("a")) for _ in range(3)] == [True, True, False]
