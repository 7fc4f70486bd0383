"""The golden rules of topics, records and groups, whatever form they are asked for in."""

from lance_conformance.rustlog.golden.decoding import Decoding
from lance_conformance.rustlog.golden.state import CommitKey, Connection, Refused


class Log(Decoding):
    """Rules about what is kept, and what is told of it in the binary form."""

    # -- refusals ----------------------------------------------------------------------------------

    def no_partition(self, _name: str, topic: str, partition: int, /) -> Refused:
        """What is said about a partition that is not there."""
        text = f"Topic or partition does not exist: topic={topic}, partition={partition}"
        return Refused(10, text)

    def exists(self, topic: str, /) -> Refused:
        """What is said about a topic that is there already."""
        return Refused(11, f"Topic '{topic}' already exists")

    def bad_count(self, count: int, /) -> Refused:
        """What is said about a topic without partitions."""
        return Refused(12, f"Invalid partition count: {count}")

    def no_topic(self, topic: str, /) -> Refused:
        """What is said about the description of a topic that is not there."""
        return Refused(13, f"DescribeTopic failed: Topic '{topic}' not found")

    def no_description(self, topic: str, partition: int, /) -> Refused:
        """What is said about the description of a partition that is not there."""
        text = f"DescribePartition failed: Partition {partition} not found in topic '{topic}'"
        return Refused(14, text)

    # -- records -----------------------------------------------------------------------------------

    def written(self, topic: str, partition: int, /) -> list[bytes] | None:
        """Where a Produce writes, `None` if there is no such partition."""
        return self.partition(topic, partition)

    def read(self, topic: str, partition: int, /) -> list[bytes] | None:
        """Where a Fetch reads, `None` if there is no such partition."""
        return self.partition(topic, partition)

    def partition(self, topic: str, partition: int, /) -> list[bytes] | None:
        """The records of a partition."""
        parts = self.memory.topics.get(topic, [])
        return parts[partition] if partition < len(parts) else None

    def stored(self, log: list[bytes], records: list[bytes], /) -> list[bytes]:
        """A partition with records after those it had."""
        return log + records

    def base(self, _connection: Connection, before: int, /) -> int:
        """The offset of the first record of a Produce."""
        return before

    def counted(self, records: list[bytes], /) -> int:
        """How many records a Produce is told to have had."""
        return len(records)

    def missing_matters(self, _records: list[bytes], /) -> bool:
        """A Produce to a missing partition is refused, also one without records."""
        return True

    def nothing_stored(self, _before: int, /) -> tuple[int, int]:
        """What a Produce without records is told."""
        return 0, 0

    def chosen(self, log: list[bytes], start: int, /) -> list[bytes]:
        """The records from an offset on."""
        return log[start:]

    def weight(self, record: bytes, /) -> int:
        """What a record counts against max_bytes."""
        return len(record) + 12

    def fits(self, counted: int, max_bytes: int, /) -> bool:
        """Whether a record that makes it so much still fits."""
        return counted <= max_bytes

    def first_record(self, max_bytes: int, /) -> bool:
        """Whether the first record comes, however large it is."""
        return max_bytes > 0

    def following(self, start: int, taken: int, /) -> int:
        """Where to go on."""
        return start + taken

    def behind_the_end(self, start: int, _end: int, /) -> int:
        """Where to go on when there is nothing."""
        return start

    def after_read(self, _place: CommitKey, _following: int, /) -> None:
        """Reading moves nothing."""

    # -- groups ------------------------------------------------------------------------------------

    def group_start(self, commit: int | None, _asked: int, /) -> int | None:
        """Where a group reads; `None` without a commit."""
        return commit

    def without_commit(self, _asked: int, /) -> int:
        """Where a group without a commit is told to go on."""
        return 0

    def commit_key(self, _connection: Connection, place: CommitKey, /) -> object:
        """What a commit is kept under."""
        return place

    def kept_commit(self, _before: int | None, offset: int, /) -> int:
        """What is kept of a new commit."""
        return offset

    def commits_for(self, _topic: str, _partition: int, /) -> bool:
        """Whether commits for a partition are kept; the binary form does not look."""
        return True

    def commit_answer(self, /) -> int:
        """What a commit is told."""
        return 1

    def told_commit(self, commit: int | None, /) -> int | None:
        """What is told of a commit."""
        return commit

    # -- topics ------------------------------------------------------------------------------------

    def made(self, topic: str, count: int, /) -> None:
        """Make a topic."""
        self.memory.topics[topic] = [[] for _ in range(count)]

    def made_again(self, _topic: str, _count: int, /) -> None:
        """What is done to a topic that exists before its creation is refused."""

    def count_ok(self, count: int, /) -> bool:
        """A topic has at least one partition."""
        return count > 0

    def create_answer(self, /) -> int:
        """What the creation of a topic is told."""
        return 1

    def listed(self, topics: dict[str, int], /) -> list[tuple[str, int]]:
        """All topics by name, with their partitions."""
        return sorted(topics.items())

    def description(self, topic: str, count: int, /) -> tuple[str, int, list[int]]:
        """Name, number of partitions, and their numbers."""
        return topic, count, list(range(count))

    def partition_description(self, topic: str, partition: int, /) -> tuple[str, int]:
        """Name and number of a partition."""
        return topic, partition

    def watermark(self, log: list[bytes], /) -> int:
        """Where a partition ends, as its description says."""
        return len(log)

    def partition_watermark(self, log: list[bytes], /) -> int:
        """Where a partition ends, as the description of it alone says."""
        return len(log)

    def metrics(self, /) -> bytes:
        """Metrics in the form of Prometheus."""
        return b"# TYPE messages_produced_total counter\nmessages_produced_total 0\n"

    def pong(self, /) -> bytes:
        """The answer to a Ping."""
        return b"\xff"
