"""Copying topics between systems: what ``lwp bridge`` does.

A system takes part through a module that `lance_sdk.bridge.endpoints` names: it opens a `Source`
and a `Target` for a URL. Between the two, records have the form that the log has.
"""

from lance_sdk.bridge.contract import (
    ComparedTarget,
    CopyPosition,
    Envelope,
    RecordsGoneError,
    Source,
    SourceChangedError,
    Target,
)
from lance_sdk.bridge.copying import CopyProgress, check, copy
from lance_sdk.bridge.endpoints import ReadOptions, Writing, open_source, open_target, partitions

__all__ = [
    "ComparedTarget",
    "CopyPosition",
    "CopyProgress",
    "Envelope",
    "ReadOptions",
    "RecordsGoneError",
    "Source",
    "SourceChangedError",
    "Target",
    "Writing",
    "check",
    "copy",
    "open_source",
    "open_target",
    "partitions",
]
