"""The questions, one module for each part of the protocol."""

from functools import cache

from lance_conformance.engine.registry import Case
from lance_conformance.fluvio.cases import (
    admin,
    batches,
    commits,
    content,
    framing,
    offsets,
    produce,
    readers,
    refused,
    streams,
    versions,
    watching,
)
from lance_conformance.fluvio.cases.registry import CASES

MODULES = (
    framing,
    versions,
    watching,
    admin,
    produce,
    readers,
    refused,
    batches,
    offsets,
    streams,
    readers,
    commits,
    content,
)
"""Named so that importing this package fills the registry."""


@cache
def all_cases() -> tuple[Case, ...]:
    """Every case, area by area."""
    return CASES.in_order()
