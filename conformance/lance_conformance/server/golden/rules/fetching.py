"""The golden rules of Fetch."""

import struct

from lance_conformance.server.golden.codec import Reply, walk
from lance_conformance.server.golden.rules.topics import TopicRules
from lance_conformance.server.golden.state import Refused, Topic

SENTINEL = 2**64 - 1


class Fetching(TopicRules):
    """Rules about Fetch. Every public method is a hook."""

    def fetch_size_ok(self, size: int, /) -> bool:
        """Fetch has 16 bytes."""
        return size == 16

    def fetch_topic(self, topic_id: int, /) -> Topic:
        """The topic to read from."""
        topic = self.memory.topics.get(topic_id) if topic_id else self.default_topic()
        if topic is None:
            raise Refused(self.missing_code(topic_id), f"Topic {topic_id} not found")
        return topic

    def readable(self, topic: Topic, /) -> bytes:
        """All that is acknowledged can be read."""
        return topic.log

    def start_of(self, start: int, /) -> int:
        """Offsets are bytes."""
        return start

    def end_answer(self, log: bytes, /) -> Reply:
        """What the sentinel 2^64-1 brings: nothing, and the end."""
        return self.fetched(len(log), 0, b"")

    def at_end_answer(self, log: bytes, /) -> Reply:
        """What a start at the end brings: nothing, and the end."""
        return self.fetched(len(log), 0, b"")

    def beyond_end(self, log: bytes, start: int, /) -> Reply:
        """What a start beyond the end brings: CatchingUp with the end."""
        del start  # a mutant answers with it
        return Reply(0x40, 0x12, struct.pack("<Q", len(log)))

    def limit(self, max_bytes: int, /) -> int:
        """Max Bytes is the limit."""
        return max_bytes

    def cut(self, log: bytes, start: int, limit: int, /) -> bytes:
        """Data ends on a record boundary, unless not even one record fits."""
        data = log[start : start + limit]
        ends = [end for end in walk(log)[0] if start < end <= start + len(data)]
        return log[start : ends[-1]] if ends else data

    def counted(self, log: bytes, start: int, data: bytes, /) -> int:
        """Whole records in the data, 0 for a start inside a record."""
        starts = walk(log)[0]
        if start not in starts:
            return 0
        return sum(start < end <= start + len(data) for end in starts)

    def next_offset(self, start: int, data: bytes, /) -> int:
        """Where the data ends."""
        return start + len(data)

    def announced(self, data: bytes, /) -> int:
        """The number of data bytes."""
        return len(data)

    def fetched(self, next_offset: int, count: int, data: bytes, /) -> Reply:
        """A FetchResponse with the 16-byte header."""
        head = struct.pack("<QII", next_offset, self.announced(data), count)
        return Reply(0x40, 0x11, head + data)
