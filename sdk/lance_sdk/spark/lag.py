"""How far a streaming query is behind the ends of its topics, out of what Spark reports.

::

    for topic, size in lag_bytes(query.lastProgress).items():
        print(topic, size)

A `StreamingQueryListener` has the same in ``event.progress``.
"""

import json
from collections.abc import Mapping
from typing import Any

from lance_sdk.spark.checkpoint import decode_checkpoint
from lance_sdk.spark.errors import CheckpointError

__all__ = ["lag_bytes"]


def lag_bytes(progress: Mapping[str, Any] | Any) -> dict[str, int]:
    """Return the bytes between where a micro-batch ends and where each topic ended then.

    A topic that was not read from yet counts from offset 0. One that two sources of a query read
    has the lag of the one that is further behind.

    Args:
        progress: of a streaming query: ``query.lastProgress``, one of ``query.recentProgress``,
            or ``event.progress`` of a listener; also as the dictionary of its JSON.

    Returns:
        Bytes by topic; nothing of sources of other formats, and of those that have not looked yet.
    """
    found: dict[str, int] = {}
    for source in _of(progress, "sources"):
        ends, reached = _offsets(_of(source, "latestOffset")), _offsets(_of(source, "endOffset"))
        for topic, end in ends.items():
            behind = max(0, end - reached.get(topic, 0))
            found[topic] = max(behind, found.get(topic, 0))
    return found


def _of(body: Any, name: str) -> Any:
    return body[name] if isinstance(body, Mapping) else getattr(body, name)


def _offsets(said: Any) -> dict[str, int]:
    """Return offsets by topic; none where they are not those of the format ``lwp``."""
    try:
        body = json.loads(said) if isinstance(said, str) else said
        return {name: each.offset for name, each in decode_checkpoint(body).items()}
    except (ValueError, CheckpointError):
        return {}
