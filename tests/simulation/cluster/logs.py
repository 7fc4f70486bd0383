"""Logs made of a seed, and replays of them on disks that crash."""

import json
from collections.abc import Callable, Container, Sequence
from pathlib import Path
from random import Random
from typing import Any, Final

from lance_server.cluster.applying.mark import FOLDER
from lance_server.cluster.applying.replica import Replica
from lance_server.cluster.applying.results import Applied
from lance_server.cluster.applying.settings import Settings
from lance_server.cluster.applying.shard import Shard
from lance_server.cluster.applying.topic import ReplicatedTopic
from lance_server.cluster.copies.offered import COPIES_FOLDER
from lance_server.cluster.records import encode
from lance_server.cluster.replicated_log import Entry
from lance_server.testing import CrashError, MemoryStorage
from lance_spec.checksum import CRC32C
from lance_spec.messages import replication
from lance_spec.records import encode_record

DATA_DIR: Final = Path("/node")
NOW: Final = 1_700_000_000_000_000_000
SECOND: Final = 1_000_000_000
NONCE: Final = 5 << 40
SETTINGS: Final = Settings(
    cluster_id="c-1",
    created_ns=NOW,
    segment_size=300,
    window_entries=6,
    window_age_secs=20,
    max_topics=4,
    max_consumers=2,
)

SETTINGS_OF_WORLD: Final = Settings(
    **{
        **SETTINGS.to_body(),
        "window_entries": 10_000,
        "window_age_secs": 100_000,
        "segment_size": 250,
        "max_consumers": 10,
        "max_topics": 8,
    }
)


def a_batch(topic_id: int, number: int, accepted_ns: int, values: Sequence[bytes]) -> Any:
    """Return the Append of a batch that a producer numbers; 0 makes one without a lasting id."""
    data = b"".join(encode_record(value) for value in values)
    return replication.Append(
        topic_id=topic_id,
        batch_id=NONCE + number if number else 1,
        client_timestamp_ns=NOW + number,
        accepted_ns=accepted_ns,
        record_count=len(values),
        flags=0,
        stored_crc=CRC32C(data),
        data=data,
    )


class Author:
    """Writes a log of records that make sense, mostly, with the state that they lead to.

    Args:
        random: decides everything.

    Attributes:
        entries: the log.
        applied: what came of each entry.
    """

    def __init__(self, random: Random) -> None:
        self._random = random
        self._replica = Replica.open(MemoryStorage(), DATA_DIR, "log-1", 1, lambda _: 0)
        self._now: int = NOW
        self.entries: list[Entry] = []
        self.applied: list[Applied] = []
        self.write(SETTINGS.to_genesis())

    @property
    def shard(self) -> Shard:
        """What the records lead to."""
        return self._replica.shards[0]

    def write(self, body: Any) -> Applied:
        """Append a record and return what comes of it."""
        self._now += self._random.choice((0, 1000, SECOND, 3 * SECOND))
        record = encode(body, self._random.choice((77, 77, 78)), len(self.entries))
        entry = Entry(len(self.entries), self._random.choice((0, 0, 1)), self._now, record)
        self.entries.append(entry)
        self.applied += self._replica.apply(0, [entry])
        return self.applied[-1]

    def go_on(self, count: int) -> None:
        """Append so many records."""
        for _ in range(count):
            self.write(self._random.choices(*zip(*self._choices(), strict=True))[0]())

    def _choices(self) -> list[tuple[Callable[[], Any], int]]:
        return [
            (self._append, 30),
            (self._create, 3),
            (self._delete, 1),
            (self._begin, 2),
            (self._end, 1),
            (self._retention, 3),
            (self._commit, 4),
            (self._forget, 2),
            (self._expire, 1),
            (self._drop, 6),
            (self._roll, 4),
            (lambda: None, 1),
            (self._status, 1),
            (lambda: replication.HostJoins(node_id=self._random.randrange(3), shard=0), 1),
            (lambda: replication.HostLeaves(node_id=self._random.randrange(3), shard=0), 1),
            (SETTINGS.to_genesis, 1),
        ]

    def _topic_id(self) -> int:
        known = sorted({*self.shard.topics, *self.shard.state.catalog.topics})
        return self._random.choice([*known, *known, 9])

    def _topic(self) -> ReplicatedTopic:
        return self.shard.topics[self._random.choice(sorted(self.shard.topics))]

    def _clock(self) -> int:
        """A sender's clock, which may be wrong."""
        return self._now + self._random.choice((0, 0, -5 * SECOND, 600 * SECOND, 1))

    def _append(self) -> Any:
        number = self._random.choice((0, *range(1, 25)))
        values = [bytes([number]) * self._random.choice((1, 20, 90))]
        values *= self._random.choice((1, 1, 3))
        batch = a_batch(self._topic_id(), number, self._clock(), values)
        if self._random.random() < 0.03:
            batch.stored_crc ^= 1
        return batch

    def _create(self) -> Any:
        return replication.CreateTopic(
            name=self._random.choice("abcdef"),
            max_age_secs=self._random.choice((0, 10)),
            max_bytes=self._random.choice((0, 500)),
            shard=0,
            accepted_ns=self._clock(),
        )

    def _delete(self) -> Any:
        return replication.DeleteTopic(topic_id=self._topic_id())

    def _begin(self) -> Any:
        catalog = self.shard.state.catalog.topics
        topic_id = self._random.choice(sorted(catalog))
        return catalog[topic_id].begins(topic_id)

    def _end(self) -> Any:
        gone = [key for key in self.shard.topics if key not in self.shard.state.catalog.topics]
        return replication.TopicEnds(topic_id=self._random.choice([*gone, 9, 3]))

    def _version(self, current: int) -> int:
        return self._random.choice((current, current, current, current - 1 if current else 1))

    def _retention(self) -> Any:
        topic = self._topic()
        return replication.SetRetention(
            topic_id=topic.file.identity.id,
            version=self._version(topic.state.retention_version),
            max_age_secs=self._random.choice((0, 5, 30)),
            max_bytes=self._random.choice((0, 200, 1000)),
        )

    def _commit(self) -> Any:
        topic, consumer = self._topic(), self._random.randrange(4)
        known = topic.state.commits.get(consumer)
        return replication.CommitOffset(
            topic_id=topic.file.identity.id,
            consumer_id=consumer,
            version=self._version(known.version if known else 0),
            offset=self._random.randrange(2000),
            accepted_ns=self._clock(),
        )

    def _forget(self) -> Any:
        topic, consumer = self._topic(), self._random.randrange(4)
        known = topic.state.commits.get(consumer)
        return replication.DeleteCommit(
            topic_id=topic.file.identity.id,
            consumer_id=consumer,
            version=self._version(known.version if known else 0),
        )

    def _expire(self) -> Any:
        kept = [each for each in range(4) if self._random.random() < 0.5]
        before = self._now - 10 * SECOND
        return replication.ExpireCommits(topic_id=self._topic_id(), before_ns=before, kept=kept)

    def _drop(self) -> Any:
        topic = self._topic()
        return replication.DropBefore(
            topic_id=topic.file.identity.id,
            offset=self._random.randrange(topic.state.end + 2),
            retention_version=self._version(topic.state.retention_version),
        )

    def _roll(self) -> Any:
        topic = self._topic()
        end = self._random.choice((topic.state.end, topic.state.end, 0))
        return replication.Roll(topic_id=topic.file.identity.id, end=end)

    def _status(self) -> Any:
        return replication.NodeStatus(
            node_id=self._random.randrange(3),
            replaces=self._random.choice((0, 77, 78)),
            address="host:1992",
            release="0.1.0",
            apply_version=1,
            clock_ns=self._clock(),
            positions=[],
        )


