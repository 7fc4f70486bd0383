"""Servers that are wrong in one way each: every question must be able to fail."""

from lance_conformance.mutants import fetching, framing, ingest, topics
from lance_conformance.mutants.registry import Mutant, all_mutants

MODULES = (framing, ingest, topics, fetching)
"""Named so that importing this package fills the registry."""

__all__ = ["Mutant", "all_mutants"]
