"""RustLog, in the binary form of its programs and in the JSON of its specification."""

from collections.abc import Mapping, Sequence
from typing import Any

from lance_conformance.engine.conditions import Conditions
from lance_conformance.engine.registry import Case
from lance_conformance.engine.suite import PreflightResult, Proof, Suite
from lance_conformance.rustlog.cases import CASES
from lance_conformance.rustlog.cases.registry import clauses
from lance_conformance.rustlog.dialect import PRESETS
from lance_conformance.rustlog.preflight import preflight
from lance_conformance.rustlog.wire.annotate import FrameFormatter
from lance_conformance.spec.clauses import Clause


class Rustlog(Suite):
    """The suite about RustLog servers."""

    name = "rustlog"
    title = "RustLog"
    document = "the RustLog specification (broker: of its published programs)"
    port = 9092
    presets = PRESETS
    areas = CASES.areas
    ids = "lance_conformance.rustlog"
    matrix = "lance_conformance.rustlog.mutants"

    def load_cases(self) -> Sequence[Case]:
        """Load the cases."""
        return CASES.in_order()

    def clauses(self) -> Mapping[str, Clause]:
        """The clauses of the specification and of the published broker."""
        return clauses()

    async def preflight(
        self, base: Conditions, timeout_scale: float = 1.0, **timeouts: float
    ) -> tuple[Conditions, PreflightResult]:
        """Find out which forms are spoken."""
        return await preflight(base, timeout_scale, **timeouts)

    def in_words(self, facts: Mapping[str, Any]) -> str:
        """The forms."""
        return f"answers {' and '.join(facts['forms'])}"

    def anatomy(self, dialect: Any) -> FrameFormatter:
        """How frames are shown; both forms can be told apart."""
        del dialect
        return FrameFormatter()

    def proof(self) -> Proof:
        """The golden servers and the others."""
        from lance_conformance.rustlog.mutants.proof import (  # noqa: PLC0415 - slow
            RustlogProof,
        )

        return RustlogProof()
