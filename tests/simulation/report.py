"""What is told of a plan that fails."""

from tests.simulation.plan import Plan
from tests.simulation.run import carry_out
from tests.simulation.shrink import shrink


def describe(plan: Plan) -> str:
    """Return the shortest form of a failing plan, in words, and how to replay it."""
    short = shrink(plan)
    violation = carry_out(short).violation
    return f"{violation}\n{short}\nreplay it: python -m tests.simulation --seed {plan.seed}"
