"""What a type checker knows of a program that uses the package; mypy reads this, nobody runs it."""

from collections.abc import AsyncIterator, Iterator
from datetime import datetime
from typing import Any, assert_type

from lance_sdk import (
    AsyncClient,
    AsyncConsumer,
    AsyncDeliveries,
    AsyncDelivery,
    AsyncProducer,
    Client,
    CloseReport,
    Consumer,
    Deliveries,
    Delivery,
    Hooks,
    Producer,
    Record,
    RecordBatch,
    RecordMetadata,
    RetryPolicy,
    TopicInfo,
)
from lance_sdk._api.arguments.sendable import Plain
from lance_sdk.hooks import BatchAckedEvent


class Latency(Hooks):
    """Events have types."""

    def on_batch_acked(self, event: BatchAckedEvent) -> None:
        """Look at one."""
        assert_type(event.seconds, float)


class Order:
    """What an application sends with ``values=``."""


def values(order: Order) -> None:
    """What a producer takes goes by its ``values=``."""
    plain = Producer("lance://h/t", linger=0.1)
    plain.send(None, key="k")
    plain.send(bytearray(b"x"))
    plain.send("text")  # type: ignore[arg-type]
    plain.send_many([{"id": 7}])  # type: ignore[list-item]
    typed = Producer("lance://h/t", values=Order)
    typed.send(order)
    typed.send({"id": 7})  # type: ignore[arg-type]
    Producer("lance://h/t", values="json").send({"id": 7})
    AsyncProducer("lance://h/t").send("text")  # type: ignore[arg-type, unused-coroutine]


def threads(when: datetime) -> None:
    """The sync API classes."""
    with Producer("lance://h/t", retry=RetryPolicy(), hooks=Latency()) as producer:
        assert_type(producer, Producer[Plain])
        delivery = producer.send(b"x", key="k", timestamp=when)
        assert_type(delivery, Delivery)
        assert_type(delivery.result(1.0), RecordMetadata)
        assert_type(producer.send_many([b"x"]), Deliveries)
        assert_type(producer.close(), CloseReport)
    with Consumer("lance://h/t", start=when, mode="push") as consumer:
        for record in consumer:
            assert_type(record, Record)
            assert_type(record.key, bytes | None)
            assert_type(record.timestamp, datetime | None)
            assert_type(record.text(), str)
        assert_type(consumer.batches(), Iterator[RecordBatch])
        assert_type(consumer.values(), Iterator[Any])
        assert_type(consumer.poll(1.0), RecordBatch | None)
        assert_type(consumer.commit(), int)
        assert_type(consumer.lag, int | None)
    with Client("lance://h") as client:
        assert_type(client.list_topics(), list[TopicInfo])


async def tasks() -> None:
    """The async API classes."""
    async with AsyncProducer("lance://h/t", compression="auto") as producer:
        delivery = await producer.send(b"x")
        assert_type(delivery, AsyncDelivery)
        assert_type(await delivery, RecordMetadata)
        assert_type(await producer.send_many([b"x"]), AsyncDeliveries)
    async with AsyncConsumer("lance://h/t") as consumer:
        async for record in consumer:
            assert_type(record, Record)
        assert_type(consumer.batches(), AsyncIterator[RecordBatch])
        assert_type(await consumer.poll(), RecordBatch | None)
    async with AsyncClient("lance://h") as client:
        assert_type(await client.ping(), float)
