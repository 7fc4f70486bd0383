"""How far a streaming query is behind the ends of its topics, out of what Spark reports.

::

    for topic, behind in lag(query.lastProgress).items():
        print(topic, behind.bytes, behind.records, behind.seconds)

`lance_sdk.spark.lag_listener.LagListener` follows the queries of a session.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lance_sdk.spark.errors import CheckpointError
from lance_sdk.spark.streaming.checkpoint import LAG, TopicCheckpoint, decode_checkpoint

__all__ = ["Lag", "lag", "lag_bytes"]


@dataclass(frozen=True, slots=True)
class Lag:
    """How far a query is behind the end of a topic.

    Attributes:
        bytes: from the end of its micro-batch to the end of the topic then.
        records: how many those are: counted in files, by their mean size at a server. None where
            that is not known.
        seconds: how long ago the first of them was stored, by the clock of the driver. None where
            that is not known, as from a server that knows no times.
    """

    bytes: int
    records: int | None = None
    seconds: float | None = None


def lag(progress: Mapping[str, Any] | Any) -> dict[str, Lag]:
    """Return how far a streaming query is behind, by topic.

    Of a topic that two sources of a query read, the one that is further behind counts.

    Args:
        progress: of a streaming query: ``query.lastProgress``, one of ``query.recentProgress``,
            or ``event.progress`` of a listener; also as the dictionary of its JSON.

    Returns:
        Lags by topic; nothing of sources of other formats, and of those that have not looked yet.
    """
    found: dict[str, Lag] = {}
    for source in _of(progress, "sources"):
        ends, reached = _offsets(_of(source, "latestOffset")), _offsets(_of(source, "endOffset"))
        for topic, end in ends.items():
            behind = _told(end) or Lag(max(0, end.offset - _start(reached.get(topic))))
            if topic not in found or behind.bytes > found[topic].bytes:
                found[topic] = behind
    return found


def lag_bytes(progress: Mapping[str, Any] | Any) -> dict[str, int]:
    """Return the bytes between where a micro-batch ends and where each topic ended then.

    Args:
        progress: see `lag`.

    Returns:
        Bytes by topic.
    """
    return {topic: behind.bytes for topic, behind in lag(progress).items()}


def _of(body: Any, name: str) -> Any:
    return body[name] if isinstance(body, Mapping) else getattr(body, name)


def _offsets(said: Any) -> dict[str, TopicCheckpoint]:
    """Return places by topic; none where they are not those of the format ``lwp``."""
    try:
        return decode_checkpoint(json.loads(said) if isinstance(said, str) else said)
    except (ValueError, CheckpointError):
        return {}


def _told(end: TopicCheckpoint) -> Lag | None:
    """Return the lag as the source has told it; None of a query of an earlier version."""
    told = end.rest.get(LAG)
    if not isinstance(told, Mapping):
        return None
    return Lag(told["bytes"], told.get("records"), told.get("seconds"))


def _start(reached: TopicCheckpoint | None) -> int:
    return 0 if reached is None else reached.offset
