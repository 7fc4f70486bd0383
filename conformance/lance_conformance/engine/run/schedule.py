"""Asking the cases: side by side, each under its deadline, timing failures once more alone."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace

from lance_conformance.engine.base_context import BaseContext
from lance_conformance.engine.conditions import Conditions
from lance_conformance.engine.failures import Blocked, Failure, NotApplicable
from lance_conformance.engine.registry import Case
from lance_conformance.engine.run.capabilities import missing
from lance_conformance.engine.run.target_watch import TargetWatch
from lance_conformance.engine.run.verdict import Result, Verdict, broken

RETRY_BUDGET = 4
"""How many times its budget a case gets when it is asked again, alone."""
IN_VAIN = 4
"""Second chances in a row that changed nothing, after which the other cases get none: the target
does not answer, it is not merely slow."""

WAITING = 40
"""Cases that wait on purpose and go on beside the others."""

OnResult = Callable[[Result], None]


async def ask_all(
    cases: Sequence[Case],
    conditions: Conditions,
    *,
    jobs: int = 1,
    retry: bool = True,
    on_result: OnResult = lambda _: None,
) -> list[Result]:
    """Ask every case once, and those that failed for lack of time once more.

    Args:
        cases: The cases, in the order in which to ask them.
        conditions: What they are held to.
        jobs: How many are asked at a time, unless the target is slow.
        retry: Whether timing failures get their second chance.
        on_result: Told of each result as soon as it stands.

    Returns:
        The results, in the order of the cases.
    """
    jobs = 1 if conditions.one_by_one else jobs
    gate = asyncio.Semaphore(jobs)
    waiting_room = asyncio.Semaphore(WAITING) if jobs > 1 else gate
    watch = TargetWatch(conditions) if retry else None

    async def ask_one(case: Case) -> Result:
        async with waiting_room if case.seconds else gate:
            result = await _watched(case, conditions, watch)
        if not _is_asked_again(result, watch):
            on_result(result)
        return result

    together = iter(await _gather([ask_one(case) for case in cases if not case.alone]))
    results = [await ask_one(case) if case.alone else next(together) for case in cases]
    if watch is not None:
        await _second_chances(results, conditions, watch, on_result)
    return results


async def _watched(case: Case, conditions: Conditions, watch: TargetWatch | None) -> Result:
    """Ask a case, unless the target is gone."""
    if watch is None:
        return await ask(case, conditions, _budget(case, conditions))
    if watch.gone:
        return watch.not_asked(case)
    watch.begin(case)
    budget = _budget(case, conditions)
    return await watch.end(await ask(case, conditions, budget, certain=True))


def _is_asked_again(result: Result, watch: TargetWatch | None) -> bool:
    return watch is not None and (result.timing or watch.may_be_innocent(result))


async def _second_chances(
    results: list[Result], conditions: Conditions, watch: TargetWatch, on_result: OnResult
) -> None:
    in_vain = 0
    for position, result in enumerate(results):
        if not _is_asked_again(result, watch):
            continue
        if watch.gone:
            results[position] = watch.not_asked(result.case)
        elif not result.timing and not watch.is_suspect(result):
            pass  # it was the only case whose connections were lost
        elif in_vain < IN_VAIN:
            results[position] = await _asked_again(result, conditions, watch)
            in_vain = in_vain + 1 if results[position].timing else 0
        on_result(results[position])


async def _asked_again(result: Result, conditions: Conditions, watch: TargetWatch) -> Result:
    """Ask a case again alone: for lack of time, or since another one may have ended the target."""
    watch.begin(result.case)
    if result.timing:
        return await watch.end(await _again(result, conditions))
    found = await ask(result.case, _other_names(conditions), _budget(result.case, conditions))
    return replace(await watch.end(found), retried=True)


def _budget(case: Case, conditions: Conditions, times: float = 1.0) -> float:
    extra = conditions.restart_timeout if case.restarts else case.seconds * conditions.pace
    return conditions.budget * times * case.weight + extra


async def _gather(waiting: Sequence[Coroutine[None, None, Result]]) -> list[Result]:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(function) for function in waiting]
    return [task.result() for task in tasks]


async def _again(first: Result, conditions: Conditions) -> Result:
    """Ask alone and with more time: slowness then shows as FLAKY, not as a broken rule."""
    budget = _budget(first.case, conditions, RETRY_BUDGET)
    result = await ask(first.case, _other_names(conditions), budget)
    result = replace(result, retried=True)
    if result.verdict is Verdict.PASS:
        return replace(
            first,
            verdict=Verdict.FLAKY,
            message=f"passed only when asked again, alone and with more time: {first.message}",
            timing=False,
            retried=True,
        )
    if result.timing and not await _answers(first.case, conditions):
        return replace(
            result,
            verdict=Verdict.INCONCLUSIVE,
            message=f"the target answers nothing in time any more: {result.message}",
        )
    return result


def _other_names(conditions: Conditions) -> Conditions:
    """The conditions with other names: what a first attempt created may still be there."""
    return replace(conditions, run_id=f"{conditions.run_id}r")


async def _answers(case: Case, conditions: Conditions) -> bool:
    ctx = case.among.converse(conditions, "kit/control", conditions.budget * RETRY_BUDGET)
    try:
        await ctx.begin()
    except Blocked:
        return False
    finally:
        await ctx.end(clean=False)
    return True


def skip_reason(case: Case, conditions: Conditions) -> str | None:
    """Why a case has no meaning under these conditions, or `None`."""
    if conditions.dialect.name not in case.dialects:
        return f"the {conditions.dialect.name} dialect has no such rule"
    if case.pinned_only and not conditions.pinned:
        return "asked only of a target held to one dialect (--dialect)"
    left_out = sorted(case.needs & conditions.without)
    if left_out:
        return f"left out by --without {left_out[0]}"
    return missing(case.needs, conditions.capabilities)


async def ask(
    case: Case, conditions: Conditions, budget: float, *, certain: bool = False
) -> Result:
    """Ask one case.

    Args:
        case: The case.
        conditions: What it is held to.
        budget: Seconds until its deadline.
        certain: Whether to look again at an answer that did not come.
    """
    why_not = skip_reason(case, conditions)
    if why_not is not None:
        return Result(case, Verdict.SKIP, reason="not-applicable", message=why_not)
    ctx = case.among.converse(conditions, case.id, budget)
    clock = asyncio.get_running_loop().time
    began = clock()
    passed = False
    try:
        await ctx.prepare()
        result = await _judged(case, ctx, budget, certain=certain)
        passed = result.verdict is Verdict.PASS
    finally:
        ctx.time.alarm = None
        await ctx.end(clean=passed)
    return replace(result, seconds=clock() - began, transcript=ctx.transcript)


async def _judged(case: Case, ctx: BaseContext, budget: float, *, certain: bool) -> Result:
    try:
        async with asyncio.timeout_at(ctx.deadline + ctx.time.grace) as ctx.time.alarm:
            await ctx.begin()
            await case.function(ctx)
    except Blocked as failure:
        return _result(case, Verdict.BLOCKED, failure)
    except Failure as failure:
        found = await ctx.looked_again(failure) if certain and failure.timing else failure
        return _result(case, broken(case.level), found)
    except NotApplicable as reason:
        return Result(case, Verdict.SKIP, reason="not-applicable", message=str(reason))
    except TimeoutError:
        late = Failure("overran", f"the case did not end within {budget:.3f} s")
        return _result(case, broken(case.level), late)
    except Exception as problem:  # noqa: BLE001 - a bug of the kit must not look like the target's
        return Result(case, Verdict.ERROR, reason="kit-error", message=_kit_bug(problem))
    return Result(case, Verdict.PASS)


def _kit_bug(problem: Exception) -> str:
    trace = problem.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    where = f" (line {trace.tb_lineno} of {trace.tb_frame.f_code.co_name})" if trace else ""
    return f"the kit failed, not the target: {type(problem).__name__}: {problem}{where}"


def _result(case: Case, verdict: Verdict, failure: Failure) -> Result:
    return Result(
        case,
        verdict,
        reason=failure.reason,
        message=failure.message,
        expected=failure.expected,
        received=failure.received,
        connection=failure.connection,
        timing=failure.timing,
    )
