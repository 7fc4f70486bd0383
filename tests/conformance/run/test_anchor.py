"""The anchor: a topic that stands through a run against a target without topics."""

import asyncio

import pytest

from lance_conformance.dialect import PRESETS
from lance_conformance.engine.conditions import Conditions, Target
from lance_conformance.engine.run.schedule import ask_all
from lance_conformance.engine.run.verdict import Result, Verdict
from lance_conformance.engine.suites import suite_named
from lance_conformance.server.anchor import anchor_name
from lance_conformance.server.golden.server import GOLDEN, serving, sessions
from lance_conformance.server.golden.specified import Specified
from lance_conformance.server.golden.state import Topic
from lance_conformance.server.mutants import all_mutants

LWP = suite_named("lwp")
CASE = LWP.by_id["top/id-not-reused"]


def run_against(rules: Specified, dialect: str, *, read_only: bool = False) -> Result:
    """A run of the one case that takes the anchor away, as the command makes it."""

    async def run() -> Result:
        async with serving(sessions(rules)) as port:
            preset = PRESETS[dialect]
            where = Target("127.0.0.1", port)
            conditions = Conditions(where, preset, preset, read_only=read_only)
            await LWP.start(conditions)
            assert [t.name for t in rules.memory.topics.values()] == (
                [] if read_only else [anchor_name(conditions)]
            )
            [result] = await ask_all([CASE], conditions)
            await LWP.finish(conditions)
        return result

    return asyncio.run(run())


def test_a_run_takes_its_anchor_with_it() -> None:
    """Nothing of the kit's is left at a target of the document."""
    rules = Specified()
    assert run_against(rules, "specified").verdict is Verdict.PASS
    assert rules.memory.topics == {}


def test_the_last_topic_of_a_published_server_stays() -> None:
    """Without any topic it would lose what is stored next, so the anchor is left there."""
    rules = GOLDEN["deployed"]()
    assert run_against(rules, "deployed").verdict is Verdict.PASS
    assert [topic.name for topic in rules.memory.topics.values()] == ["lance-conformance-anchor"]


def test_other_topics_hold_a_published_server_too() -> None:
    """Where somebody has a topic, the anchor goes."""
    rules = GOLDEN["deployed"]()

    async def run() -> None:
        async with serving(sessions(rules)) as port:
            preset = PRESETS["deployed"]
            conditions = Conditions(Target("127.0.0.1", port), preset, preset)
            await LWP.start(conditions)
            rules.memory.topics[7] = Topic(7, "orders")
            await LWP.finish(conditions)

    asyncio.run(run())
    assert [topic.name for topic in rules.memory.topics.values()] == ["orders"]


@pytest.mark.parametrize("dialect", ["specified", "deployed"])
def test_ids_that_begin_again_are_found_at_the_first_empty_list(dialect: str) -> None:
    """As at a published server: ids come back once no topic is left and ListTopics was asked."""
    rules = all_mutants()["begins-again-without-topics"].rules(dialect)
    result = run_against(rules, dialect)
    assert (result.verdict, result.reason) == (Verdict.WARN, "field:id")
    assert result.message.startswith("the id 2 was given away twice; records acknowledged under")


def test_the_target_is_past_the_ids_that_came_back() -> None:
    """After the case new topics get ids that no topic had before."""
    rules = all_mutants()["begins-again-without-topics"].rules("deployed")
    run_against(rules, "deployed")
    assert rules.memory.last_id > 2


def test_a_target_that_is_only_read_gets_no_anchor() -> None:
    """--read-only creates nothing."""
    rules = Specified()
    assert run_against(rules, "specified", read_only=True).verdict is Verdict.SKIP
    assert rules.memory.topics == {}
