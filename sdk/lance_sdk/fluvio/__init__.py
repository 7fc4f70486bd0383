"""A client for Fluvio: the published servers, and this project's own.

::

    from lance_sdk.fluvio import FluvioClient

    with FluvioClient("localhost:9003") as client:
        client.create_topic("orders", partitions=2)
        with client.producer("orders") as producer:
            producer.send(b"21.5", key="sensor-1")
        with client.consumer("orders", 0, stop_at_end=True) as consumer:
            for record in consumer:
                print(record.offset, record.key, record.value)

`AsyncFluvioClient` is the same for tasks. Snappy and Zstandard need the extra ``fluvio``.
"""

from lance_sdk.fluvio.aio import AsyncFluvioClient, AsyncFluvioConsumer, AsyncFluvioProducer
from lance_sdk.fluvio.client import FluvioClient
from lance_sdk.fluvio.consumer import FluvioConsumer
from lance_sdk.fluvio.errors import FluvioRefused
from lance_sdk.fluvio.producer import FluvioProducer
from lance_sdk.fluvio.types import (
    FluvioSettings,
    FluvioTopic,
    Offsets,
    ReceivedRecord,
    StoredRecords,
)

__all__ = [
    "AsyncFluvioClient",
    "AsyncFluvioConsumer",
    "AsyncFluvioProducer",
    "FluvioClient",
    "FluvioConsumer",
    "FluvioProducer",
    "FluvioRefused",
    "FluvioSettings",
    "FluvioTopic",
    "Offsets",
    "ReceivedRecord",
    "StoredRecords",
]
