"""The golden rules of consumers: Subscribe, what is pushed, CommitOffset (AMB-21, AMB-36)."""

import struct

from lance_conformance.server.golden.codec import Reply
from lance_conformance.server.golden.rules.fetching import SENTINEL, Fetching
from lance_conformance.server.golden.state import Connection, Refused, Replies, Subscription, Topic

INVALID_PAYLOAD = 0x04
SIZES = {0x02: 4, 0x03: 0, 0x07: 0, 0x20: 24, 0x21: 12, 0x22: 20, 0x30: 0, 0x70: 12, 0x75: 20}


class Consumers(Fetching):
    """Rules about subscriptions and commits. Every public method is a hook."""

    def size_ok(self, command: int, size: int, /) -> bool:
        """A command has the size of its fields."""
        return size == SIZES[command]

    def consumer_topic(self, topic_id: int, /) -> Topic:
        """The topic to subscribe to."""
        topic = self.memory.topics.get(topic_id)
        if topic is None:
            raise Refused(self.missing_code(topic_id), "Topic not found")
        return topic

    def topic_to_commit(self, topic_id: int, /) -> Topic:
        """The topic to commit for."""
        return self.consumer_topic(topic_id)

    # -- subscriptions -----------------------------------------------------------------------------

    def subscribed_at(self, topic: Topic, consumer: int, asked: int, /) -> int:
        """A Subscribe at 0 goes on at the commit, any other where it says."""
        return asked or self.committed(topic.id, consumer)

    def subscribe_ack(self, consumer: int, offset: int, /) -> Reply:
        """The consumer, and the offset at which it begins."""
        return Reply(0x40, 0x23, struct.pack("<QQ", consumer, offset))

    def pushing(self) -> bool:
        """Records are pushed to subscribers."""
        return True

    def first_cursor(self, topic: Topic, offset: int, /) -> int:
        """Pushing begins at the offset; the sentinel is the end, and nothing lies beyond it."""
        if SENTINEL > offset > len(topic.log):
            raise Refused(0x51, f"offset {offset} is beyond the end")
        return min(offset, len(topic.log))

    def subscribed_already(self, subscription: Subscription, /) -> None:
        """One subscription for a topic on a connection."""
        raise Refused(INVALID_PAYLOAD, f"subscribed to topic {subscription.topic} already")

    def batch_limit_ok(self, max_bytes: int, /) -> bool:
        """A batch has a byte at least."""
        return max_bytes > 0

    def fetch_beside_push(self) -> None:
        """No Fetch on a connection that is subscribed."""
        raise Refused(INVALID_PAYLOAD, "this connection is subscribed")

    def unsubscribed(self, connection: Connection, topic_id: int, /) -> None:
        """Nothing more is pushed of the topic."""
        connection.subscriptions.pop(topic_id, None)

    def unsubscribe_ack(self, consumer: int, /) -> Reply:
        """An Ack of the consumer's id."""
        return Reply(0x08, consumer)

    # -- pushes ------------------------------------------------------------------------------------

    def pushes(self, connection: Connection, /) -> Replies:
        """What there is for the subscriptions of a connection."""
        replies: Replies = []
        for subscription in list(connection.subscriptions.values()):
            topic = self.memory.topics.get(subscription.topic)
            if topic is None:
                connection.subscriptions.pop(subscription.topic, None)
                replies += self.push_ended(subscription.topic)
            else:
                replies += self.pushed(topic, subscription)
        return replies

    def pushed(self, topic: Topic, subscription: Subscription, /) -> Replies:
        """All records after the cursor, batch by batch."""
        replies: Replies = []
        log = self.readable(topic)
        while subscription.cursor < len(log):
            start = subscription.cursor
            data = self.cut(log, start, self.push_limit(subscription.max_bytes))
            if not data:
                break
            subscription.cursor = self.cursor_after(start, data)
            fetched = self.fetched(
                self.next_offset(start, data), self.counted(log, start, data), data
            )
            replies.append(self.push_frame(topic.id, fetched))
        return replies

    def push_limit(self, max_bytes: int, /) -> int:
        """A push brings Max Batch Bytes at most."""
        return max_bytes

    def cursor_after(self, start: int, data: bytes, /) -> int:
        """The next push begins where this one ends."""
        return start + len(data)

    def push_frame(self, topic_id: int, fetched: Reply, /) -> Reply:
        """A FetchResponse that names its topic in the header."""
        return fetched._replace(topic=topic_id)

    def push_ended(self, topic_id: int, /) -> Replies:
        """A subscription to a topic that is gone ends with an error that names it."""
        words = f"Topic {topic_id} was deleted"
        return [self.error(self.missing_code(topic_id), words, {"topic_id": topic_id})]

    # -- commits -----------------------------------------------------------------------------------

    def committed(self, topic_id: int, consumer: int, /) -> int:
        """What a consumer committed last, 0 if nothing."""
        return self.memory.commits.get((topic_id, consumer), 0)

    def offset_to_commit(self, topic: Topic, offset: int, /) -> int:
        """An offset of the topic; one beyond the end is refused, with the end (AMB-55)."""
        end = len(topic.log)
        if offset > end:
            raise Refused(0x51, f"{offset} is beyond the end, {end}", {"end_offset": end})
        return offset

    def commit_kept(self, topic_id: int, consumer: int, offset: int, /) -> None:
        """The last commit counts."""
        self.memory.commits[topic_id, consumer] = offset

    def commit_ack(self, consumer: int, offset: int, /) -> Reply:
        """The consumer, and the offset that was committed."""
        return Reply(0x40, 0x24, struct.pack("<QQ", consumer, offset))