class Replay:
    """Applies a log to a disk that crashes, in groups and with marks that a seed decides.

    Args:
        entries: the log.
        random: decides everything.
        crashes: how likely a crash is at each step.

    Attributes:
        disk: the disk.
        results: what came of each record, by position, as often as it was applied.
        starts: how often the node was started.
    """

    def __init__(self, entries: Sequence[Entry], random: Random, crashes: float) -> None:
        self._entries = entries
        self._random = random
        self._crashes = crashes
        self.disk = MemoryStorage()
        self.results: dict[int, list[Applied]] = {}
        self.starts = 0

    def run(self) -> None:
        """Apply all of it."""
        while not self._live():
            self.disk = self.disk.crash(self._random)

    def _live(self) -> bool:
        """Live until the log ends or a crash; return whether the log ended."""
        self.starts += 1
        self.disk.crash_after = self._crash_point()
        try:
            replica = Replica.open(self.disk, DATA_DIR, "log-1", 1, lambda _: 0)
            while replica.shards[0].state.position < len(self._entries):
                self._step(replica)
            self.disk.crash_after = None
            replica.mark(0)
            replica.shards[0].index()
            replica.release()
        except CrashError:
            return False
        return True

    def _crash_point(self) -> int | None:
        if self._random.random() >= self._crashes:
            return None
        return self.disk.operations + self._random.randrange(400)

    def _step(self, replica: Replica) -> None:
        position = replica.shards[0].state.position
        count = self._random.choice((1, 2, 7, 100))
        for applied in replica.apply(0, self._entries[position : position + count]):
            self.results.setdefault(applied.position, []).append(applied)
        if self._random.random() < 0.3:
            replica.mark(0)
        if self._random.random() < 0.1:
            replica.shards[0].index()


def contents(disk: MemoryStorage, hosted: Container[int] | None = None) -> dict[str, bytes]:
    """Return what all nodes must have alike: every file, and of the marks what is state.

    Args:
        disk: a node's.
        hosted: the shards that it hosts; the marks of others may be damaged. None for all.
    """
    found = {}
    for path in disk.files():
        name = str(path.relative_to(DATA_DIR))
        if name.startswith(COPIES_FOLDER):
            continue
        if name.startswith(FOLDER):
            if (
                hosted is not None
                and int(name.split("-")[1].split(".", maxsplit=1)[0]) not in hosted
            ):
                continue
            body = json.loads(disk.peek(path))
            for local in ("removals", "checksum"):
                body.pop(local)
            found[name] = json.dumps(body).encode()
        else:
            found[name] = disk.peek(path)
    return found
