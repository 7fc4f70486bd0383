"""The programs in Kafka's clients on the page about moving from them, run as they stand there."""

from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from tests.docs.snippets import migrating, printed

from lance_server.testing.kafka_brokers import KafkaCluster


@pytest.mark.parametrize(
    ("client", "topic", "expected"),
    [("confluent_kafka", "orders", "b'order 1'"), ("aiokafka", "clicks", "b'click 1'")],
)
def test_the_program_stores_a_record_and_reads_it(
    client: str, topic: str, expected: str, broker: KafkaCluster, tmp_path: Path
) -> None:
    """Against a real broker, to which the page's address is changed."""
    pytest.importorskip(client, reason=f"needs {client}: tox run -e cluster")
    admin = AdminClient({"bootstrap.servers": broker.bootstrap()})
    admin.create_topics([NewTopic(topic, num_partitions=1, replication_factor=1)])[topic].result()
    program = migrating(client).replace("localhost:9092", broker.bootstrap())
    assert printed(program, tmp_path).splitlines()[-1] == expected
