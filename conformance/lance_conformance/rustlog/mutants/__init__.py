"""RustLog servers that are wrong in one way each, so that every question can fail."""

from lance_conformance.rustlog.mutants import (
    binary,
    decoding,
    framing,
    jsons,
    keeping,
    words,
)
from lance_conformance.rustlog.mutants.registry import MUTANTS

MODULES = (framing, decoding, keeping, binary, words, jsons)
"""Named so that importing this package fills the registry."""

__all__ = ["MUTANTS"]
