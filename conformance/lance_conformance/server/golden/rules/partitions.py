"""The golden rules of topics that have several partitions (AMB-59)."""

from lance_conformance.server.golden.rules.ingest import INVALID_PAYLOAD
from lance_conformance.server.golden.rules.node import Node
from lance_conformance.server.golden.state import Body, PartitionedTopic, Refused, Topic

PARTITIONERS = {1: "murmur2", 2: "siphash"}
MOST = 10_000
TAKEN, NOT_FOUND, DENIED = 0x11, 0x10, 0x42


def base_of(name: str) -> str | None:
    """What stands before the number in the name of a partition."""
    base, dash, number = name.rpartition("-")
    return base if dash and number.isdecimal() else None


def demand(holds: bool, words: str) -> None:
    """Refuse what is wrong in a request."""
    if not holds:
        raise Refused(INVALID_PAYLOAD, words)


class Partitions(Node):
    """Rules about partitioned topics. Every public method is a hook."""

    def partition_name(self, name: str, index: int, /) -> str:
        """A partition is a topic with its number after the name."""
        return f"{name}-{index}"

    def partition_size_ok(self, _command: int, size: int, wanted: int, /) -> bool:
        """The fields of a request fill its payload."""
        return size == wanted

    def partitions_ok(self, count: int, /) -> bool:
        """There is one partition at least."""
        return 1 <= count <= MOST

    def partitioner_of(self, number: int, /) -> str | None:
        """The name of a way to choose partitions, None for one that nobody defined."""
        return PARTITIONERS.get(number)

    def in_the_way(self, name: str, /) -> Topic | None:
        """A topic that has the name of the whole, or of any partition that it could have."""
        topics = self.memory.topics.values()
        return next((each for each in topics if name in {each.name, base_of(each.name)}), None)

    def reserved(self, name: str, /) -> bool:
        """The name of a whole and those of its partitions, made or not, belong to it."""
        return bool({name, base_of(name)} & self.memory.partitioned.keys())

    def find_whole(self, name: str, /) -> PartitionedTopic:
        """The partitioned topic of a name."""
        whole = self.memory.partitioned.get(name)
        if whole is None:
            raise Refused(NOT_FOUND, "Topic not found")
        return whole

    def find_whole_to_delete(self, name: str, /) -> PartitionedTopic:
        """The partitioned topic that DeletePartitionedTopic asks for."""
        return self.find_whole(name)

    def _make_partition(self, whole: PartitionedTopic, index: int, /) -> Topic:
        """A partition is a new topic, empty, with an id of its own."""
        name = self.partition_name(whole.name, index)
        topic = Topic(self.next_id(), name, log=self.first_log(name), epoch=self.epoch_of(name))
        self.memory.last_id = max(self.memory.last_id, topic.id)
        self.memory.topics[topic.id] = topic
        return topic

    def extended(self, whole: PartitionedTopic, count: int, /) -> None:
        """Partitions are added behind those that are there, which stay as they are."""
        for index in range(len(whole.ids), count):
            whole.ids.append(self._make_partition(whole, index).id)

    def told(self, whole: PartitionedTopic, /) -> None:
        """Each partition says which one it is, and of how many."""
        for index, topic_id in enumerate(whole.ids):
            self.memory.topics[topic_id].partition = {
                "topic": whole.name,
                "index": index,
                "count": len(whole.ids),
                "partitioner": whole.partitioner,
            }

    def fewer_ok(self, _whole: PartitionedTopic, _count: int, /) -> bool:
        """Partitions are not taken away."""
        return False

    def whole_body(self, whole: PartitionedTopic, /) -> Body:
        """What is answered: the name, and the topics in their order."""
        topics = [self.found_body(self.memory.topics[each]) for each in whole.ids]
        return {"name": whole.name, "topics": topics}

    def alone_ok(self, topic: Topic, /) -> None:
        """A partition is not deleted without the others."""
        if topic.partition is not None:
            raise Refused(DENIED, f"Topic {topic.id} is a partition")

    def whole_forgotten(self, whole: PartitionedTopic, /) -> None:
        """A partitioned topic goes with all its partitions, and frees its names."""
        for topic_id in self.memory.topics.keys() & whole.ids:
            self.forget(self.memory.topics[topic_id])
        self.memory.partitioned.pop(whole.name, None)

    def whole_taken(self, topic: Topic | None, /) -> None:
        """Where a name is taken, nothing is created."""
        if topic is not None:
            raise Refused(TAKEN, f"Topic '{topic.name}' already exists")
