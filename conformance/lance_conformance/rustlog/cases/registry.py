"""The list of cases about RustLog, filled by the modules of this package."""

from collections.abc import Mapping
from functools import cache

from lance_conformance.engine.registry import CaseRegistry
from lance_conformance.rustlog.case_context import CaseContext
from lance_conformance.rustlog.dialect import ANY
from lance_conformance.spec.clauses import Clause, read_clauses

AREAS: Mapping[str, str] = {
    "rl-frame": "Frames",
    "rl-flow": "Order and isolation",
    "rl-decode": "Broken requests",
    "rl-produce": "Produce",
    "rl-fetch": "Fetch",
    "rl-group": "Groups",
    "rl-topic": "Topics and metrics",
    "rl-text": "Words of errors",
    "rl-json": "JSON",
    "rl-tell": "Both forms",
}


@cache
def clauses() -> Mapping[str, Clause]:
    """The clauses of the specification and of the published broker, by key."""
    return read_clauses("lance_conformance.rustlog")


CASES: CaseRegistry[CaseContext] = CaseRegistry(CaseContext, AREAS, clauses, ANY)
case = CASES.case
