"""Topics of several partitions: records of one key keep their order (AMB-59).

A topic ``orders`` of eight partitions is the topics ``orders-0`` to ``orders-7``, which the server
creates and deletes as one. A record's key decides its partition as Kafka's default partitioner
does, or as the topic's description says; records without a key take turns::

    from lance_sdk import Client
    from lance_sdk.partitions import PartitionedProducer

    with Client("lance://localhost:1992") as client:
        client.create_topic("orders", partitions=8)
    with PartitionedProducer("lance://localhost:1992/orders") as producer:
        producer.send(b"paid", key=b"order-17")

Readers take the name: ``GroupConsumer(..., topics=["orders"])`` shares the partitions among the
members of a group, `lance_sdk.TopicsConsumer` reads all of them. `lance_sdk.TopicsProducer` writes
to several topics.

On a server that keeps no descriptions the names are given: ``partition_names("orders", 8)`` to a
producer and to the members of a group. Whoever writes must use the same names in the same order,
and the same partitioner: with another number of partitions a key moves, and its order is lost.
"""

from lance_sdk.topics.partitioned import PartitionedProducer
from lance_sdk.topics.routing import Partitioner, murmur2, partition_names, partition_of

__all__ = ["PartitionedProducer", "Partitioner", "murmur2", "partition_names", "partition_of"]
