"""The published client does the same with our listener and with a real cluster."""

from itertools import islice
from typing import Any

import pytest

fluvio: Any = pytest.importorskip("fluvio", reason="the published client is not installed")


def config(sc: str) -> Any:
    """Return what the published client connects with."""
    return fluvio.FluvioConfig.new(sc)


def admin(sc: str) -> Any:
    """Return a published client for administration."""
    return fluvio.FluvioAdmin.connect_with_config(config(sc))


def spec(partitions: int = 1) -> Any:
    """Return what a topic is to be like."""
    return fluvio.TopicSpec.create().with_partitions(partitions).build()


def test_there_are_no_smart_modules(sc: str) -> None:
    """They are listed as none, and the client goes on."""
    client = admin(sc)
    assert client.list_smartmodules([]) == []
    assert client.all_topics() is not None


def test_a_name_in_a_list_stands_for_all_that_begin_with_it(sc: str, topic: str) -> None:
    """The servers' own topic is not among the users'."""
    client = admin(sc)
    for end in ("a", "b"):
        client.create_topic(f"{topic}-{end}", spec())
    found = sorted(each.name() for each in client.list_topics([topic]))
    assert found == [f"{topic}-a", f"{topic}-b"]
    assert "consumer-offset" not in [each.name() for each in client.all_topics()]


@pytest.mark.parametrize("name", ["UPPER", "a_b", "a.b", "a b", "-a", "a-", "x" * 64])
def test_a_name_against_the_rule_is_refused(sc: str, name: str) -> None:
    """No program could use it."""
    client = admin(sc)
    with pytest.raises(Exception, match=r"(?i)invalid topic name|topicinvalidname|topic name"):
        client.create_topic(name, spec())


@pytest.mark.parametrize("partitions", [2, 7])
def test_keys_go_where_our_client_puts_them(sc: str, topic: str, partitions: int) -> None:
    """Programs with either client share a topic."""
    from lance_spec.codec.siphash import fluvio_partition  # noqa: PLC0415 - one use

    admin(sc).create_topic(topic, spec(partitions))
    producer = fluvio.Fluvio.connect_with_config(config(sc)).topic_producer(topic)
    keys = [f"key {number}" for number in range(20)]
    sent = [producer.send(key.encode(), b"v") for key in keys]
    producer.flush()
    assert [each.wait().partition_id() for each in sent] == [
        fluvio_partition(key.encode(), partitions) for key in keys
    ]


def test_records_come_back(sc: str, topic: str) -> None:
    """What one published client produced another one consumes."""
    admin(sc).create_topic(topic, spec())
    client = fluvio.Fluvio.connect_with_config(config(sc))
    producer = client.topic_producer(topic)
    for number in range(100):
        producer.send(b"%d" % number, b"value %d" % number)
    producer.flush()
    found = islice(client.partition_consumer(topic, 0).stream(fluvio.Offset.beginning()), 100)
    assert [(each.offset(), each.value_string()) for each in found] == [
        (number, f"value {number}") for number in range(100)
    ]
