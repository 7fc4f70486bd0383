"""Topics that may have partitions, for the commands that read and write records (AMB-59)."""

import dataclasses
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any, Final

import click

if TYPE_CHECKING:
    from lance_sdk import Consumer, Producer, TopicsConsumer
    from lance_sdk.partitions import PartitionedProducer
    from lance_sdk.types import PartitionedTopic, RecordBatch
    from lance_sdk.url import URL

partition_option: Final = click.option(
    "--partition",
    type=click.IntRange(min=0),
    metavar="N",
    help="Read only partition N of a partitioned topic  [default: all partitions]",
)


def partitions_of(url: "URL", options: Mapping[str, Any]) -> "PartitionedTopic | None":
    """Return how the server describes a topic; None where that has no partitions.

    Args:
        url: the topic.
        options: of a client, a consumer or a producer.
    """
    from lance_sdk import Client  # noqa: PLC0415 - the network is loaded when it is needed
    from lance_sdk.errors import TopicNotFound  # noqa: PLC0415 - as above
    from lance_sdk.topics.routing import shared_options  # noqa: PLC0415 - as above

    if url.topic is None:
        return None  # a number is that of one topic
    with suppress(TopicNotFound), Client(url, **shared_options(options)) as client:
        return client.get_partitioned_topic(url.topic)
    return None


def partition_url(url: "URL", partition: int | None, options: Mapping[str, Any]) -> "URL":
    """Return the URL of the partition that ``--partition`` names, or of the whole topic.

    Raises:
        click.UsageError: the topic has no such partition.
    """
    if partition is None:
        return url
    found = partitions_of(url, options)
    if found is None:
        name = url.topic or f"#{url.topic_id}"
        raise click.UsageError(
            f"no partitioned topic {name} is at {url.server_url()}; leave out --partition"
        )
    if partition >= found.partitions:
        raise click.UsageError(
            f"topic {url.topic!r} has no partition {partition}; the last one is "
            f"{found.partitions - 1}"
        )
    return at_partition(url, found.names[partition])


def at_partition(url: "URL", name: str) -> "URL":
    """Return the URL of a topic's partition by its name."""
    return dataclasses.replace(url, topic=name)


def open_consumer(
    stack: ExitStack, url: "URL", options: dict[str, Any], most: int | None = None
) -> "Consumer | WholeTopic":
    """Return a consumer of a topic, or of all partitions of one, opened.

    Args:
        stack: closes it.
        url: the topic.
        options: of the consumer.
        most: how many records are wanted in all; None for as many as there are.
    """
    from lance_sdk import Consumer  # noqa: PLC0415 - the network is loaded when it is needed
    from lance_sdk.errors import TopicNotFound  # noqa: PLC0415 - as above

    try:
        return stack.enter_context(Consumer(url, **options))
    except TopicNotFound:
        if partitions_of(url, options) is None:
            raise
    from lance_sdk import TopicsConsumer  # noqa: PLC0415 - as above

    return WholeTopic(stack.enter_context(TopicsConsumer(url, **options)), most)


def open_producer(
    stack: ExitStack, url: "URL", options: dict[str, Any]
) -> "Producer[Any] | PartitionedProducer":
    """Return a producer of a topic, or of the partitions of one, opened.

    Args:
        stack: closes it.
        url: the topic.
        options: of the producer.
    """
    from lance_sdk import Producer  # noqa: PLC0415 - the network is loaded when it is needed
    from lance_sdk.errors import TopicNotFound  # noqa: PLC0415 - as above

    try:
        return stack.enter_context(Producer(url, **options))
    except TopicNotFound:
        if partitions_of(url, options) is None:
            raise
    from lance_sdk.partitions import PartitionedProducer  # noqa: PLC0415 - as above

    return stack.enter_context(PartitionedProducer(url, **options))


class WholeTopic:
    """All partitions of a topic, as one consumer.

    Args:
        consumer: reads them.
        most: how many records are wanted in all; None for as many as there are.
    """

    def __init__(self, consumer: "TopicsConsumer", most: int | None) -> None:
        self._consumer = consumer
        self._left = most

    def poll(self, timeout: float) -> "RecordBatch | None":
        """Return the next records; never more than are wanted, as all of them are committed."""
        batch = self._consumer.poll(timeout, max_records=self._left)
        if batch is not None and self._left is not None:
            self._left -= batch.count
        return batch

    def commit(self, _offset: int) -> None:
        """Commit everything that was handed out."""
        self._consumer.commit()
