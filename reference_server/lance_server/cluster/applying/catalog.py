"""The catalog of a cluster: which topics there are, and which ids and names were ever given away.

It belongs to shard 0. A topic's id is that of its order among all creations (AMB-30).
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Self

from lance_server.cluster.applying.results import Result, Status
from lance_spec.bodies import take_int, take_str
from lance_spec.errors import DecodeError
from lance_spec.limits import DEFAULT_TOPIC_ID
from lance_spec.messages.replication import CreateTopic, TopicBegins

_BODY: Final = "mark"
_MAX_RETIRED_NAMES: Final = 10_000


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """A topic as it was created.

    Attributes:
        name: its name, in Unicode NFC.
        created_at: seconds since the Unix epoch.
        topic_epoch: rises with each creation of the same name, from 1.
        max_age_secs: retention by age when it was created.
        max_bytes: retention by size when it was created.
        shard: the shard that it belongs to.
    """

    name: str
    created_at: int
    topic_epoch: int
    max_age_secs: int
    max_bytes: int
    shard: int

    def begins(self, topic_id: int) -> TopicBegins:
        """Return the record that begins the topic in its shard."""
        return TopicBegins(
            topic_id=topic_id,
            name=self.name,
            created_at=self.created_at,
            topic_epoch=self.topic_epoch,
            max_age_secs=self.max_age_secs,
            max_bytes=self.max_bytes,
        )

    @classmethod
    def from_body(cls, body: Mapping[str, Any]) -> Self:
        """Return the entry that a mark holds.

        Raises:
            DecodeError: a field is missing or has another type.
        """
        numbers = ("created_at", "topic_epoch", "max_age_secs", "max_bytes", "shard")
        values = {name: take_int(body, name, _BODY) for name in numbers}
        return cls(name=take_str(body, "name", _BODY), **values)


@dataclass(slots=True)
class Catalog:
    """Which topics there are.

    Attributes:
        topics: by id.
        next_id: the id of the next topic.
        epoch_floor: no name that is not retired had a higher epoch.
        retired: the last epoch of names that are free again, oldest first.
    """

    topics: dict[int, CatalogEntry] = field(default_factory=dict)
    next_id: int = 1
    epoch_floor: int = 0
    retired: dict[str, int] = field(default_factory=dict)
    _by_name: dict[str, int] = field(default_factory=dict)

    def create(self, body: CreateTopic, created_ns: int, max_topics: int, shards: int) -> Result:
        """Create a topic, unless there is one of its name, or are too many.

        Args:
            body: the record.
            created_ns: when, by the log's time.
            max_topics: most topics, the default one not counted.
            shards: how many shards there are.
        """
        existing = self._by_name.get(body.name)
        if existing is not None:
            return Result(Status.EXISTS, existing)
        if len(self.topics) > max_topics or self.next_id >= 2**32:
            return Result(Status.FULL)
        topic_id = self.next_id
        self.next_id += 1
        epoch = max(self.retired.get(body.name, 0), self.epoch_floor) + 1
        shard = body.shard % shards
        self._add(
            topic_id,
            CatalogEntry(
                body.name,
                created_ns // 1_000_000_000,
                epoch,
                body.max_age_secs,
                body.max_bytes,
                shard,
            ),
        )
        return Result(Status.DONE, topic_id)

    def add_default(self, created_ns: int) -> None:
        """Add the topic that exists without being asked for (LWP section 6.1)."""
        entry = CatalogEntry("default", created_ns // 1_000_000_000, 1, 0, 0, 0)
        self.topics[DEFAULT_TOPIC_ID] = entry

    def _add(self, topic_id: int, entry: CatalogEntry) -> None:
        self.topics[topic_id] = entry
        self._by_name[entry.name] = topic_id

    def id_of(self, name: str) -> int | None:
        """Return the id of the topic with a name, or None."""
        return self._by_name.get(name)

    def delete(self, topic_id: int) -> Result:
        """Delete a topic; the default one stays."""
        if topic_id == DEFAULT_TOPIC_ID or topic_id not in self.topics:
            return Result(Status.NO_TOPIC, topic_id)
        entry = self.topics.pop(topic_id)
        del self._by_name[entry.name]
        self.retired.pop(entry.name, None)
        self.retired[entry.name] = entry.topic_epoch
        if len(self.retired) > _MAX_RETIRED_NAMES:
            oldest = next(iter(self.retired))
            self.epoch_floor = max(self.epoch_floor, self.retired.pop(oldest))
        return Result(Status.DONE, topic_id)

    def to_body(self) -> dict[str, Any]:
        """Return what `from_body` takes."""
        return {
            "topics": {str(key): asdict(entry) for key, entry in self.topics.items()},
            "next_id": self.next_id,
            "epoch_floor": self.epoch_floor,
            "retired": [[name, epoch] for name, epoch in self.retired.items()],
        }

    @classmethod
    def from_body(cls, body: Mapping[str, Any]) -> Self:
        """Return the catalog that a mark holds.

        Raises:
            DecodeError: a field is missing or has another type.
        """
        topics, retired = body.get("topics"), body.get("retired")
        if not isinstance(topics, dict) or not isinstance(retired, list):
            raise DecodeError(_BODY, "catalog", 0, "topics and retired names", repr(body)[:80])
        found = cls(
            next_id=take_int(body, "next_id", _BODY),
            epoch_floor=take_int(body, "epoch_floor", _BODY),
            retired={str(name): int(epoch) for name, epoch in retired},
        )
        for key, entry in topics.items():
            if int(key) == DEFAULT_TOPIC_ID:
                found.topics[DEFAULT_TOPIC_ID] = CatalogEntry.from_body(entry)
            else:
                found._add(int(key), CatalogEntry.from_body(entry))
        return found
