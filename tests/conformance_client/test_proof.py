"""The clients that prove the cases: right, broken, null and hostile ones."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import lz4.frame
import pytest

from lance_conformance.client.golden.driver import GoldenDriver, Request
from lance_conformance.client.golden.specified import Specified
from lance_conformance.client.golden.values import Body, Record
from lance_conformance.client.inprocess import standing
from lance_conformance.client.mutants import all_mutants
from lance_conformance.client.suite import LwpClients
from lance_conformance.engine.selftest import gates
from lance_conformance.engine.selftest.attacks import attacked
from lance_conformance.engine.selftest.matrix import committed, differences, kills
from lance_conformance.engine.selftest.selftest import second_opinions
from lance_conformance.engine.selftest.targets import (
    Asked,
    Finding,
    SelftestTarget,
    golden_subjects,
    mutant_subjects,
    null_subjects,
    try_subjects,
)
from lance_conformance.engine.selftest.test_selection import witnesses
from lance_conformance.engine.suite import StartServer
from lance_conformance.engine.suites import suite_named
from lance_conformance.server.golden.codec import SIZE, parse

# A TLS handshake that a case breaks off may end only with its event loop, and be collected later.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
SUITE = suite_named(LwpClients.name)
HOSTILE = SUITE.proof().hostile("specified")


def run(asked: Asked) -> dict[SelftestTarget, dict[str, Finding]]:
    """Trials, with the second opinions that the self-test would ask for."""
    trials = dict(zip(asked, map(dict, try_subjects(asked)), strict=True))
    corrected = second_opinions(trials, committed(SUITE))
    return trials | {subject: dict(findings) for subject, findings in corrected.items()}


@pytest.mark.parametrize("dialect", ["specified", "deployed"])
def test_the_golden_client_passes(dialect: str) -> None:
    """Every case, side by side and shuffled."""
    (subject,) = [s for s in golden_subjects(SUITE, 3, jobs=4) if s.dialect == dialect]
    trials = run({subject: frozenset(SUITE.by_id)})
    assert gates.golden_passes(SUITE, trials).faults == ()


def test_every_case_can_fail_and_every_mutant_is_told_apart() -> None:
    """By the committed matrix, in every dialect."""
    assert gates.every_case_can_fail(SUITE, committed(SUITE)).faults == ()
    assert gates.every_mutant_is_killed(committed(SUITE)).faults == ()
    told = {name for rows in committed(SUITE).values() for name in rows}
    assert told == set(all_mutants())


def test_a_sample_of_mutants_is_killed_for_the_recorded_reasons() -> None:
    """Every twelfth mutant, by the cases that it is a witness for."""
    chosen = {dialect: witnesses(rows) for dialect, rows in committed(SUITE).items()}
    sample = mutant_subjects(SUITE, 5)[::12]
    asked = {s: frozenset(chosen[s.dialect][s.name]) for s in sample}
    trials = run(asked)
    for subject, findings in trials.items():
        now = {subject.dialect: {subject.name: kills(findings)}}
        row = committed(SUITE)[subject.dialect][subject.name]
        before = {case: reason for case, reason in row.items() if case in asked[subject]}
        assert differences(now, {subject.dialect: {subject.name: before}}) == []


def test_null_drivers_pass_nothing() -> None:
    """Not one case passes without a client."""
    subjects = [subject for subject in null_subjects(SUITE) if subject.dialect == "specified"]
    asked = {subject: frozenset(SUITE.by_id) for subject in subjects}
    trials = dict(zip(asked, try_subjects(asked), strict=True))
    assert gates.nulls_pass_nothing(SUITE, trials).faults == ()


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_drivers_cannot_stop_the_kit(name: str) -> None:
    """A whole run against each of them ends in time, and praises nobody."""
    assert asyncio.run(attacked(SUITE, name, HOSTILE[name])) == []


class Fetches(Specified):
    """A right client that follows a topic by Fetch, where the server would push to it."""

    def pushes(self) -> bool:
        """It does not subscribe."""
        return False


class Compresses(Specified):
    """A right client that compresses every batch."""

    def ingest(self, batch_id: int, now: int, topic: int, records: Sequence[Record], /) -> bytes:
        """An Ingest with one LZ4 frame."""
        frame = super().ingest(batch_id, now, topic, records)
        plain, payload = parse(frame), lz4.frame.compress(frame[SIZE:], content_checksum=True)
        return self.encode(plain._replace(flags=plain.flags | 0x01, payload=payload))


class EagerDriver(GoldenDriver):
    """A right client that connects at once, and is no client where that fails."""

    async def call(self, request: Request) -> Body:
        """Carry out one operation."""
        if self.client is None and request["op"] not in {"connect", "juggle", "close"}:
            return {"error": {"kind": "closed", "text": "there is no client"}}
        answer = await super().call(request)
        if request["op"] == "connect" and "error" in (found := await super().call({"op": "ping"})):
            await super().call({"op": "close"})
            self.client = None
            return found
        return answer


@dataclass(frozen=True, slots=True)
class Right(SelftestTarget):
    """Another right client on trial."""

    make: Callable[[], GoldenDriver] = GoldenDriver

    def server(self, _setting: str) -> StartServer:
        """A driver of it."""
        return partial(standing, "another right client", self.make)


def faults(make: Callable[[], GoldenDriver], *areas: str) -> Sequence[str]:
    """What cases of these areas find wrong with a right client."""
    subject = Right(SUITE.name, "golden", "golden", "specified", jobs=4, make=make)
    cases = frozenset(case for case in SUITE.by_id if case.startswith(areas))
    return gates.golden_passes(SUITE, run({subject: cases})).faults


def test_a_client_that_follows_by_fetch_passes() -> None:
    """No case wants a Subscribe of it."""
    assert faults(lambda: GoldenDriver(lambda _: Fetches()), "follow/") == ()


def test_a_client_that_compresses_everything_passes() -> None:
    """The kit looks at the records in its batches."""
    areas = ("ack/", "rec/", "wire/", "drawn/", "large/sends", "large/follows", "many/", "again/")
    assert faults(lambda: GoldenDriver(lambda _: Compresses()), *areas) == ()


def test_a_client_that_connects_at_once_passes() -> None:
    """What it was told at connect is the reason of what fails without a connection."""
    assert faults(EagerDriver, "pass/", "code/") == ()


@pytest.mark.parametrize("kind", ["fatal", "closed"])
def test_a_client_that_connects_at_once_and_tells_another_reason_fails(kind: str) -> None:
    """A refused token is told as such, at connect or later."""

    class Wrong(EagerDriver):
        async def call(self, request: Request) -> Body:
            answer = await super().call(request)
            return answer if "error" not in answer else {"error": {"kind": kind, "text": "no"}}

    assert len(faults(Wrong, "pass/refused", "pass/error")) >= 2
