"""How and from where a fetcher fetches."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

Start: TypeAlias = int | Literal["beginning", "end"]
"""A place in a log: a byte offset, its beginning or its end."""


@dataclass(frozen=True, slots=True)
class FetchSettings:
    """Settings of a fetcher, as in `lance_sdk.config.ConsumerConfig`."""

    label: str
    topic_id: int
    stop_at_end: bool
    max_fetch_bytes: int
    prefetch_bytes: int
    poll_interval: float
    reset_on_truncation: bool
