"""Servers that are wrong late on a connection."""

from collections.abc import Sequence

from lance_conformance.server.golden.codec import Wire
from lance_conformance.server.golden.specified import Specified
from lance_conformance.server.golden.state import Connection, Replies, Topic
from lance_conformance.server.mutants.operators.common import (
    AFTER,
    KEEPALIVE,
    MOST,
    register,
)
from lance_conformance.server.mutants.registry import golden


def _forgets_topics(count: int) -> None:
    def ingest(server: Specified, connection: Connection, topic_id: int, /) -> Topic:
        connection.counts["ingest"] += 1
        if connection.counts["ingest"] > count and topic_id not in server.memory.topics:
            return Topic(topic_id, "nobody")
        return golden(server).ingest_topic(connection, topic_id)

    def get(server: Specified, topic_id: int, /) -> Topic:
        counts = server.memory.speaker.counts
        counts["get"] += 1
        if counts["get"] > count and topic_id not in server.memory.topics:
            return Topic(topic_id, "nobody")
        return golden(server).find(topic_id)

    register(Specified.ingest_topic, f"stores-nowhere-after-{count}",
             f"After {count} batches of a connection any topic id is taken.", ingest)  # fmt: skip
    register(Specified.find, f"finds-anything-after-{count}",
             f"After {count} GetTopics of a connection every topic is found.", get)  # fmt: skip


def _tires(count: int) -> None:
    def keepalives(server: Specified, frame: Wire, /) -> Replies:
        counts = server.memory.speaker.counts
        counts["keepalive"] += 1
        return [] if counts["keepalive"] > count else golden(server).keepalives(frame)

    def served(server: Specified, frames: Sequence[Wire], /) -> Sequence[Wire]:
        counts = server.memory.speaker.counts
        found = golden(server).served(frames)
        counts["frames"] += len(found)
        return [f for f in found if f.flags != KEEPALIVE or counts["frames"] <= count]

    def acks(server: Specified, frame: Wire, /) -> Replies:
        counts = server.memory.speaker.counts
        counts["ack"] += 1
        wrong = counts["ack"] == count + 1
        return golden(server).acks(frame._replace(batch_id=frame.batch_id ^ wrong))

    def stays(server: Specified, code: int, command: int, /) -> bool:
        counts = server.memory.speaker.counts
        counts["refused"] += 1
        return counts["refused"] <= count and golden(server).stays_after(code, command)

    register(Specified.keepalives, f"answers-{count}-keepalives",
             f"A connection gets {count} answers to Keepalives.",
             keepalives)  # fmt: skip
    register(Specified.served, f"answers-keepalives-for-{count}-frames",
             f"After {count} frames of a connection Keepalives are passed over.",
             served)  # fmt: skip
    register(Specified.acks, f"acks-another-after-{count}",
             f"The Ack after {count} others of a connection names another batch.",
             acks)  # fmt: skip
    register(Specified.stays_after, f"ends-after-{count}-refusals",
             f"A connection ends after {count} refusals.", stays)  # fmt: skip


for _count in sorted({*AFTER, *MOST}):
    if _count in AFTER:
        _forgets_topics(_count)
    _tires(_count)
