"""The clauses that cases rest on, read from the files of ``clauses/``."""

from collections.abc import Mapping
from functools import cache

from lance_conformance.spec.clauses import Clause, read_clauses


@cache
def clauses() -> Mapping[str, Clause]:
    """All clauses by key."""
    return read_clauses("lance_conformance.fluvio")
