"""Fluvio, as the kit's runs, reports and self-test see it."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from lance_conformance.engine.conditions import Conditions
from lance_conformance.engine.failures import Failure
from lance_conformance.engine.registry import Case
from lance_conformance.engine.suite import PreflightResult, Proof, Suite
from lance_conformance.fluvio.case_context import DIALECT, CaseContext, FluvioDialect
from lance_conformance.fluvio.cases import all_cases
from lance_conformance.fluvio.cases.registry import AREAS
from lance_conformance.fluvio.clauses import clauses
from lance_conformance.fluvio.frame_formatter import FluvioFrameFormatter
from lance_conformance.fluvio.preflight import preflight
from lance_conformance.spec.clauses import Clause

_FINISH = 60.0
"""Seconds that removing what cases have left may take."""


class Fluvio(Suite):
    """The suite about servers for Fluvio's clients."""

    name = "fluvio"
    title = "Fluvio"
    document = "Fluvio's protocol as its programs speak it"
    port = 9003
    presets: ClassVar[Mapping[str, Any]] = {DIALECT: FluvioDialect()}
    areas = AREAS
    ids = "lance_conformance.fluvio"
    matrix = "lance_conformance.fluvio.mutants"

    def load_cases(self) -> Sequence[Case]:
        """Load the cases."""
        return all_cases()

    def clauses(self) -> Mapping[str, Clause]:
        """The clauses by key."""
        return clauses()

    async def preflight(
        self, base: Conditions, timeout_scale: float = 1.0, **timeouts: float
    ) -> tuple[Conditions, PreflightResult]:
        """Find the SPU."""
        return await preflight(base, timeout_scale, **timeouts)

    async def finish(self, conditions: Conditions) -> None:
        """Delete the topics that cases have left."""
        context = CaseContext(conditions, "kit/finish", conditions.budget)
        left: list[str] = conditions.dialect.left
        context.time.restart(_FINISH)
        try:
            if left:
                await context.remove(await context.open("sc"), left)
        except (OSError, Failure):
            pass  # as in a case's teardown
        finally:
            context.hang_up()

    def in_words(self, facts: Mapping[str, Any]) -> str:
        """Version and SPU."""
        host, port = facts["spu"]
        return f"platform {facts['platform']} · SPU at {host}:{port}"

    def anatomy(self, dialect: Any) -> FluvioFrameFormatter:
        """How frames are shown."""
        del dialect
        return FluvioFrameFormatter()

    def proof(self) -> Proof:
        """The golden servers and the others."""
        from lance_conformance.fluvio.mutants.proof import (  # noqa: PLC0415 - slow
            FluvioProof,
        )

        return FluvioProof()
