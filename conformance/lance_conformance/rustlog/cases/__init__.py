"""The questions about RustLog, one module for each part."""

from lance_conformance.rustlog.cases import (
    decoding,
    fetching,
    flow,
    frames,
    groups,
    jsons,
    producing,
    telling,
    texts,
    topics,
)
from lance_conformance.rustlog.cases.registry import CASES

MODULES = (frames, flow, decoding, producing, fetching, groups, topics, texts, jsons, telling)
"""Named so that importing this package fills the registry."""

__all__ = ["CASES"]
