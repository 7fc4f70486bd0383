"""Servers that are wrong about retention."""

from lance_conformance.server.golden.specified import Specified
from lance_conformance.server.golden.state import Body, Refused, Topic
from lance_conformance.server.mutants.registry import golden, mutant


@mutant(Specified.create_size_ok)
def fails_at_short_creations(_server: Specified, size: int, /) -> bool:
    """A CreateTopicWithRetention that is too short is an internal error."""
    if size < 18:
        raise Refused(0x60, "oops")
    return True


@mutant(Specified.create_size_ok)
def takes_nothing_for_an_empty_name(server: Specified, size: int, /) -> bool:
    """A CreateTopicWithRetention without a payload lacks a name, not all of it."""
    if not size:
        raise Refused(0x12, "Topic name required")
    return golden(server).create_size_ok(size)


@mutant(Specified.create_size_ok, only="deployed")
def fills_up_short_creations(_server: Specified, _size: int, /) -> bool:
    """A CreateTopicWithRetention that is too short is judged by what is there."""
    return True


@mutant(Specified.limits_ok, only="specified")
def ignores_trailing_bytes_of_limits(_server: Specified, payload: bytes, end: int, /) -> bool:
    """Bytes after the limits of CreateTopicWithRetention are ignored."""
    return len(payload) >= end + 16


@mutant(Specified.limits_ok)
def fills_up_the_last_limit(server: Specified, payload: bytes, end: int, /) -> bool:
    """A byte that is missing from the last limit is taken for zero."""
    return len(payload) == end + 15 or golden(server).limits_ok(payload, end)


@mutant(Specified.limits_ok, only="deployed")
def demands_the_exact_size_of_limits(_server: Specified, payload: bytes, end: int, /) -> bool:
    """Bytes after the limits are refused, which the published server does not do."""
    return len(payload) == end + 16


@mutant(Specified.set_size_ok, only="specified")
def ignores_trailing_bytes_of_set_retention(_server: Specified, size: int, /) -> bool:
    """Bytes after SetRetention are ignored."""
    return size >= 20


@mutant(Specified.limits_kept)
def takes_limits_for_floats(server: Specified, topic: Topic, limits: tuple[int, int], /) -> None:
    """Limits pass through floating point."""
    age, size = (int(float(limit)) for limit in limits)
    golden(server).limits_kept(topic, (age, size))


@mutant(Specified.limits_kept)
def deletes_everything_at_0(server: Specified, topic: Topic, limits: tuple[int, int], /) -> None:
    """A limit of 0 bytes leaves room for none."""
    golden(server).limits_kept(topic, limits)
    if limits[1] == 0:
        topic.log = b""


@mutant(Specified.limits_kept)
def begins_anew_with_new_limits(
    server: Specified, topic: Topic, limits: tuple[int, int], /
) -> None:
    """New limits are those of a new log."""
    golden(server).limits_kept(topic, limits)
    topic.log = b""


@mutant(Specified.limits_kept)
def keeps_the_first_limits(server: Specified, topic: Topic, limits: tuple[int, int], /) -> None:
    """Limits are set once."""
    golden(server).limits_kept(topic, topic.limits or limits)


@mutant(Specified.limits_kept)
def stores_nothing_without_a_limit(
    server: Specified, topic: Topic, limits: tuple[int, int], /
) -> None:
    """A topic that is created without limits takes no records."""
    golden(server).limits_kept(topic, limits)
    if limits == (0, 0):
        server.memory.topics.pop(topic.id, None)


@mutant(Specified.limited_body)
def creates_limited_topics_under_another_id(server: Specified, topic: Topic, /) -> Body:
    """CreateTopicWithRetention answers with an id that is one too high."""
    return {**golden(server).limited_body(topic), "id": topic.id + 1}


@mutant(Specified.limited_body)
def creates_limited_topics_that_are_full(server: Specified, topic: Topic, /) -> Body:
    """A topic that is created with retention takes no records."""
    del server.memory.topics[topic.id]
    return golden(server).limited_body(topic)


@mutant(Specified.find_to_limit)
def limits_deleted_topics(server: Specified, topic_id: int, /) -> Topic:
    """SetRetention succeeds for topics that were deleted."""
    if topic_id in server.memory.deleted:
        return Topic(topic_id, "")
    return golden(server).find_to_limit(topic_id)
