"""Partitions of other protocols as topics of the log.

Partition 0 of a topic is the log's topic of that name; partition *n* is the log's topic
``name.n``.
"""

from collections.abc import Mapping

from lance_server.log.engine import Topic

_MOST_DIGITS = 9


def part_name(topic: str, index: int) -> str:
    """Return the name of the log's topic that a partition is."""
    return f"{topic}.{index}" if index else topic


def parts_of(name: str, by_name: Mapping[str, Topic]) -> tuple[Topic, ...]:
    """Return the log's topic of each partition of a topic that is there."""
    found = [by_name[name]]
    while (following := by_name.get(part_name(name, len(found)))) is not None:
        found.append(following)
    return tuple(found)


def is_later_part(name: str, by_name: Mapping[str, Topic]) -> bool:
    """Whether a topic of the log is a later partition of another."""
    base, dot, index = name.rpartition(".")
    if not (dot and index.isascii() and index.isdecimal() and index.lstrip("0") == index):
        return False
    return all(part_name(base, each) in by_name for each in range(int(index[:_MOST_DIGITS])))
