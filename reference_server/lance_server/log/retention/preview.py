"""A preview of what retention would drop at this moment."""

from typing import Any

from lance_server.errors import ConfigError
from lance_server.log.log_manager import LogManager
from lance_server.log.metadata.topic_file import Retention


def retention_plan(
    engine: LogManager, name: str | None = None, retention: Retention | None = None
) -> dict[str, Any]:
    """Return the segments that retention does not keep, oldest first, topic by topic.

    Nothing is changed.

    Args:
        engine: the topics.
        name: of the only topic to look at; None for all.
        retention: what to go by instead of what the topics have.

    Returns:
        ``segments``, each with ``topic``, ``topic_id``, ``segment``, ``bytes`` and ``records``;
        and ``doubt``: why nothing is dropped by age at the moment, or None (AMB-58).

    Raises:
        ConfigError: there is no topic of the name.
    """
    topics = engine.topics_with_default()
    if name is not None:
        topics = [topic for topic in topics if topic.file.identity.name == name]
        if not topics:
            raise ConfigError(f"there is no topic named '{name}'")
    segments = [
        {
            "topic": topic.file.identity.name,
            "topic_id": topic.id,
            "segment": segment.name.data,
            "bytes": segment.size,
            "records": segment.records,
        }
        for topic in topics
        for segment in engine.upkeep.retention.plan(topic, retention)
    ]
    return {"doubt": engine.expiry.doubt, "segments": segments}
