"""Servers that are wrong in one way each: every question must be able to fail."""

from lance_conformance.server.mutants import (
    batches,
    clustering,
    committing,
    compression,
    doors,
    fetching,
    framing,
    grouping,
    headers,
    ingest,
    naming,
    node,
    operators,
    pipelines,
    pushing,
    random_faults,
    records,
    refusing,
    restarting,
    retention,
    sizes,
    subscribing,
    tokens,
    topics,
)
from lance_conformance.server.mutants.registry import Mutant, all_mutants

MODULES = (
    random_faults,
    pipelines,
    batches,
    compression,
    framing,
    headers,
    ingest,
    records,
    topics,
    fetching,
    node,
    sizes,
    subscribing,
    pushing,
    committing,
    refusing,
    naming,
    retention,
    tokens,
    doors,
    restarting,
    clustering,
    grouping,
    operators,
)
"""Named so that importing this package fills the registry."""

__all__ = ["Mutant", "all_mutants"]
