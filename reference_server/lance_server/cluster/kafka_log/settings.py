"""Settings of a Kafka topic and its brokers: which keep what an acknowledgement promises."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from lance_server.cluster.replicated_log import MAX_RECORD

_ENVELOPE: Final = 1024
"""Bytes that Kafka may add to a record."""
LARGEST_MESSAGE: Final = MAX_RECORD + _ENVELOPE
"""Bytes of the largest message that the topic must take."""
_REPLICAS: Final = 3
_IN_SYNC: Final = 2
_NO_ID: Final = frozenset({"", "AAAAAAAAAAAAAAAAAAAAAA"})
_HARD_SYNC: Final = "1"

NEW_TOPIC: Final[Mapping[str, str]] = {
    "cleanup.policy": "delete",
    "retention.ms": "-1",
    "retention.bytes": "-1",
    "message.timestamp.type": "LogAppendTime",
    "min.insync.replicas": str(_IN_SYNC),
    "unclean.leader.election.enable": "false",
    "max.message.bytes": str(18 * 1024 * 1024),
    "flush.messages": _HARD_SYNC,
}
"""The settings of a topic that `lwp cluster init` makes."""


@dataclass(frozen=True, slots=True)
class KafkaAddress:
    """A topic of Kafka, and how its brokers are reached.

    Attributes:
        brokers: addresses to begin with, separated by commas.
        topic: its name.
        settings: further settings of the client, as librdkafka names them.
    """

    brokers: str
    topic: str
    settings: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __str__(self) -> str:
        return f"kafka://{self.brokers}/{self.topic}"


@dataclass(frozen=True, slots=True)
class TopicFacts:
    """What Kafka says of a topic.

    Attributes:
        topic: its name.
        topic_id: its id; a topic that is made again has another.
        replicas: how many brokers keep each partition.
        settings: the topic's, with those that it takes over from the brokers.
        brokers: settings of the brokers that answered, by number.
    """

    topic: str
    topic_id: str
    replicas: Sequence[int]
    settings: Mapping[str, str]
    brokers: Mapping[int, Mapping[str, str]]

    @property
    def is_synced(self) -> bool:
        """Whether brokers sync each record before they acknowledge it."""
        return self.settings.get("flush.messages") == _HARD_SYNC


def problems(facts: TopicFacts) -> list[str]:
    """Return what breaks the promise of an acknowledgement, each with what to set instead."""
    return [*_topic_problems(facts), *_broker_problems(facts)]


def _topic_problems(facts: TopicFacts) -> Iterator[str]:
    fewest = min(facts.replicas, default=0)
    if fewest < _REPLICAS:
        yield f"a partition has {fewest} replicas; give the topic a replication factor of 3"
    yield from _number_problem(facts, "min.insync.replicas", _IN_SYNC)
    yield from _number_problem(facts, "max.message.bytes", LARGEST_MESSAGE)
    for name, wanted in (
        ("unclean.leader.election.enable", "false"),
        ("cleanup.policy", "delete"),
        ("retention.ms", "-1"),
        ("retention.bytes", "-1"),
        ("message.timestamp.type", "LogAppendTime"),
    ):
        told = facts.settings.get(name)
        if told != wanted:
            yield f"{name} is {_shown(told)}; set it to {wanted}"
    if not facts.is_synced:
        told = facts.settings.get("flush.messages")
        yield (
            f"flush.messages is {_shown(told)}: brokers acknowledge records that no disk has; set "
            "it to 1"
        )
    if facts.topic_id in _NO_ID:
        yield (
            "its brokers give topics no id, so a topic that is made again would not be noticed; "
            "use brokers of Kafka 2.8 or later"
        )


def _number_problem(facts: TopicFacts, name: str, least: int) -> Iterator[str]:
    told = facts.settings.get(name, "")
    if not told.isdecimal() or int(told) < least:
        yield f"{name} is {_shown(told)}; set it to {least} or more"


def _shown(told: str | None) -> str:
    return told or "not known"


def _broker_problems(facts: TopicFacts) -> Iterator[str]:
    name = "socket.request.max.bytes"
    if not facts.brokers:
        yield "no broker told its settings; allow the server's user to describe them"
    for number, settings in sorted(facts.brokers.items()):
        told = settings.get(name, "")
        if not told.isdecimal() or int(told) < LARGEST_MESSAGE:
            yield (
                f"{name} of broker {number} is {_shown(told)}; set it to {LARGEST_MESSAGE} or more"
            )


def durability(facts: TopicFacts) -> str:
    """Return for operators which losses the topic's settings survive, and which are wrong."""
    found = problems(facts)
    wrong = f" Acknowledged records can be lost: {'; '.join(found)}." if found else ""
    return _survived(facts) + wrong


def _survived(facts: TopicFacts) -> str:
    replicas = min(facts.replicas, default=0)
    told = facts.settings.get("min.insync.replicas", "1")
    in_sync = min(replicas, int(told) if told.isdecimal() else 1)
    losable = max(0, in_sync - 1)
    words = f"{replicas} broker(s) keep each record, {in_sync} of them before it is acknowledged"
    survived = f"it survives the loss of {losable} of them"
    if facts.is_synced:
        return f"{words}, on disk: {survived}, and a loss of power everywhere."
    return f"{words}, in memory: {survived}, but not a loss of power of all that have it."
