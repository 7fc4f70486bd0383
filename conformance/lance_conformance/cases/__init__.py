"""The questions, one module for each part of the document."""

from functools import cache

from lance_conformance.cases import (
    s03_header,
    s03_segmentation,
    s04_ingest,
    s04_keepalive,
    s04_refused,
    s05_control,
    s05_fetch,
    s05_names,
    s05_topics,
    s09_checksum,
    s10_order,
)
from lance_conformance.cases.registry import AREAS, Case, registered

MODULES = (
    s09_checksum,
    s03_header,
    s03_segmentation,
    s04_keepalive,
    s04_ingest,
    s04_refused,
    s05_topics,
    s05_names,
    s05_control,
    s05_fetch,
    s10_order,
)
"""Named so that importing this package fills the registry."""

__all__ = ["AREAS", "Case", "all_cases"]


@cache
def all_cases() -> tuple[Case, ...]:
    """Every case, area by area."""
    order = list(AREAS)
    return tuple(sorted(registered().values(), key=lambda case: order.index(case.area)))
