"""The list of cases, filled by the modules of this package."""

from collections.abc import Mapping

from lance_conformance.engine.registry import CaseRegistry
from lance_conformance.fluvio.case_context import DIALECT, CaseContext
from lance_conformance.fluvio.clauses import clauses

AREAS: Mapping[str, str] = {
    "fl-frame": "Frames and headers",
    "fl-version": "Versions",
    "fl-watch": "Watches",
    "fl-topic": "Topics",
    "fl-produce": "Produce",
    "fl-batch": "Batches",
    "fl-offset": "Offsets",
    "fl-stream": "Streams",
    "fl-commit": "Consumer offsets",
    "fl-record": "Records",
}
CASES: CaseRegistry[CaseContext] = CaseRegistry(CaseContext, AREAS, clauses, (DIALECT,))
case = CASES.case
