"""Asking cases: verdicts, deadlines, second chances, and what is left behind."""

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest

from lance_conformance.dialect import DEPLOYED, SPECIFIED
from lance_conformance.engine.conditions import Conditions, Target
from lance_conformance.engine.failures import Failure, NotApplicable
from lance_conformance.engine.run.schedule import IN_VAIN, ask_all
from lance_conformance.engine.run.verdict import TARGET_GONE, Exit, Result, Verdict, exit_code
from lance_conformance.server.case_context import CaseContext
from lance_conformance.server.cases import Case, all_cases
from lance_conformance.server.expect import keepalive
from lance_conformance.server.golden.server import Connections, serving, sessions
from lance_conformance.server.golden.specified import Specified
from lance_conformance.server.mutants import all_mutants
from lance_conformance.spec.clauses import Level
from lance_conformance.wire.control import KEEPALIVE

CaseFunction = Callable[[CaseContext], object]


def case(function: CaseFunction, level: Level = Level.MUST) -> Case:
    """A case that asks this."""
    template = next(case for case in all_cases() if case.level is level)
    return replace(template, id=f"kal/{function.__name__}", function=function)


def ask(cases: list[Case], connections: Connections | None = None, **how: object) -> list[Result]:
    """Ask a server these questions, the golden one by default."""

    async def run() -> list[Result]:
        async with serving(connections or sessions(Specified())) as port:
            conditions = Conditions(Target("127.0.0.1", port), SPECIFIED, SPECIFIED, budget=5.0)
            conditions = replace(conditions, **how)
            return await ask_all(cases, conditions, jobs=4)

    return asyncio.run(run())


async def passes(_ctx: CaseContext) -> None:
    """Asks nothing."""


async def fails(_ctx: CaseContext) -> None:
    """Finds a fault."""
    raise Failure("field:id", "the id is wrong")


async def cannot_ask(ctx: CaseContext) -> None:
    """Has a control that fails."""
    async with ctx.precondition("the control"):
        await fails(ctx)


async def has_no_meaning(_ctx: CaseContext) -> None:
    """Finds that it does not apply."""
    raise NotApplicable("the target allows ASCII names only")


async def has_a_bug(_ctx: CaseContext) -> None:
    """Is a mistake of the kit."""
    raise ZeroDivisionError


@pytest.mark.parametrize(
    ("function", "level", "verdict", "reason"),
    [
        (passes, Level.MUST, Verdict.PASS, ""),
        (fails, Level.MUST, Verdict.FAIL, "field:id"),
        (fails, Level.SHOULD, Verdict.WARN, "field:id"),
        (fails, Level.MAY, Verdict.INFO, "field:id"),
        (cannot_ask, Level.MUST, Verdict.BLOCKED, "field:id"),
        (has_no_meaning, Level.MUST, Verdict.SKIP, "not-applicable"),
        (has_a_bug, Level.MUST, Verdict.ERROR, "kit-error"),
    ],
)
def test_verdicts(function: CaseFunction, level: Level, verdict: Verdict, reason: str) -> None:
    """How a question ends decides the verdict, together with its level."""
    (result,) = ask([case(function, level)])
    assert (result.verdict, result.reason) == (verdict, reason)


def test_a_bug_of_the_kit_says_where_it_is() -> None:
    """It must not look like a fault of the target."""
    (result,) = ask([case(has_a_bug)])
    assert "the kit failed, not the target: ZeroDivisionError" in result.message
    assert "of has_a_bug" in result.message


def test_no_question_is_asked_before_the_control_probe_is_answered() -> None:
    """A case that would pass on its own is blocked by a server that speaks no LWP."""
    (result,) = ask([case(passes)], asyncio.Protocol, budget=0.05)
    assert result.verdict is Verdict.INCONCLUSIVE


def test_a_target_that_died_fails_the_case_that_killed_it() -> None:
    """After a hostile stimulus the control probe is asked again, on a fresh connection."""
    rules = all_mutants()["dies-of-bad-magic"].rules("specified")
    hostile = [case for case in all_cases() if case.id == "hdr/magic-closes"]
    (result,) = ask(hostile, sessions(rules))
    assert (result.verdict, result.reason) == (Verdict.FAIL, TARGET_GONE)
    assert "the target has answered nothing since hdr/magic-closes" in result.message
    assert exit_code([result]) is Exit.TARGET_GONE


def answering_from(attempt: int) -> tuple[Case, list[int]]:
    """A case whose answer is in time only from the given attempt on."""
    attempts: list[int] = []

    async def slow(ctx: CaseContext) -> None:
        attempts.append(len(attempts) + 1)
        if attempts[-1] < attempt:
            raise Failure("timeout", "nothing came")
        await ctx.side.ask(KEEPALIVE, keepalive())

    return case(slow), attempts


def test_slowness_is_shown_as_flaky() -> None:
    """A case that passes when asked again, alone, neither passed nor failed."""
    slow, attempts = answering_from(2)
    (result,) = ask([slow])
    assert (result.verdict, result.retried, attempts) == (Verdict.FLAKY, True, [1, 2])
    assert "passed only when asked again" in result.message


def test_an_answer_that_never_comes_is_a_failure() -> None:
    """The second chance is the last one, and the target is alive."""
    slow, attempts = answering_from(9)
    (result,) = ask([slow])
    assert (result.verdict, result.reason, attempts) == (Verdict.FAIL, "timeout", [1, 2])


