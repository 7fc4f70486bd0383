"""The questions, one module for each part of the document."""

from functools import cache

from lance_conformance.server.cases import (
    log_restart,
    log_semantics,
    s03_header,
    s03_segmentation,
    s03_unfinished,
    s04_ingest,
    s04_keepalive,
    s04_refused,
    s05_commit,
    s05_control,
    s05_fetch,
    s05_fetch_edges,
    s05_names,
    s05_payloads,
    s05_push,
    s05_retention,
    s05_spelling,
    s05_subscribe,
    s05_time,
    s05_topics,
    s06_topic_life,
    s07_tls,
    s09_checksum,
    s10_order,
    s10_pipelines,
    s12_errors,
    s13_crowd,
    s16_cluster,
    s16_groups,
    s16_status,
    s28_guarded,
    s28_tokens,
    s99_fuzz,
    tables,
)
from lance_conformance.server.cases.registry import AREAS, QUESTIONS, Case
from lance_conformance.server.cases.variation import (
    amount,
    interleaving,
    number,
    position,
    repetition,
    size,
    waiting,
    width,
)

MODULES = (
    s09_checksum,
    s03_header,
    s03_segmentation,
    s03_unfinished,
    s04_keepalive,
    s04_ingest,
    s04_refused,
    s05_topics,
    s05_names,
    s05_control,
    s05_fetch,
    s10_order,
    s10_pipelines,
    s99_fuzz,
    tables,
    s06_topic_life,
    s05_spelling,
    s05_payloads,
    s05_retention,
    s05_fetch_edges,
    s05_subscribe,
    s05_push,
    s05_commit,
    s05_time,
    s12_errors,
    log_semantics,
    log_restart,
    s16_groups,
    s16_status,
    s16_cluster,
    s28_tokens,
    s28_guarded,
    s07_tls,
    s13_crowd,
    position,
    size,
    width,
    number,
    repetition,
    interleaving,
    waiting,
    amount,
)
"""Named so that importing this package fills the registry."""

__all__ = ["AREAS", "Case", "all_cases", "all_ids"]


@cache
def all_cases() -> tuple[Case, ...]:
    """Every case, area by area."""
    return QUESTIONS.in_order()


@cache
def all_ids() -> frozenset[str]:
    """The ids of all cases."""
    return frozenset(case.id for case in all_cases())
