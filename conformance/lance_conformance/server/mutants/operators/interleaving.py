"""Servers that mix up connections, topics or producers."""

from collections.abc import Sequence

from lance_conformance.server.golden.codec import Wire
from lance_conformance.server.golden.specified import Specified
from lance_conformance.server.golden.state import Body, Connection, Replies, Topic
from lance_conformance.server.mutants.operators.common import (
    register,
)
from lance_conformance.server.mutants.registry import golden


def _equal_length(server: Specified, connection: Connection, frame: Wire, /) -> str:
    time, payload = server.memory.batches.get((frame.topic, frame.batch_id), (None, b""))
    if time == frame.timestamp and len(payload) == len(frame.payload):
        return "again"
    return golden(server).seen(connection, frame)


def _any_topic(server: Specified, connection: Connection, frame: Wire, /) -> str:
    batches = server.memory.batches
    known = [kept for (_, batch_id), kept in batches.items() if batch_id == frame.batch_id]
    if (frame.timestamp, frame.payload) in known:
        return "again"
    return golden(server).seen(connection, frame)


def _any_producer(server: Specified, connection: Connection, frame: Wire, /) -> str:
    known = (frame.topic, frame.batch_id) in server.memory.batches
    mine = (frame.topic, frame.batch_id) in connection.batches
    return "again" if known and not mine else golden(server).seen(connection, frame)


def _one_behind(server: Specified, topic: Topic, /) -> bytes:
    """A connection does not see the last batch of another one."""
    log = golden(server).readable(topic)
    mine = (payload for _, payload in server.memory.speaker.batches.values())
    seen = not topic.arrivals or any(log.endswith(payload) for payload in mine)
    return log if seen else log[: topic.arrivals[-1][1]]


def _notes_writer(server: Specified, topic: Topic, payload: bytes, /) -> bytes:
    """The records of the connection that wrote last stand before those of the others."""
    before = server.memory.kept.get(("last", topic.id))
    server.memory.kept["last", topic.id] = (server.memory.speaker, len(payload))
    if before is None or before[0] is server.memory.speaker:
        return golden(server).stored(topic, payload)
    return topic.log[: -before[1]] + payload + topic.log[-before[1] :]


register(Specified.seen, "compares-lengths-only",
         "A batch with a known id, time and length is taken for a repetition.",
         _equal_length)  # fmt: skip
register(Specified.seen, "knows-batches-of-any-topic",
         "A batch that another topic has is taken for a repetition.", _any_topic)  # fmt: skip
register(
    Specified.seen,
    "knows-batches-of-any-producer",
    "A batch id that another connection used is taken for a repetition.",
    _any_producer,
)


def _acks_one_of_two(server: Specified, frame: Wire, /) -> Replies:
    """No batch is acknowledged that follows one of another connection in a topic."""
    kept, speaker = server.memory.kept, server.memory.speaker
    before = kept.get(("acked", frame.topic), speaker)
    kept["acked", frame.topic] = speaker
    return golden(server).acks(frame) if before is speaker else []


def _found_by_another(server: Specified, topic: Topic, /) -> Body:
    """What is said of a topic is said to the connection that asks next."""
    kept, speaker = server.memory.kept, server.memory.speaker
    asker, found = kept.get("found-last", (speaker, topic))
    kept["found-last"] = speaker, topic
    told = topic if asker is speaker else found
    return {**golden(server).found_body(told), **golden(server).log_body(told)}


register(Specified.log_body, "tells-what-another-connection-asked",
         "The first answer about a topic after that to another connection is that one's.",
         _found_by_another)  # fmt: skip
register(Specified.acks, "acks-nothing-after-another-connection",
         "No batch is acknowledged that follows one of another connection in its topic.",
         _acks_one_of_two)  # fmt: skip
register(Specified.readable, "hides-the-last-batch-of-others",
         "A connection does not see the last batch of another one.", _one_behind)  # fmt: skip
register(Specified.stored, "puts-the-last-writer-first",
         "The batch of a connection stands before the one that another connection stored last.",
         _notes_writer)  # fmt: skip


def _overtakes(size: int) -> None:
    def served(server: Specified, frames: Sequence[Wire], /) -> Sequence[Wire]:
        return sorted(golden(server).served(frames), key=lambda frame: len(frame.payload) > size)

    register(Specified.served, f"serves-batches-above-{size}-last",
             f"What is sent after a batch of more than {size} bytes is served before it.",
             served)  # fmt: skip


for _size in (65_000, 1 << 18, 1_000_000):
    _overtakes(_size)
