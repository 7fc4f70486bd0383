"""Servers that are wrong in one way each: every question must be able to fail."""

from lance_conformance.server.mutants.batches import batches, ingest, records, refusing
from lance_conformance.server.mutants.combined import (
    beside,
    elsewhere,
    far,
    filling,
    history,
    retrying,
    telling,
    unpacking,
)
from lance_conformance.server.mutants.consumers import committing, fetching, pushing, subscribing
from lance_conformance.server.mutants.frames import (
    compression,
    framing,
    headers,
    pipelines,
    random_faults,
    sizes,
)
from lance_conformance.server.mutants.node import (
    clustering,
    grouping,
    node,
    restarting,
    timing,
    tls_and_load,
    tokens,
)
from lance_conformance.server.mutants.operators import (
    amount,
    combination,
    interleaving,
    kinds,
    number,
    omission,
    position,
    repetition,
    turns,
    waiting,
    width,
)
from lance_conformance.server.mutants.registry import Mutant, all_mutants
from lance_conformance.server.mutants.topics import (
    anything,
    naming,
    partitioning,
    retention,
    topics,
)

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
    tls_and_load,
    restarting,
    clustering,
    grouping,
    partitioning,
    anything,
    combination,
    omission,
    position,
    width,
    number,
    repetition,
    interleaving,
    waiting,
    amount,
    kinds,
    turns,
    history,
    far,
    retrying,
    filling,
    telling,
    unpacking,
    beside,
    elsewhere,
    timing,
)
"""Named so that importing this package fills the registry."""

__all__ = ["Mutant", "all_mutants"]
