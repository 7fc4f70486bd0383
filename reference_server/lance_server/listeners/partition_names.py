"""Partitions of other protocols as topics of the log.

A partitioned topic is one with its partitions (AMB-59). Of any other, partition 0 is the log's
topic of that name; partition *n* is the log's topic ``name.n``, as the first release made them.
"""

from collections.abc import Mapping

from lance_server.log.log_manager import LogManager, Topic

_MOST_DIGITS = 9


def part_name(topic: str, index: int) -> str:
    """Return the name of the log's topic that a partition without a description is."""
    return f"{topic}.{index}" if index else topic


def shown_topics(engine: LogManager) -> dict[str, tuple[Topic, ...]]:
    """Return the log's topic of each partition of all topics, by the names that clients see."""
    by_name = {each.file.identity.name: each for each in engine.topics() if each.part is None}
    shown = {
        name: _parts_of(name, by_name) for name in by_name if not _is_later_part(name, by_name)
    }
    for name in engine.partitioned.names():
        if parts := tuple(engine.partitioned.topics_of(name)):
            shown[name] = parts
    return shown


def shown_partition(engine: LogManager, topic: str, index: int) -> Topic | None:
    """Return the log's topic of a partition, or None."""
    described = engine.partitioned.named(topic)
    if described is None:
        found = engine.topic_named(part_name(topic, index))
        return None if found is None or found.part is not None else found
    if not 0 <= index < len(described.topic_ids):
        return None
    return engine.find(described.topic_ids[index])


def _parts_of(name: str, by_name: Mapping[str, Topic]) -> tuple[Topic, ...]:
    found = [by_name[name]]
    while (following := by_name.get(part_name(name, len(found)))) is not None:
        found.append(following)
    return tuple(found)


def _is_later_part(name: str, by_name: Mapping[str, Topic]) -> bool:
    """Whether a topic of the log is a later partition of another."""
    base, dot, index = name.rpartition(".")
    if not (dot and index.isascii() and index.isdecimal() and index.lstrip("0") == index):
        return False
    return all(part_name(base, each) in by_name for each in range(int(index[:_MOST_DIGITS])))
