"""Trying random stimuli, and making one that fails as small as it can be."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from lance_conformance.engine.failures import Blocked, Failure
from lance_conformance.server.case_context import CaseContext

Step = TypeVar("Step")
Attempt = Callable[[Sequence[Step]], Awaitable[None]]
"""Puts some steps to the target from a fresh beginning; raises when it does wrong."""

TRIES = 40
"""Smaller stimuli that are tried at most."""


async def hunt(ctx: CaseContext, steps: Sequence[Step], attempt: Attempt[Step]) -> None:
    """Put steps to the target; where it does wrong, find few of them that suffice.

    Args:
        ctx: The context of the case; its seed made the steps.
        steps: What was drawn.
        attempt: Puts some of them to the target.

    Raises:
        Failure: It did wrong; the message has the seed and the smallest stimulus that was found.
    """
    failure = await _failure(steps, attempt)
    if failure is None:
        return
    least, why = await _smaller(steps, failure, attempt)
    raise told(ctx, ", ".join(map(str, least)), why)


def told(ctx: CaseContext, stimulus: str, failure: Failure) -> Failure:
    """The failure with its stimulus and the way to ask again."""
    return type(failure)(
        failure.reason,
        f"with --seed {ctx.conditions.seed}, {stimulus}: {failure.message}",
        expected=failure.expected,
        received=failure.received,
        connection=failure.connection,
        timing=failure.timing,
    )


async def _failure(steps: Sequence[Step], attempt: Attempt[Step]) -> Failure | None:
    try:
        await attempt(steps)
    except Blocked:
        raise
    except Failure as failure:
        return failure
    return None


async def _smaller(
    steps: Sequence[Step], failure: Failure, attempt: Attempt[Step]
) -> tuple[Sequence[Step], Failure]:
    """Leave out ever smaller parts, as long as the same goes wrong."""
    tries, size = TRIES, len(steps) // 2
    while size and not failure.timing:
        start = 0
        while start < len(steps) > 1:
            if not tries:
                return steps, failure
            tries -= 1
            fewer = [*steps[:start], *steps[start + size :]]
            found = await _again(fewer, failure, attempt) if fewer else None
            steps, failure = (fewer, found) if found else (steps, failure)
            start += 0 if found else size
        size //= 2
    return steps, failure


async def _again(steps: Sequence[Step], failure: Failure, attempt: Attempt[Step]) -> Failure | None:
    """The failure of fewer steps, when it has the same reason and is not a lack of time."""
    try:
        found = await _failure(steps, attempt)
    except Blocked:
        return None
    return found if found and found.reason == failure.reason and not found.timing else None
