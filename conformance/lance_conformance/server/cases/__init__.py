"""The cases, in folders by subject."""

from functools import cache

from lance_conformance.server.cases import tables
from lance_conformance.server.cases.batches import (
    ingest,
    log_restart,
    log_semantics,
    payloads,
    refused,
)
from lance_conformance.server.cases.combined import (
    beside,
    elsewhere,
    far,
    headers,
    history,
    many,
    remembering,
    retries,
    told,
    unknown,
)
from lance_conformance.server.cases.consumers import (
    batch_times,
    commit,
    fetch,
    fetch_edges,
    offset_for_time,
    push,
    subscribe,
)
from lance_conformance.server.cases.frames import (
    checksum,
    fuzz,
    header,
    keepalive,
    order,
    pipelines,
    segmentation,
    unfinished,
)
from lance_conformance.server.cases.model import walks
from lance_conformance.server.cases.node import (
    cluster,
    crowd,
    errors,
    groups,
    guarded,
    status,
    tls,
    tokens,
)
from lance_conformance.server.cases.registry import AREAS, CASES, Case
from lance_conformance.server.cases.topics import (
    control,
    names,
    partitions,
    retention,
    spelling,
    topic_life,
    topics,
)
from lance_conformance.server.cases.variation import (
    amount,
    answers,
    combination,
    commands,
    compressed,
    interleaving,
    lasting,
    number,
    overtaking,
    position,
    repetition,
    size,
    turns,
    waiting,
    width,
)

MODULES = (
    checksum,
    header,
    segmentation,
    unfinished,
    keepalive,
    ingest,
    refused,
    topics,
    names,
    control,
    fetch,
    order,
    pipelines,
    fuzz,
    tables,
    topic_life,
    spelling,
    payloads,
    retention,
    fetch_edges,
    subscribe,
    push,
    commit,
    offset_for_time,
    batch_times,
    errors,
    log_semantics,
    log_restart,
    partitions,
    groups,
    status,
    cluster,
    tokens,
    guarded,
    tls,
    crowd,
    position,
    size,
    width,
    number,
    repetition,
    interleaving,
    waiting,
    amount,
    commands,
    answers,
    turns,
    lasting,
    overtaking,
    combination,
    compressed,
    history,
    unknown,
    headers,
    retries,
    told,
    many,
    beside,
    elsewhere,
    far,
    remembering,
    walks,
)
"""Named so that importing this package fills the registry."""

__all__ = ["AREAS", "Case", "all_cases", "all_ids"]


@cache
def all_cases() -> tuple[Case, ...]:
    """Every case, area by area."""
    return CASES.in_order()


@cache
def all_ids() -> frozenset[str]:
    """The ids of all cases."""
    return frozenset(case.id for case in all_cases())
