"""Our client while servers of a real cluster are killed and come back."""

import re
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from lance_sdk.errors import LanceError, TransportError
from lance_sdk.fluvio import AsyncFluvioClient, FluvioClient, Offsets, _topics
from lance_server.testing import eventually
from lance_spec.messages.fluvio import SpuResolution

from .cluster import HOST, Cluster


@pytest.fixture
def three(run: Path, tmp_path: Path) -> Iterator[Cluster]:
    """Return a cluster of three SPUs that know of each other."""
    with Cluster(run, tmp_path, spus=3) as running, FluvioClient(running.sc) as client:
        eventually(lambda: online(client) == 3, 60)
        yield running


def online(client: FluvioClient) -> int:
    """Return how many SPUs the SC reaches."""
    found = client.run(_topics.listed("SPU"))
    return sum(each.resolution is SpuResolution.ONLINE for each in found)


@pytest.fixture
def name() -> str:
    """Return a topic's name."""
    return f"t-{uuid.uuid4().hex[:12]}"


def leaders(client: FluvioClient, topic: str) -> list[tuple[str, int] | None]:
    """Return who leads each partition of a topic."""
    return [each.at for each in client.run(_topics.leaders(topic))]


def spu_at(cluster: Cluster, address: tuple[str, int] | None) -> int:
    """Return the number of the SPU at an address."""
    assert address is not None
    return cluster.number_at(address[1])


def created(sc: str, topic: str, partitions: int, replication: int = 1) -> None:
    """Create a topic, and wait until each partition has a leader that answers."""
    with FluvioClient(sc) as client:
        client.create_topic(topic, partitions=partitions, replication=replication)
        for partition in range(partitions):
            assert client.offsets(topic, partition) == Offsets(0, 0)


def test_an_idle_client_outlives_each_server(three: Cluster, name: str) -> None:
    """Calls to a dead server fail as LanceErrors; once it is back they succeed."""
    with FluvioClient(three.sc, retry_for=0) as client:
        created(three.sc, name, 1)
        producer = client.producer(name)
        producer.send(b"before")
        producer.flush()
        number = spu_at(three, leaders(client, name)[0])
        for server, again in (
            (f"spu-{number}", lambda: three.start_spu(number)),
            ("sc", three.start_sc),
        ):
            three.kill(server)
            for _ in range(3):
                with pytest.raises(TransportError, match=re.escape(HOST)):
                    client.offsets(name)
            again()
            with FluvioClient(three.sc) as other:
                eventually(lambda: online(other) == 3, 60)
    with FluvioClient(three.sc) as client:
        eventually(lambda: client.offsets(name) == Offsets(0, 1))


def test_a_call_waits_for_a_server_that_comes_back(three: Cluster, name: str) -> None:
    """Within `retry_for` an outage is a delay: of the SC, and of the SPU."""
    with FluvioClient(three.sc, retry_for=60) as client:
        created(three.sc, name, 1)
        producer = client.producer(name)
        producer.send(b"0")
        producer.flush()
        number = spu_at(three, leaders(client, name)[0])
        for server, again in (
            (f"spu-{number}", lambda: three.start_spu(number)),
            ("sc", three.start_sc),
        ):
            three.kill(server)
            back = threading.Timer(0.5, again)
            back.start()
            client.topics()
            producer.send(b"more")
            producer.flush()
            back.join()
            eventually(lambda: online(client) == 3, 60)
        assert client.offsets(name).end >= 3


def test_nothing_acknowledged_is_lost_while_an_spu_is_killed(three: Cluster, name: str) -> None:
    """A producer goes on through kills; a consumer gets each stored record once, in order."""
    with FluvioClient(three.sc, retry_for=60, buffer_bytes=2000) as client:
        created(three.sc, name, 1)
        number = spu_at(three, leaders(client, name)[0])
        got: list[tuple[int, bytes]] = []
        with client.consumer(name) as consumer, client.producer(name) as producer:
            for index in range(600):
                producer.send(b"%06d" % index + b"x" * 100)
                if index % 200 == 100:
                    producer.flush()
                    three.kill(f"spu-{number}")
                    threading.Timer(0.3, lambda: three.start_spu(number)).start()
                if index % 50 == 0:
                    got += [(each.offset, each.value[:6]) for each in consumer.poll(0.01)]
            producer.flush()
            end = client.offsets(name).end
            while consumer.offset < end:
                got += [(each.offset, each.value[:6]) for each in consumer.poll(10)]
    assert [offset for offset, _ in got] == list(range(end))
    values = [value for _, value in got]
    assert sorted(set(values)) == [b"%06d" % index for index in range(600)]


def test_one_spu_down_does_not_stop_the_others(three: Cluster, name: str) -> None:
    """Partitions of other leaders are written and read; records without a key go there."""
    with FluvioClient(three.sc, retry_for=0) as client:
        created(three.sc, name, 6)
        found = [spu_at(three, each) for each in leaders(client, name)]
        assert set(found) == set(three.spus)
        down = found[0]
        three.kill(f"spu-{down}")
        eventually(lambda: down_is_known(client, name, found, down), 60)
        with client.producer(name) as producer:
            for index in range(40):
                producer.send(b"%d" % index)
        up = [partition for partition, number in enumerate(found) if number != down]
        assert sum(client.offsets(name, each).end for each in up) == 40
        three.start_spu(down)
    with FluvioClient(three.sc, retry_for=60) as client:
        assert client.offsets(name, 0) == Offsets(0, 0)


def down_is_known(client: FluvioClient, topic: str, found: list[int], down: int) -> bool:
    """Whether the SC knows that an SPU is away."""
    known = _topics.Leaders(topic, client.run(_topics.leaders(topic)))
    return list(known.available) == [at for at, each in enumerate(found) if each != down]


def test_a_moved_leader_is_followed(three: Cluster, name: str) -> None:
    """A replicated partition whose leader dies goes on at its new one, for both sides."""
    with FluvioClient(three.sc, retry_for=90) as client:
        created(three.sc, name, 1, replication=3)
        before = leaders(client, name)[0]
        down = spu_at(three, before)
        with client.consumer(name) as consumer:
            producer = client.producer(name)
            producer.send(b"before")
            producer.flush()
            assert [each.value for each in consumer.poll(60)] == [b"before"]
            three.kill(f"spu-{down}")
            producer.send(b"after")
            producer.flush()
            assert leaders(client, name)[0] != before
            three.start_spu(down)  # the cluster commits records when every replica is there
            assert [each.value for each in consumer.poll(60)] == [b"after"]


@pytest.mark.anyio
async def test_tasks_outlive_an_outage_while_idle(three: Cluster, name: str) -> None:
    """The async API does the same."""
    created(three.sc, name, 1)
    async with AsyncFluvioClient(three.sc, retry_for=0) as client:
        await client.topics()
        three.kill("sc")
        for _ in range(3):
            with pytest.raises(LanceError, match=re.escape(HOST)):
                await client.topics()
        three.start_sc()
    async with AsyncFluvioClient(three.sc) as client:
        assert await client.offsets(name) == Offsets(0, 0)
