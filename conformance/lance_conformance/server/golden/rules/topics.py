"""The golden rules of topics and their names."""

import unicodedata

from lance_conformance.server.golden.codec import walk
from lance_conformance.server.golden.rules.ingest import INVALID_PAYLOAD, Ingest
from lance_conformance.server.golden.state import Body, Refused, Replies, Topic

INVALID_NAME = 0x12
LOOKS = frozenset(
    "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u2028\u2029"
)
"""Controls of bidirectional text, and the separators of lines and paragraphs (AMB-24)."""


class TopicRules(Ingest):
    """Rules about topics. Every public method is a hook."""

    def name_of(self, raw: bytes, /) -> str:
        """The name that bytes spell."""
        try:
            return raw.decode()
        except UnicodeDecodeError:
            raise Refused(INVALID_NAME, "a topic name is UTF-8") from None

    def empty_name_ok(self) -> bool:
        """A topic has a name."""
        return False

    def name_length_ok(self, raw: bytes, /) -> bool:
        """A name has 255 bytes at most."""
        return len(raw) <= 255

    def name_characters_ok(self, name: str, /) -> bool:
        """A name has no slash, nothing that changes its looks, and is no place in a path."""
        plain = all(unicodedata.category(c) != "Cc" and c not in LOOKS for c in name)
        return "/" not in name and name not in {".", ".."} and plain

    def spelling(self, name: str, /) -> str:
        """The form in which names are compared."""
        return unicodedata.normalize("NFC", name)

    def taken_by(self, name: str, /) -> Topic | None:
        """The topic that has this name already."""
        same = self.spelling(name)
        return next((t for t in self.memory.topics.values() if self.spelling(t.name) == same), None)

    def duplicate(self, topic: Topic, /) -> Topic:
        """A name that is taken is refused."""
        raise Refused(0x11, f"Topic '{topic.name}' already exists")

    def next_id(self) -> int:
        """Ids go up and never come back."""
        return self.memory.last_id + 1

    def first_log(self, _name: str, /) -> bytes:
        """A new topic is empty."""
        return b""

    def epoch_of(self, name: str, /) -> int:
        """How many topics of this name there were, with this one."""
        spelled = self.spelling(name)
        self.memory.epochs[spelled] = self.memory.epochs.get(spelled, 0) + 1
        return self.memory.epochs[spelled]

    def created_body(self, topic: Topic, /) -> Body:
        """What CreateTopic answers."""
        return self.found_body(topic)

    def found_body(self, topic: Topic, /) -> Body:
        """What GetTopic and ListTopics say of a topic."""
        body: Body = {
            "id": topic.id,
            "name": topic.name,
            "created_at": topic.created_at,
            "topic_epoch": topic.epoch,
        }
        return body if topic.partition is None else {**body, "partition": topic.partition}

    def log_body(self, topic: Topic, /) -> Body:
        """What GetTopic says of a topic's log."""
        count = len(walk(topic.log)[0]) - 1
        return {"start_offset": 0, "end_offset": len(topic.log), "record_count": count}

    def listed(self) -> list[Body]:
        """What ListTopics answers."""
        return [self.found_body(topic) for topic in self.memory.topics.values()]

    def list_body(self, topics: list[Body], /) -> Body:
        """How ListTopics answers."""
        return {"topics": topics}

    def default_topic(self) -> Topic:
        """Topic 0 has a name, and a log."""
        return self.memory.default

    def find(self, topic_id: int, /) -> Topic:
        """The topic that GetTopic asks for."""
        topic = self.memory.topics.get(topic_id)
        if topic is None:
            raise Refused(self.missing_code(topic_id), "Topic not found")
        return topic

    def find_to_delete(self, topic_id: int, /) -> Topic:
        """The topic that DeleteTopic asks for."""
        topic = self.memory.topics.get(topic_id)
        if topic is None:
            words = f"Configuration error: Topic {topic_id} not found"
            raise Refused(self.missing_code(topic_id), words)
        return topic

    def forget(self, topic: Topic, /) -> None:
        """A deleted topic is gone at once."""
        self.memory.topics.pop(topic.id, None)
        self.memory.deleted.add(topic.id)

    def deleted_body(self, topic_id: int, /) -> Body:
        """What DeleteTopic answers."""
        return {"deleted": topic_id}

    def find_to_limit(self, topic_id: int, /) -> Topic:
        """The topic that SetRetention asks for."""
        return self.find_to_delete(topic_id)

    def limits_kept(self, topic: Topic, limits: tuple[int, int], /) -> None:
        """Limits are kept as they were sent."""
        topic.limits = limits

    def set_body(self, topic: Topic, /) -> Body:
        """What SetRetention answers."""
        age, size = topic.limits or (0, 0)
        return {"topic_id": topic.id, "max_age_secs": age, "max_bytes": size}

    def limited_body(self, topic: Topic, /) -> Body:
        """What CreateTopicWithRetention answers."""
        age, size = topic.limits or (0, 0)
        return {**self.created_body(topic), "max_age_secs": age, "max_bytes": size}

    def name_length(self, payload: bytes, /) -> tuple[int, int]:
        """The length of the name in CreateTopicWithRetention, and where the name starts."""
        return int.from_bytes(payload[:2], "little"), 2

    def create_size_ok(self, size: int, /) -> bool:
        """CreateTopicWithRetention has 18 bytes beside the name."""
        return size >= 18

    def limits_ok(self, payload: bytes, name_end: int, /) -> bool:
        """Two limits of 8 bytes stand after the name and nothing after them."""
        return len(payload) == name_end + 16

    def set_size_ok(self, size: int, /) -> bool:
        """SetRetention has 20 bytes."""
        return size == 20

    def get_size_ok(self, size: int, /) -> bool:
        """GetTopic has 4 bytes."""
        return size == 4

    def command_of(self, batch_id: int, /) -> int:
        """The command is the whole Batch ID."""
        return batch_id

    def unknown_command(self, command: int, /) -> Replies:
        """A command that nobody defines is refused."""
        raise Refused(INVALID_PAYLOAD, f"Invalid client command: {command:#x}")

    def server_command(self, command: int, /) -> Replies:
        """A command that only servers send is refused."""
        raise Refused(INVALID_PAYLOAD, f"Invalid client command: {command:#x}")
