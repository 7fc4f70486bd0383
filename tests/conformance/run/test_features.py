"""Features that a server lacks as a whole: one line in the report, not one failure a case."""

import asyncio
import json
from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest

from lance_conformance.app import run_app
from lance_conformance.dialect import SPECIFIED
from lance_conformance.engine.conditions import Conditions, Target
from lance_conformance.server.cases import all_cases
from lance_conformance.server.features import FEATURES, feature_of, left_out
from lance_conformance.server.golden.codec import Wire
from lance_conformance.server.golden.server import Connections, serving, sessions
from lance_conformance.server.golden.specified import Specified
from lance_conformance.server.golden.state import Refused, Replies, Topic
from lance_conformance.server.preflight import DialectAxes, preflight
from lance_conformance.wire.consumers import commit_offset, subscribe, unsubscribe
from lance_conformance.wire.control import (
    KEEPALIVE,
    create_topic_with_retention,
    get_topic,
    ingest,
    set_retention,
)
from lance_conformance.wire.frame import Flag, Frame

Serve = Callable[[Connections], int]
COMMITS, UNKNOWN = 0x22, 0x7E


class Knows(Specified):
    """A golden server without some commands."""

    def __init__(self, *lacking: int) -> None:
        super().__init__()
        self._lacking = lacking

    def command_of(self, batch_id: int, /) -> int:
        """What it lacks is no command to it."""
        return UNKNOWN if batch_id in self._lacking else batch_id


class Quiet(Knows):
    """A golden server that passes over commands that it does not know."""

    def unknown_command(self, _command: int, /) -> Replies:
        """Nothing is said."""
        return []


class OncePerConsumer(Specified):
    """A server that takes each consumer of a topic once, and never again."""

    def subscribed_at(self, topic: Topic, consumer: int, asked: int, /) -> int:
        """The second time is refused."""
        scar = f"{consumer} of {topic.id}"
        if scar in self.memory.scars:
            raise Refused(0x04, "subscribed already")
        self.memory.scars.add(scar)
        return super().subscribed_at(topic, consumer, asked)


class NoCompression(Specified):
    """A golden server that refuses compressed batches."""

    def opened(self, frame: Wire, /) -> bytes:
        """Only plain payloads."""
        if frame.flags & 1:
            raise Refused(0x04, "no compression here")
        return frame.payload


def found(rules: Specified, **given: frozenset[str]) -> tuple[Conditions, DialectAxes]:
    """What the preflight finds."""

    async def run() -> tuple[Conditions, DialectAxes]:
        async with serving(sessions(rules)) as port:
            base = Conditions(Target("127.0.0.1", port), SPECIFIED, SPECIFIED)
            return await preflight(replace(base, **given))

    return asyncio.run(run())


def summary(
    capsys: pytest.CaptureFixture[str], port: int, *arguments: str
) -> tuple[int, dict[str, dict[str, str]], str]:
    """Exit code, problems by case, and the verdict of a run."""
    code = run_app(["run", "--target", f"127.0.0.1:{port}", "--json", *arguments])
    told = json.loads(capsys.readouterr().out)
    return code, {row["id"]: row for row in told["problems"]}, told["verdict"]


@pytest.mark.parametrize(
    ("rules", "missing"),
    [
        (Specified(), set()),
        (Knows(COMMITS), {"commits"}),
        (Knows(0x20), {"subscribe"}),
        (Knows(0x05, 0x06), {"retention"}),
        (Quiet(COMMITS, 0x05), {"commits", "retention"}),
        (NoCompression(), {"lz4"}),
        (OncePerConsumer(), set()),
    ],
    ids=["golden", "commits", "subscribe", "retention", "silent", "lz4", "once"],
)
def test_the_preflight_finds_what_is_not_served(rules: Specified, missing: set[str]) -> None:
    """Each feature is tried once; a server that passes over a command costs no time."""
    conditions, axes = found(rules)
    assert conditions.missing == axes.missing == missing


def test_a_target_can_be_held_to_a_feature() -> None:
    """With --can it is asked all its cases."""
    conditions, axes = found(Knows(COMMITS), capabilities=frozenset({"commits"}))
    assert axes.missing == {"commits"}
    assert conditions.missing == frozenset()


def test_one_case_says_that_a_feature_is_missing(
    serve: Serve, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of all cases about commits one fails, and the others are skipped."""
    code, problems, _ = summary(capsys, serve(sessions(Knows(COMMITS))), "com", "rep", "fet/walk")
    assert code == 1
    assert set(problems) == {"com/ack"}


def test_what_is_left_out_is_not_asked(serve: Serve, capsys: pytest.CaptureFixture[str]) -> None:
    """With --without the target conforms, and the run says without what."""
    port = serve(sessions(Knows(COMMITS)))
    code, problems, _ = summary(capsys, port, "com", "rep", "fet/walk", "--without", "commits")
    assert (code, problems) == (0, {})
    run_app(["run", "--target", f"127.0.0.1:{port}", "--without", "commits", "com", "fet/walk"])
    output = capsys.readouterr().out
    assert "skipped: left out by --without commits" in output
    assert output.splitlines()[-1].endswith("is kept (without commits)")


def test_a_capability_can_be_left_out(serve: Serve, capsys: pytest.CaptureFixture[str]) -> None:
    """A golden server pushes; with --without push it is not asked to."""
    port = serve(sessions(Specified()))
    run_app(["run", "--target", f"127.0.0.1:{port}", "--without", "push", "sub/push-*", "fet/walk"])
    assert "27 skipped: left out by --without push" in capsys.readouterr().out


@pytest.mark.parametrize("feature", sorted(FEATURES))
def test_what_is_left_out_hides_nothing_else(feature: str) -> None:
    """With --without a feature the other capabilities are found all the same."""
    _, axes = found(Specified(), without=frozenset({feature}))
    able = {"cluster-status", "offset-for-time", "batch-times", "partitions", "push"}
    assert axes.capabilities == (able - {"push"} if feature == "subscribe" else able)


LZ4 = replace(ingest(1, 1, [b"x"]), flags=Flag.BATCH_MODE | Flag.COMPRESSED)


@pytest.mark.parametrize(
    ("frame", "feature"),
    [
        (subscribe(1, 1), "subscribe"),
        (unsubscribe(1, 1), "subscribe"),
        (commit_offset(1, 1, 0), "commits"),
        (set_retention(1, 1, 1), "retention"),
        (create_topic_with_retention("x", 1, 1), "retention"),
        (LZ4, "lz4"),
        (get_topic(1), None),
        (KEEPALIVE, None),
        (ingest(1, COMMITS, [b"x"]), None),
    ],
)
def test_the_feature_of_a_frame(frame: Frame, feature: str | None) -> None:
    """Control frames by their command, batches by their flags."""
    assert feature_of(frame) == feature


def _asking(names: Iterable[str]) -> set[str]:
    return {case for name in names for case in FEATURES[name].asks}


def test_the_cases_that_say_so_exist_and_are_asked_all_the_same() -> None:
    """A missing feature is told by its own cases, one left out on purpose by none."""
    ids = {case.id for case in all_cases()}
    assert _asking(FEATURES) <= ids
    for name, feature in FEATURES.items():
        for case in feature.asks:
            assert left_out(case, [], [name]) == {}
            assert left_out(case, [name], [])[name] == f"left out by --without {name}"
        assert "does not serve" in left_out("fet/walk", [], [name])[name]
