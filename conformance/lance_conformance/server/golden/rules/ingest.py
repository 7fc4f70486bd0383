"""The golden rules of Ingest: what is stored, what is refused, what is acknowledged."""

from typing import Literal

from lance_conformance.server.golden.codec import Reply, Wire, begun, walk
from lance_conformance.server.golden.rules.compression import CompressionRules
from lance_conformance.server.golden.state import Body, Connection, Memory, Refused, Replies, Topic

INVALID_PAYLOAD = 0x04
ANYWHERE = 1 << 40


class Ingest(CompressionRules):
    """Rules about batches. Every public method is a hook."""

    memory: Memory

    def empty(self, _frame: Wire, /) -> Replies:
        """An Ingest without a payload is refused."""
        raise Refused(INVALID_PAYLOAD, "an Ingest needs a payload")

    def batch_id_ok(self, batch_id: int, /) -> bool:
        """Batch ids are not zero."""
        return batch_id != 0

    def chain_ok(self, payload: bytes, /) -> bool:
        """Records fill the payload exactly."""
        return walk(payload)[1]

    def count_ok(self, announced: int, payload: bytes, /) -> bool:
        """The header counts the records."""
        return announced == begun(payload)

    def batch_ok(self, frame: Wire, /) -> bool:
        """A batch is whole records, as many as announced."""
        return self.chain_ok(frame.payload) and self.count_ok(frame.records, frame.payload)

    def timestamp_ok(self, _timestamp: int, /) -> bool:
        """Any timestamp will do."""
        return True

    def types_ok(self, _payload: bytes, /) -> bool:
        """Records of any type, with values of any size, will do."""
        return True

    def seen(self, connection: Connection, frame: Wire, /) -> Literal["new", "again", "other"]:
        """Whether this batch id was used on this connection, and for the same content."""
        key, content = (frame.topic, frame.batch_id), (frame.timestamp, frame.payload)
        known = connection.batches.get(key)
        if known is None:
            return "again" if self.seen_elsewhere(key, content) else "new"
        if known == content:
            return "again" if frame.timestamp else "new"
        return "other"

    def seen_elsewhere(self, key: tuple[int, int], content: tuple[int, bytes], /) -> bool:
        """Batch ids from 2^40 on are known on every connection, but for batches without a time."""
        known = key[1] >= ANYWHERE and content[0] != 0
        return known and self.memory.batches.get(key) == content

    def ingest_topic(self, connection: Connection, topic_id: int, /) -> Topic:
        """The topic to write to."""
        del connection  # a mutant closes it
        topic = self.memory.topics.get(topic_id) if topic_id else self.memory.default
        if topic is None:
            raise Refused(self.missing_code(topic_id), f"Unknown topic: {topic_id}")
        return topic

    def missing_code(self, topic_id: int, /) -> int:
        """TopicDeleted for an id that existed, TopicNotFound otherwise."""
        return 0x13 if topic_id in self.memory.deleted else 0x10

    def details(self, frame: Wire, /) -> Body:
        """What a refused Ingest says about itself."""
        return {"batch_id": frame.batch_id}

    def stored(self, topic: Topic, payload: bytes, /) -> bytes:
        """The log of a topic after a batch."""
        return topic.log + payload

    def stored_though_refused(self, _frame: Wire, /) -> bytes:
        """What of a refused batch ends up in the log: nothing."""
        return b""

    def acks(self, frame: Wire, /) -> Replies:
        """One Ack with the batch id and nothing else."""
        return [Reply(0x08, frame.batch_id)]