def test_an_answer_that_is_missing_while_others_are_served_is_a_failure_at_once() -> None:
    """Slowness would keep the others waiting, too, and would end: nobody asks a second time."""
    attempts = []

    async def waits(ctx: CaseContext) -> None:
        attempts.append(ctx)
        await ctx.side.expect(keepalive())

    (result,) = ask([case(waits)], budget=0.4)
    assert (result.verdict, result.reason, len(attempts)) == (Verdict.FAIL, "timeout", 1)
    assert "nothing came in another 0.4 s, while a fresh connection was served" in result.message


def test_an_answer_that_comes_late_after_all_is_slow() -> None:
    """The case is asked again, and its verdict says that it passed only then."""
    attempts = []

    async def late(ctx: CaseContext) -> None:
        attempts.append(ctx)
        if len(attempts) == 1:
            asyncio.get_running_loop().call_later(0.6, ctx.side.send, KEEPALIVE)
        else:
            ctx.side.send(KEEPALIVE)
        await ctx.side.expect(keepalive())

    (result,) = ask([case(late)], budget=0.4)
    assert (result.verdict, len(attempts)) == (Verdict.FLAKY, 2)


def test_other_failures_get_no_second_chance() -> None:
    """A wrong answer is wrong at any speed."""
    (result,) = ask([case(fails)])
    assert not result.retried


def test_second_chances_end_when_they_are_in_vain() -> None:
    """A target that does not answer costs a few retries, not one for each case."""
    slow = [answering_from(9) for _ in range(IN_VAIN + 3)]
    results = ask([case for case, _ in slow])
    assert [result.retried for result in results] == [True] * IN_VAIN + [False] * 3
    assert all(result.verdict is Verdict.FAIL for result in results)


def test_every_result_is_told_once() -> None:
    """Reports that are written as the run goes on get each case once, retried or not."""
    told = []

    async def run() -> None:
        async with serving(sessions(Specified())) as port:
            conditions = Conditions(Target("127.0.0.1", port), SPECIFIED, SPECIFIED, budget=5.0)
            cases = [case(passes), case(fails), answering_from(2)[0], answering_from(9)[0]]
            await ask_all(cases, conditions, jobs=2, on_result=told.append)

    asyncio.run(run())
    assert sorted(result.verdict for result in told) == ["FAIL", "FAIL", "FLAKY", "PASS"]


def test_a_case_that_does_not_end_is_ended_from_outside() -> None:
    """The deadline holds even for a question that forgets about it."""

    async def hangs(_ctx: CaseContext) -> None:
        await asyncio.Event().wait()

    (result,) = ask([case(hangs)], budget=0.05)
    assert (result.verdict, result.reason) == (Verdict.FAIL, "overran")


def test_a_case_leaves_no_topic_behind() -> None:
    """Whatever a case creates is deleted, even when the case fails or the target misbehaves."""

    async def litters(ctx: CaseContext) -> None:
        await ctx.topic()
        await ctx.topic()
        raise Failure("field:id", "no")

    for rules in (Specified(), all_mutants()["accepts-any-character"].rules("specified")):
        names = [case for case in all_cases() if case.area in ("name", "top", "ret")]
        ask([case(litters), *names], sessions(rules))
        assert rules.memory.topics == {}
        assert rules.memory.deleted


def test_a_teardown_never_judges() -> None:
    """A target that dies after a passed case does not take the pass back."""
    rules = all_mutants()["only-pretends-to-delete"].rules("specified")

    async def passes_with_a_topic(ctx: CaseContext) -> None:
        await ctx.topic()

    (result,) = ask([case(passes_with_a_topic)], sessions(rules))
    assert result.verdict is Verdict.PASS


def test_a_rule_of_the_other_dialect_is_skipped() -> None:
    """Cases say in which dialect they have a meaning."""
    only = [case for case in all_cases() if case.id == "ing/retry-stored-once"]
    (result,) = ask(only, dialect=DEPLOYED)
    assert result.verdict is Verdict.SKIP
    assert "deployed dialect has no such rule" in result.message


def test_the_wrong_polynomial_is_asked_of_pinned_targets_only() -> None:
    """A target that serves both dialects on purpose is not punished for it."""
    only = [case for case in all_cases() if case.id == "crc/wrong-polynomial-closes"]
    assert ask(only, pinned=False)[0].verdict is Verdict.SKIP
    assert ask(only, pinned=True)[0].verdict is Verdict.PASS


def test_the_same_seed_sends_the_same_records() -> None:
    """Record values depend on seed and case only."""

    async def values(ctx: CaseContext) -> None:
        seen.append(ctx.values(2))

    seen: list[list[bytes]] = []
    for seed in (1, 1, 2):
        ask([case(values)], seed=seed)
    assert seen[0] == seen[1] != seen[2]


def test_a_pass_has_a_transcript() -> None:
    """The run file can show what good looks like, too."""

    async def writes(ctx: CaseContext) -> None:
        topic = await ctx.topic()
        await ctx.store(topic, ctx.values(1))
        await ctx.side.expect_quiet("4.2/one-ack")
        with pytest.raises(Failure):
            ctx.check(0, "count", "no")

    (result,) = ask([case(writes)])
    assert result.verdict is Verdict.PASS, result.message
    assert result.transcript is not None
    sent = [chunk for chunk in result.transcript.chunks if chunk.direction == "sent"]
    assert len(sent) == 5  # the probe, the topic, the batch, two Keepalives
