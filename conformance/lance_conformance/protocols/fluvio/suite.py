"""Fluvio, as the kit's runs, reports and self-test see it."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from lance_conformance.peer.conditions import Conditions
from lance_conformance.protocols.fluvio.anatomy import FluvioAnatomy
from lance_conformance.protocols.fluvio.cases import all_cases
from lance_conformance.protocols.fluvio.cases.registry import AREAS
from lance_conformance.protocols.fluvio.clauses import clauses
from lance_conformance.protocols.fluvio.dialogue import DIALECT, Cluster
from lance_conformance.protocols.fluvio.preflight import preflight
from lance_conformance.protocols.questions import Case
from lance_conformance.protocols.suite import Found, Proof, Suite
from lance_conformance.spec.clauses import Clause


class Fluvio(Suite):
    """The suite about servers for Fluvio's clients."""

    name = "fluvio"
    title = "Fluvio"
    document = "Fluvio's protocol as its programs speak it"
    port = 9003
    presets: ClassVar[Mapping[str, Any]] = {DIALECT: Cluster()}
    areas = AREAS
    ids = "lance_conformance.protocols.fluvio"
    matrix = "lance_conformance.protocols.fluvio.mutants"

    def questions(self) -> Sequence[Case]:
        """Load the cases."""
        return all_cases()

    def clauses(self) -> Mapping[str, Clause]:
        """The clauses by key."""
        return clauses()

    async def preflight(
        self, base: Conditions, timeout_scale: float = 1.0, **patience: float
    ) -> tuple[Conditions, Found]:
        """Find the SPU."""
        return await preflight(base, timeout_scale, **patience)

    def in_words(self, facts: Mapping[str, Any]) -> str:
        """Version and SPU."""
        host, port = facts["spu"]
        return f"platform {facts['platform']} · SPU at {host}:{port}"

    def anatomy(self, dialect: Any) -> FluvioAnatomy:
        """How frames are shown."""
        del dialect
        return FluvioAnatomy()

    def proof(self) -> Proof:
        """The golden servers and the others."""
        from lance_conformance.protocols.fluvio.mutants.proof import (  # noqa: PLC0415 - slow
            FluvioProof,
        )

        return FluvioProof()
