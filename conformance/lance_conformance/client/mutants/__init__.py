"""Clients that are wrong in exactly one way, and clients that are none."""

from lance_conformance.client.mutants import (
    deciding,
    edges,
    following,
    framing,
    operators,
    outgoing,
    reading,
    requests,
    responses,
    sometimes,
    unread,
)
from lance_conformance.client.mutants.registry import all_mutants

__all__ = [
    "all_mutants", "deciding", "edges", "following", "framing", "operators", "outgoing", "reading",
    "requests", "responses", "sometimes", "unread",
]  # fmt: skip
