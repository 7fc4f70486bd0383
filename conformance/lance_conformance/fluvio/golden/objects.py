"""The golden rules of the SC: objects, watches, and topics that come and go."""

import re
import struct
from typing import NamedTuple

from lance_conformance.fluvio.golden.codec import (
    Cursor,
    Malformed,
    behind_length,
    each,
    maybe,
    words,
)
from lance_conformance.fluvio.golden.framing import Framing
from lance_conformance.fluvio.golden.state import Partition, Refused, Topic, Watch

SPU_ID = 5001
OFFSETS = "consumer-offset"
MOST_PARTITIONS = 64


class Creation(NamedTuple):
    """A topic to create."""

    name: str
    dry_run: bool
    partitions: int


def code(number: int) -> bytes:
    """An error without fields."""
    return struct.pack(">h", number)


def told(reason: str) -> bytes:
    """The error that carries a text."""
    return code(2) + words(reason)


class Objects(Framing):
    """Rules about objects. Every public method is a hook."""

    # SPUs ----------------------------------------------------------------------------------------

    def spu_host(self) -> str:
        """The address that clients are told."""
        return "127.0.0.1"

    def spu_port(self) -> int:
        """The port that clients are told."""
        return self.memory.spu_port

    def spu_state(self) -> int:
        """Online."""
        return 0

    def spus(self) -> list[bytes]:
        """Every SPU."""
        port, host = self.spu_port(), self.spu_host()
        public = struct.pack(">H", port) + each([maybe(None) + maybe(words(host))]) + b"\0"
        private = struct.pack(">H", port) + words(host) + b"\0"
        head = words(f"custom-spu-{SPU_ID}") + struct.pack(">iB", SPU_ID, 1)
        return [head + public + private + maybe(None) * 2 + bytes([self.spu_state()])]

    # Topics --------------------------------------------------------------------------------------

    def kept_settings(self, name: str, /) -> bytes:
        """What topics and partitions have in common: nothing special."""
        return maybe(None) * 2 + b"\4" + maybe(None) + bytes([name == OFFSETS])

    def topic_state(self) -> int:
        """Provisioned."""
        return 4

    def told_count(self, topic: Topic, /) -> int:
        """How many partitions a topic is said to have."""
        return len(topic.partitions)

    def replica_map(self, topic: Topic, /) -> bytes:
        """Where partitions are; its count has two bytes."""
        rows = [struct.pack(">Iii", number, 1, SPU_ID) for number in range(len(topic.partitions))]
        return struct.pack(">H", len(rows)) + b"".join(rows)

    def topic_object(self, topic: Topic, /) -> bytes:
        """A topic."""
        spec = b"\1" + struct.pack(">II?", self.told_count(topic), 1, False)
        spec += self.kept_settings(topic.name)
        state = bytes([self.topic_state()]) + self.replica_map(topic) + b"\0\0" + words("")
        return words(topic.name) + spec + state

    # Partitions ----------------------------------------------------------------------------------

    def partition_name(self, topic: str, number: int, /) -> str:
        """Topic, dash, number."""
        return f"{topic}-{number}"

    def leader(self) -> int:
        """The SPU that has the partition."""
        return SPU_ID

    def partition_state(self) -> int:
        """Online."""
        return 1

    def told_base(self, version: int, /) -> bytes:
        """The lowest offset, from version 16 on."""
        return struct.pack(">q", 0) if version >= 16 else b""

    def partition_objects(self, topic: Topic, version: int, /) -> list[bytes]:
        """The partitions of a topic."""
        return [
            words(self.partition_name(topic.name, number))
            + struct.pack(">iii", self.leader(), 1, SPU_ID)
            + self.kept_settings(topic.name)
            + maybe(None)
            + bytes([self.partition_state()])
            + struct.pack(">iqqI", self.leader(), part.end, part.end, 1)
            + each([])
            + struct.pack(">q?", 0, False)
            + self.told_base(version)
            for number, part in enumerate(topic.partitions)
        ]

    def objects(self, kind: str, topics: list[Topic], version: int, /) -> list[bytes]:
        """The objects of a kind."""
        if kind == "SPU":
            return self.spus()
        if kind == "Topic":
            return [self.topic_object(topic) for topic in topics]
        if kind == "Partition":
            return [part for topic in topics for part in self.partition_objects(topic, version)]
        raise Malformed(f"no objects are called {kind}")

    # Watching ------------------------------------------------------------------------------------

    def epoch(self) -> int:
        """A number that rises with every change."""
        return self.memory.epoch

    def first_watched(self, kind: str, version: int, /) -> list[bytes]:
        """All objects, in the first piece of a watch."""
        return self.objects(kind, list(self.memory.topics.values()), version)

    def watched(self, kind: str, changes: list[tuple[int, bytes]], found: list[bytes], /) -> bytes:
        """A piece of a watch."""
        told = each(bytes([change]) + item for change, item in changes)
        return words(kind) + behind_length(struct.pack(">q", self.epoch()) + told + each(found))

    def change_of(self, *, gone: bool) -> int:
        """How a change is marked."""
        return int(gone)

    def pushed(self, watch: Watch, /) -> bytes | None:
        """What a watch tells now: topics that came or went since it last did."""
        known, watch.known = watch.known, dict(self.memory.topics)
        came = [topic for name, topic in watch.known.items() if known.get(name) is not topic]
        gone = [topic for name, topic in known.items() if watch.known.get(name) is not topic]
        if watch.kind == "SPU" or not came + gone:
            return None
        changes = [
            (self.change_of(gone=is_gone), item)
            for topics, is_gone in ((gone, True), (came, False))
            for item in self.objects(watch.kind, topics, watch.version)
        ]
        return self.watched(watch.kind, changes, [])

    # Listing -------------------------------------------------------------------------------------

    def is_wanted(self, kind: str, item: bytes, system: bool, /) -> bool:
        """The users' topics and partitions, or the cluster's own."""
        own = item.startswith((words(OFFSETS), words(f"{OFFSETS}-0")))
        return kind == "SPU" or own == system

    def listed(self, kind: str, names: list[str], version: int, /) -> list[bytes]:
        """The objects of a kind, or those with some names."""
        found = self.objects(kind, list(self.memory.topics.values()), version)
        wanted = [words(name) for name in names]
        return [item for item in found if not wanted or item.startswith(tuple(wanted))]

    def list_objects(self, body: bytes, version: int, /) -> bytes:
        """The answer to List."""
        cursor = Cursor(body)
        kind = cursor.words()
        asked = Cursor(cursor.octets(cursor.take("i")))
        names = asked.each(asked.words)
        asked.take("?")
        system = asked.take("?")
        found = self.listed(kind, names, version)
        return words(kind) + behind_length(
            each(i for i in found if self.is_wanted(kind, i, system))
        )

    # Creating and deleting -----------------------------------------------------------------------

    def status(self, name: str, outcome: bytes, message: str | None, /) -> bytes:
        """The answer to Create and Delete."""
        return words(name) + outcome + maybe(None if message is None else words(message))

    def name_ok(self, name: str, /) -> bool:
        """Names that become names of partitions."""
        return re.fullmatch(r"[a-z0-9][a-z0-9-]*", name) is not None

    def count_ok(self, partitions: int, /) -> bool:
        """At least one partition, and not too many."""
        return 1 <= partitions <= MOST_PARTITIONS

    def exists(self, name: str, /) -> bool:
        """Whether there is a topic."""
        return name in self.memory.topics

    def exists_code(self) -> bytes:
        """The error for a name that is taken."""
        return code(2002)

    def missing_topic_code(self) -> bytes:
        """The error for a name that nobody has."""
        return code(2001)

    def made(self, creation: Creation, /) -> Topic:
        """A new topic is empty."""
        return Topic(creation.name, [Partition() for _ in range(creation.partitions)])

    def is_dry(self, creation: Creation, /) -> bool:
        """Whether nothing is to be done."""
        return creation.dry_run

    def create(self, creation: Creation, /) -> None:
        """Create a topic."""
        if not self.name_ok(creation.name):
            raise Refused(code(2006))
        if not self.count_ok(creation.partitions):
            raise Refused(code(2004))
        if self.exists(creation.name):
            raise Refused(self.exists_code())
        if not self.is_dry(creation):
            self.memory.topics[creation.name] = self.made(creation)
            self.memory.epoch += 1

    def deletable(self, name: str, /) -> bool:
        """Whether a topic may go."""
        return name != OFFSETS

    def removed(self, name: str, /) -> None:
        """Let a topic go."""
        del self.memory.topics[name]

    def delete(self, name: str, /) -> None:
        """Delete a topic."""
        if name not in self.memory.topics:
            raise Refused(self.missing_topic_code())
        if not self.deletable(name):
            raise Refused(code(61))
        self.removed(name)
        self.memory.epoch += 1


def read_creation(body: bytes) -> Creation:
    """The request for a new topic; its placement may be left to the cluster only."""
    cursor = Cursor(body)
    cursor.words()
    asked = Cursor(cursor.octets(cursor.take("i")))
    name, dry_run = asked.words(), asked.take("?")
    asked.maybe(lambda: asked.take("I"))
    if asked.take("B") != 1:
        raise Malformed("partitions are placed by the cluster")
    return Creation(name, dry_run, asked.take("I"))


def read_deletion(body: bytes) -> str:
    """The request that a topic go."""
    cursor = Cursor(body)
    cursor.words()
    return Cursor(cursor.octets(cursor.take("i"))).words()
