"""Clients of Kafka: their settings, what brokers answer, and what the answers mean."""

import logging
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from lance_server.cluster.kafka_log.settings import KafkaAddress, TopicFacts
from lance_server.cluster.replicated_log import (
    LogUnavailableError,
    ReplicatedLogError,
    UnsafeSettingsError,
)
from lance_server.errors import ConfigError

T = TypeVar("T")
_log = logging.getLogger(__name__)
ASK_SECONDS: Final = 5.0
OPEN_SECONDS: Final = 30.0

CLIENT: Final[Mapping[str, Any]] = {
    "client.id": "lance-server",
    "log_level": 2,  # what matters is told by calls that fail
    "socket.keepalive.enable": True,
    "socket.timeout.ms": 6000,
    "socket.connection.setup.timeout.ms": 3000,
    "reconnect.backoff.ms": 50,
    "reconnect.backoff.max.ms": 1000,
    "topic.metadata.refresh.interval.ms": 10_000,
    "topic.metadata.refresh.fast.interval.ms": 100,
}


_PASSING: Final = frozenset(
    {
        KafkaError.BROKER_NOT_AVAILABLE,
        KafkaError.FENCED_LEADER_EPOCH,
        KafkaError.KAFKA_STORAGE_ERROR,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NETWORK_EXCEPTION,
        KafkaError.NOT_CONTROLLER,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.OFFSET_NOT_AVAILABLE,
        KafkaError.REPLICA_NOT_AVAILABLE,
        KafkaError.REQUEST_TIMED_OUT,
        KafkaError.UNKNOWN_LEADER_EPOCH,
    }
)
"""What brokers answer while they elect a leader; the library does not call all of it retriable."""


class LogMissingError(LogUnavailableError):
    """The brokers have no topic of this name."""


def read_facts(address: KafkaAddress) -> tuple[TopicFacts, str]:
    """Ask the brokers about a topic; return what they say, and its identity.

    Raises:
        LogMissingError: there is no such topic.
        LogUnavailableError: they cannot be reached.
        UnsafeSettingsError: they do not tell the topic's settings.
    """
    admin = make(AdminClient, {**CLIENT, **address.settings}, address)
    topic_id, replicas = describe(admin, address)
    settings = topic_settings(admin, address)
    cluster = result(admin.describe_cluster(request_timeout=OPEN_SECONDS), address)
    brokers = {}
    for node in cluster.nodes:
        resource = ConfigResource(ResourceType.BROKER, str(node.id))
        try:
            brokers[node.id] = _settings_of(admin, resource, address)
        except ReplicatedLogError as error:  # that broker may be down
            _log.info("broker %d does not tell its settings: %s", node.id, error)
    facts = TopicFacts(address.topic, topic_id, replicas, settings, brokers)
    return facts, f"{cluster.cluster_id}/{address.topic}/{topic_id}"


def describe(admin: AdminClient, address: KafkaAddress) -> tuple[str, list[int]]:
    """Return a topic's id, and how many brokers keep each partition."""
    asked = admin.describe_topics(TopicCollection([address.topic]), request_timeout=ASK_SECONDS)[
        address.topic
    ]
    told = result(asked, address)
    partitions = sorted(told.partitions, key=lambda each: each.id)
    return str(told.topic_id), [len(each.replicas) for each in partitions]


def topic_settings(admin: AdminClient, address: KafkaAddress) -> dict[str, str]:
    """Return a topic's settings, with those that it takes over from the brokers.

    Raises:
        LogUnavailableError: the brokers cannot be reached.
        UnsafeSettingsError: they do not tell them.
    """
    return _settings_of(admin, ConfigResource(ResourceType.TOPIC, address.topic), address)


def _settings_of(
    admin: AdminClient, resource: ConfigResource, address: KafkaAddress
) -> dict[str, str]:
    (asked,) = admin.describe_configs([resource], request_timeout=ASK_SECONDS).values()
    try:
        told = result(asked, address)
    except LogUnavailableError:
        raise
    except ReplicatedLogError as error:
        raise UnsafeSettingsError(
            f"{error}: its settings cannot be read, so the server cannot check them; allow "
            "the server's "
            "user to describe them"
        ) from error
    return {name: entry.value for name, entry in told.items() if entry.value is not None}


def result(future: Any, address: KafkaAddress) -> Any:
    """Return what brokers answered.

    Raises:
        LogMissingError: there is no such topic.
        LogUnavailableError: they did not answer.
        ReplicatedLogError: they refused.
    """
    try:
        return future.result(OPEN_SECONDS)
    except KafkaException as error:
        told: KafkaError = error.args[0]
        if told.code() in {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC}:  # noqa: SLF001
            raise LogMissingError(
                f"{address.brokers} has no topic '{address.topic}'; create the cluster with "
                f"`lwp cluster init {address}`, or correct the address"
            ) from error
        if told.retriable() or told.code() < 0 or told.code() in _PASSING:
            raise LogUnavailableError(f"{address} cannot be reached: {told.str()}") from error
        raise ReplicatedLogError(f"{address}: {told.str()}") from error
    except TimeoutError as error:
        raise LogUnavailableError(f"{address} cannot be reached: no answer in time") from error


def make(
    kind: Callable[[dict[str, Any]], T], settings: Mapping[str, Any], address: KafkaAddress
) -> T:
    """Make a client.

    Raises:
        ConfigError: it does not take a setting.
    """
    try:
        return kind({**settings, "bootstrap.servers": address.brokers})
    except (KafkaException, ValueError, TypeError) as error:
        raise ConfigError(
            f"{address}: a setting of the log's client is wrong: {told_by(error)}"
        ) from error


def told_by(error: Exception) -> str:
    """Return what the library says of an error."""
    first = error.args[0] if error.args else error
    return first.str() if isinstance(first, KafkaError) else str(first)
