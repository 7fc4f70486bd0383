"""Copying topics between systems: what ``lwp bridge`` does.

A system takes part through a module that `lance_sdk.bridge.endpoints` names: it opens a `Source`
and a `Target` for a URL. Between the two, records have the form that the log has.
"""

from lance_sdk.bridge.contract import (
    Envelope,
    Place,
    RecordsGoneError,
    Source,
    SourceChangedError,
    Target,
)
from lance_sdk.bridge.copying import Progress, check, copy
from lance_sdk.bridge.endpoints import Reading, Writing, open_source, open_target, partitions

__all__ = [
    "Envelope",
    "Place",
    "Progress",
    "Reading",
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
