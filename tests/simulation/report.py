"""What is told of a plan that fails."""

from tests.simulation.ring import run as ring
from tests.simulation.ring.plan import RingPlan
from tests.simulation.server import run as server
from tests.simulation.server.plan import ServerPlan
from tests.simulation.shrink import shrink
from tests.simulation.slot import run as slot
from tests.simulation.store import run as store
from tests.simulation.store.plan import StorePlan


def describe(plan: StorePlan) -> str:
    """Return the shortest form of a failing plan, in words, and how to replay it."""
    short = shrink(plan, store.carry_out)
    return _told(store.carry_out(short).violation, short, f"--seed {plan.seed}")


def describe_ring(plan: RingPlan) -> str:
    """Return the same of a plan for a ring."""
    short = shrink(plan, ring.carry_out)
    return _told(ring.carry_out(short).violation, short, f"--ring --seed {plan.seed}")


def describe_slot(plan: RingPlan) -> str:
    """Return the same of a plan for a slot that passes between clients."""
    short = shrink(plan, slot.carry_out)
    return _told(slot.carry_out(short).violation, short, f"--slot --seed {plan.seed}")


def describe_server(plan: ServerPlan) -> str:
    """Return the same of a plan for the whole server."""
    short = shrink(plan, server.carry_out)
    return _told(server.carry_out(short).violation, short, f"--server --seed {plan.seed}")


def _told(violation: str | None, short: object, replay: str) -> str:
    return f"{violation}\n{short}\nreplay it: python -m tests.simulation {replay}"
