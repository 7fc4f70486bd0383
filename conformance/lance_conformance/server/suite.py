"""LWP, the protocol of LANCE itself."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lance_conformance.dialect import PRESETS, Dialect
from lance_conformance.dump import Row
from lance_conformance.engine.conditions import Conditions
from lance_conformance.engine.registry import Case
from lance_conformance.engine.suite import PLAIN, PreflightResult, Proof, Suite
from lance_conformance.engine.transcript import Direction
from lance_conformance.server.anchor import begin_run, finish_run
from lance_conformance.server.cases import AREAS, all_cases
from lance_conformance.server.preflight import preflight
from lance_conformance.spec.clauses import Clause, clauses
from lance_conformance.wire.annotate import annotate, readable_payload, split_frames
from lance_conformance.wire.frame import HEADER_SIZE, Flag

SETTINGS = ("mtls", "tls", "token-write-only", "token-all", "restart", "second-target")
"""Ways in which a server is set up for cases that need them, the most particular first."""


class LwpFrameFormatter:
    """Frames of LWP.

    Args:
        dialect: The one the target was found to speak.
    """

    def __init__(self, dialect: Dialect) -> None:
        self._checksum = dialect.compute

    def frames(self, stream: bytes) -> list[bytes]:
        """Cut a stream where its headers say that frames end."""
        return split_frames(stream)

    def rows(self, frame: bytes, direction: Direction, fault: str | None) -> Iterable[Row]:
        """Annotate one frame; both directions have the same header."""
        del direction
        return annotate(frame, self._checksum, fault)

    def text(self, frame: bytes, direction: Direction) -> str | None:
        """What a control frame says in words."""
        del direction
        if len(frame) <= HEADER_SIZE or not frame[5] & Flag.CONTROL:
            return None
        return readable_payload(int.from_bytes(frame[12:20], "little"), frame[HEADER_SIZE:])


class Lwp(Suite):
    """The suite about LWP servers."""

    name = "lwp"
    title = "LWP"
    document = "the LWP document"
    port = 1992
    presets = PRESETS
    areas = AREAS
    ids = "lance_conformance.spec"
    axes = "lance_conformance.spec"
    matrix = "lance_conformance.server.mutants"

    def load_cases(self) -> Sequence[Case]:
        """Load the cases."""
        return all_cases()

    def setting(self, case: Case) -> str:
        """What a case needs at the door."""
        return next((name for name in SETTINGS if name in case.needs), PLAIN)

    def clauses(self) -> Mapping[str, Clause]:
        """The clauses of the LWP document."""
        return clauses()

    async def preflight(
        self, base: Conditions, timeout_scale: float = 1.0, **timeouts: float
    ) -> tuple[Conditions, PreflightResult]:
        """Find out which dialect is spoken."""
        return await preflight(base, timeout_scale, **timeouts)

    async def start(self, conditions: Conditions) -> None:
        """Let the target never be without a topic."""
        await begin_run(conditions)

    async def finish(self, conditions: Conditions) -> None:
        """Leave the target as it was, as far as it bears that."""
        await finish_run(conditions)

    def in_words(self, facts: Mapping[str, Any]) -> str:
        """Checksums, form of errors, header of a FetchResponse, and what else it can do."""
        able = ", ".join(facts.get("capabilities", ())) or "nothing beyond the document"
        return (
            f"serves {' and '.join(facts['checksums'])} · {facts['errors']} errors · "
            f"{facts['fetch_header']}-byte fetch header · can: {able}"
            + "".join(f" · no {name}" for name in facts.get("missing", ()))
        )

    def anatomy(self, dialect: Any) -> LwpFrameFormatter:
        """How frames are shown."""
        return LwpFrameFormatter(dialect)

    def proof(self) -> Proof:
        """The golden servers and the others."""
        from lance_conformance.server.mutants.proof import LwpProof  # noqa: PLC0415 - slow to load

        return LwpProof()
