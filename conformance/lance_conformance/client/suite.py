"""Client mode as a suite, so that runs, reports and the self-test treat it like any protocol."""

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from lance_conformance.client.cases import (
    acks,
    admin,
    codes,
    disconnect,
    header,
    keepalive,
    misc,
    push,
    reads,
    records,
    segmentation,
)
from lance_conformance.client.cases.registry import AREAS, CASES, client_clauses
from lance_conformance.client.cases.variation import (
    amounts,
    connections,
    errors,
    exchanges,
    faults,
    flight,
    following,
    interleaving,
    kinds,
    oddities,
    repetition,
    unread,
    waiting,
    widths,
)
from lance_conformance.client.inprocess import client_of
from lance_conformance.client.preflight import preflight
from lance_conformance.client.process import client_started_by
from lance_conformance.client.target import ClientTarget
from lance_conformance.dialect import PRESETS
from lance_conformance.engine.conditions import Conditions, Target
from lance_conformance.engine.registry import Case
from lance_conformance.engine.suite import PreflightResult, Proof, Suite
from lance_conformance.server.suite import LwpFrameFormatter
from lance_conformance.spec.clauses import Clause

MODULES = (
    header, segmentation, keepalive, acks, records, admin, reads, push, codes, disconnect, misc,
    amounts, interleaving, waiting, kinds, widths, repetition, faults, flight, errors, following,
    oddities, unread, exchanges, connections,
)  # fmt: skip
"""Named so that importing this module fills the registry."""


class LwpClients(Suite):
    """The suite about LWP clients."""

    by_hand = False
    name = "lwp-client"
    title = "LWP clients"
    document = "the LWP document"
    port = 0
    presets = PRESETS
    areas = AREAS
    ids = "lance_conformance.client"
    axes = "lance_conformance.client"
    matrix = "lance_conformance.client.mutants"

    def load_cases(self) -> Sequence[Case]:
        """Load the cases."""
        return CASES.in_order()

    def clauses(self) -> Mapping[str, Clause]:
        """What the LWP document asks of a client."""
        return client_clauses()

    async def preflight(
        self, base: Conditions, timeout_scale: float = 1.0, **timeouts: float
    ) -> tuple[Conditions, PreflightResult]:
        """Find out what the client can do."""
        return await preflight(base, timeout_scale, **timeouts)

    def target(self, text: str) -> ClientTarget:
        """A run file names the command that starts a driver."""
        return client_started_by(text)

    def command(self, target: Target) -> str:
        """Clients have a command of their own."""
        return f"client --exec {shlex.quote(str(target))}"

    async def leave(self, target: Target) -> None:
        """End the drivers."""
        await client_of(target).drivers.end()

    def in_words(self, facts: Mapping[str, Any]) -> str:
        """Dialects and operations."""
        missing = f" · no {', '.join(facts['missing'])}" if facts["missing"] else ""
        return f"speaks {' and '.join(facts['dialects'])}{missing}"

    def anatomy(self, dialect: Any) -> LwpFrameFormatter:
        """How frames are shown."""
        return LwpFrameFormatter(dialect)

    def proof(self) -> Proof:
        """The golden client and the others."""
        from lance_conformance.client.mutants.proof import (  # noqa: PLC0415 - slow to load
            ClientProof,
        )

        return ClientProof()
