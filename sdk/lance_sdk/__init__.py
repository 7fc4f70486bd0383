"""The client of the LANCE streaming log.

::

    from lance_sdk import Consumer, Producer

    with Producer("lance://localhost:1992/orders", create_topic=True) as producer:
        producer.send(b"first")

    with Consumer("lance://localhost:1992/orders", stop_at_end=True) as consumer:
        for record in consumer:
            print(record.offset, record.value)

The same with ``await``: `AsyncProducer`, `AsyncConsumer`, `AsyncClient`, on asyncio and trio.
Names load when they are first used, so importing the package costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lance_sdk.aio.client import AsyncClient
    from lance_sdk.aio.consumer import AsyncConsumer
    from lance_sdk.aio.dead_letters import AsyncDeadLetters
    from lance_sdk.aio.delivery import AsyncDeliveries, AsyncDelivery
    from lance_sdk.aio.producer import AsyncProducer
    from lance_sdk.aio.topics_consumer import AsyncTopicsConsumer
    from lance_sdk.aio.topics_producer import AsyncTopicsProducer
    from lance_sdk.client import Client
    from lance_sdk.config import ClientConfig, ConsumerConfig, ProducerConfig, RetryPolicy
    from lance_sdk.consumer import Consumer
    from lance_sdk.dead_letters import DeadLetter, DeadLetters
    from lance_sdk.delivery import Deliveries, Delivery
    from lance_sdk.errors import (
        ConfigError,
        ConnectFailed,
        DeliveryError,
        LanceError,
        ServerError,
        TopicNotFound,
    )
    from lance_sdk.groups.aio import AsyncGroupConsumer
    from lance_sdk.groups.consumer import GroupConsumer
    from lance_sdk.groups.coordinator import Coordinator
    from lance_sdk.hooks import Hooks
    from lance_sdk.producer import Producer
    from lance_sdk.topics.consumer import TopicsConsumer
    from lance_sdk.topics.producer import TopicsProducer
    from lance_sdk.types import CloseReport, PartitionedTopic, Record, RecordBatch, RecordMetadata
    from lance_sdk.url import URL
    from lance_spec.bodies import ClusterStatus, TopicInfo
    from lance_spec.enums import ErrorCode, RecordType

__version__ = "0.1.0"

__all__ = [
    "URL",
    "AsyncClient",
    "AsyncConsumer",
    "AsyncDeadLetters",
    "AsyncDeliveries",
    "AsyncDelivery",
    "AsyncGroupConsumer",
    "AsyncProducer",
    "AsyncTopicsConsumer",
    "AsyncTopicsProducer",
    "Client",
    "ClientConfig",
    "CloseReport",
    "ClusterStatus",
    "ConfigError",
    "ConnectFailed",
    "Consumer",
    "ConsumerConfig",
    "Coordinator",
    "DeadLetter",
    "DeadLetters",
    "Deliveries",
    "Delivery",
    "DeliveryError",
    "ErrorCode",
    "GroupConsumer",
    "Hooks",
    "LanceError",
    "PartitionedTopic",
    "Producer",
    "ProducerConfig",
    "Record",
    "RecordBatch",
    "RecordMetadata",
    "RecordType",
    "RetryPolicy",
    "ServerError",
    "TopicInfo",
    "TopicNotFound",
    "TopicsConsumer",
    "TopicsProducer",
    "__version__",
]

_HOMES = {
    "lance_sdk.aio.client": ("AsyncClient",),
    "lance_sdk.aio.consumer": ("AsyncConsumer",),
    "lance_sdk.aio.dead_letters": ("AsyncDeadLetters",),
    "lance_sdk.aio.delivery": ("AsyncDeliveries", "AsyncDelivery"),
    "lance_sdk.aio.producer": ("AsyncProducer",),
    "lance_sdk.aio.topics_consumer": ("AsyncTopicsConsumer",),
    "lance_sdk.aio.topics_producer": ("AsyncTopicsProducer",),
    "lance_sdk.client": ("Client",),
    "lance_sdk.config": ("ClientConfig", "ConsumerConfig", "ProducerConfig", "RetryPolicy"),
    "lance_sdk.consumer": ("Consumer",),
    "lance_sdk.dead_letters": ("DeadLetter", "DeadLetters"),
    "lance_sdk.delivery": ("Deliveries", "Delivery"),
    "lance_sdk.errors": (
        "ConfigError",
        "ConnectFailed",
        "DeliveryError",
        "LanceError",
        "ServerError",
        "TopicNotFound",
    ),
    "lance_sdk.hooks": ("Hooks",),
    "lance_sdk.groups.aio": ("AsyncGroupConsumer",),
    "lance_sdk.groups.consumer": ("GroupConsumer",),
    "lance_sdk.groups.coordinator": ("Coordinator",),
    "lance_sdk.producer": ("Producer",),
    "lance_sdk.topics.consumer": ("TopicsConsumer",),
    "lance_sdk.topics.producer": ("TopicsProducer",),
    "lance_sdk.types": (
        "CloseReport",
        "PartitionedTopic",
        "Record",
        "RecordBatch",
        "RecordMetadata",
    ),
    "lance_sdk.url": ("URL",),
    "lance_spec.bodies": ("ClusterStatus", "TopicInfo"),
    "lance_spec.enums": ("ErrorCode", "RecordType"),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Load a public name from its home module at first use (PEP 562)."""
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
