"""Servers that are wrong in one way each: every question must be able to fail."""

from lance_conformance.fluvio.mutants import (
    admin,
    framing,
    offsets,
    produce,
    records,
    streams,
    watching,
)
from lance_conformance.fluvio.mutants.registry import MUTANTS, mutant

MODULES = (framing, watching, admin, produce, records, streams, offsets)
"""Named so that importing this package fills the registry."""
all_mutants = MUTANTS.registered

__all__ = ["all_mutants", "mutant"]
