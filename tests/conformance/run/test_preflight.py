"""Before the cases: who is there, what do they speak, how fast are they."""

import asyncio
import socket
from dataclasses import replace

import pytest

from lance_conformance.dialect import DEPLOYED, PRESETS, SPECIFIED
from lance_conformance.engine.conditions import Conditions, Target
from lance_conformance.server.golden.codec import Reply, ieee
from lance_conformance.server.golden.deployed import Deployed
from lance_conformance.server.golden.server import Connections, Session, serving, sessions
from lance_conformance.server.golden.specified import Specified
from lance_conformance.server.mutants import all_mutants
from lance_conformance.server.mutants.null import connections, null_names
from lance_conformance.server.preflight import MIN_BUDGET, DialectAxes, PreflightError, preflight

PATIENT = {"is-silent", "stalls-in-the-header", "replays-what-came-before"}
"""Null servers that take all the time the preflight gives them; the gates try them, too."""


def probe(
    made: Connections, dialect: str = "auto", scale: float = 1.0
) -> tuple[Conditions, DialectAxes]:
    """The preflight against this server, as the command line would run it."""

    async def run() -> tuple[Conditions, DialectAxes]:
        demanded = PRESETS.get(dialect, SPECIFIED)
        async with serving(made) as port:
            base = Conditions(Target("127.0.0.1", port), demanded, demanded)
            base = replace(base, pinned=dialect != "auto")
            return await preflight(base, scale)

    return asyncio.run(run())


class Bilingual(Session):
    """A server that answers each connection in the polynomial of its first header."""

    def __init__(self) -> None:
        super().__init__(Specified())

    def data_received(self, data: bytes) -> None:
        """Choose the rules by the first frame."""
        first = int.from_bytes(data[8:12], "little")
        if first == ieee(data[:8]):
            self._rules = Deployed()
        super().data_received(data)


@pytest.mark.parametrize(
    ("rules", "dialect"), [(Specified(), SPECIFIED), (Deployed(), DEPLOYED)], ids=["spec", "depl"]
)
def test_a_dialect_is_found_out(rules: Specified, dialect: object) -> None:
    """On auto the checksum decides, and the other axes are measured."""
    conditions, axes = probe(sessions(rules))
    assert conditions.dialect == dialect
    assert axes.checksums == (conditions.dialect.checksum,)
    assert conditions.demanded == SPECIFIED
    assert rules.memory.topics == {}


def test_a_target_that_serves_both_is_held_to_the_document() -> None:
    """Both polynomials are reported, and the rest is judged as specified."""
    conditions, axes = probe(Bilingual)
    assert axes.checksums == ("crc32c", "ieee")
    assert conditions.dialect == SPECIFIED


def test_a_pinned_target_is_spoken_to_in_what_it_understands() -> None:
    """A server held to the document that speaks IEEE is one failing case, not a silent run."""
    rules = all_mutants()["speaks-the-other-polynomial"].rules("specified")
    conditions, _ = probe(sessions(rules), "specified")
    assert conditions.dialect == replace(SPECIFIED, checksum="ieee")
    assert conditions.demanded == SPECIFIED


@pytest.mark.parametrize(
    ("mutant", "axis"),
    [
        ("writes-errors-as-text", {"errors": "text"}),
        ("answers-with-the-extended-header", {"fetch_header": 24}),
    ],
)
def test_axes_are_measured_one_by_one(mutant: str, axis: dict[str, object]) -> None:
    """One deviating axis does not change the others."""
    conditions, _ = probe(sessions(all_mutants()[mutant].rules("specified")), "specified")
    assert conditions.dialect == replace(SPECIFIED, **axis)


def test_what_cannot_be_measured_is_taken_from_the_preset() -> None:
    """A server that refuses nothing shows no form of errors."""
    rules = all_mutants()["finds-every-topic"].rules("deployed")
    conditions, axes = probe(sessions(rules), "deployed")
    assert axes.errors is None
    assert conditions.dialect.errors == "text"


@pytest.mark.parametrize("name", [name for name in null_names() if name not in PATIENT])
def test_servers_that_speak_no_lwp_do_not_pass(name: str) -> None:
    """Nothing is proven about them, and the error says what they answered in each checksum."""
    with pytest.raises(PreflightError, match=r"nothing can be proven.*crc32c: .*ieee: "):
        probe(connections(name, "specified"))


def test_nobody_there() -> None:
    """The error names the address and what to look at."""
    with socket.socket() as bound:  # nobody else can have the port, and nobody listens there
        bound.bind(("127.0.0.1", 0))
        port = bound.getsockname()[1]
        conditions = Conditions(Target("127.0.0.1", port), SPECIFIED, SPECIFIED)
        with pytest.raises(PreflightError, match=f"cannot reach 127.0.0.1:{port}.*server running"):
            asyncio.run(preflight(conditions))


def test_the_budget_follows_the_slowest_round_trip() -> None:
    """Twenty times the slowest answer, never less than the minimum."""
    axes = DialectAxes(("crc32c",), "json", 16, round_trip=0.001, write=0.2)
    assert axes.budget == pytest.approx(4.0)
    assert replace(axes, write=None).budget == MIN_BUDGET


def test_the_budget_can_be_stretched() -> None:
    """--timeout-scale multiplies what was measured."""
    conditions, axes = probe(sessions(Specified()), scale=3.0)
    assert conditions.budget == pytest.approx(axes.budget * 3)


def test_a_server_that_answers_nothing_but_lists() -> None:
    """A target that stops after the control probe is refused with the step that failed."""

    class OnlyLists(Specified):
        """Serves ListTopics and hangs up on everything else."""

        def encode(self, reply: Reply, /) -> bytes:
            return super().encode(reply) if reply.batch_id == 0x80 else b"X" * 44

    with pytest.raises(PreflightError, match=r"but not the next steps.*magic"):
        probe(sessions(OnlyLists()))
