"""``lwp bridge`` between our server and a real cluster whose SPU is killed again and again."""

import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from lance_sdk import Client, Consumer, Producer
from lance_sdk.errors import TopicNotFound
from lance_sdk.fluvio import FluvioClient
from lance_server.testing import ServerProcess, eventually

from .cluster import Cluster

RECORDS = 30_000
KILLS = 5
BATCH = 64 * 1024 // 100 + 1
"""Records of 100 bytes in one batch of the bridge."""
VALUES = [b"%0100d" % number for number in range(RECORDS)]


@contextmanager
def bridging(*arguments: str) -> Iterator["subprocess.Popen[bytes]"]:
    """Run the command in a process of its own."""
    command = [sys.executable, "-m", "lance_sdk.cli", "bridge", *arguments]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        try:
            yield process
        finally:
            process.kill()


def disturbed(
    cluster: Cluster, fill: Callable[[Sequence[bytes]], None], copied: Callable[[], int]
) -> None:
    """Fill the source in parts; kill the SPU as soon as something of each part was copied."""
    (spu,) = cluster.spus
    for part in batched(VALUES, RECORDS // KILLS):
        before = copied()
        fill(part)
        eventually(lambda: copied() > before, 60)  # noqa: B023 - it is over at once
        cluster.kill(f"spu-{spu}")
        cluster.start_spu(spu)


def batched(values: Sequence[bytes], size: int) -> Iterator[Sequence[bytes]]:
    """Yield parts of a list."""
    return (values[at : at + size] for at in range(0, len(values), size))


@pytest.fixture
def own(run: Path, tmp_path: Path) -> Iterator[Cluster]:
    """Return a cluster that may be disturbed."""
    directory = tmp_path / "cluster"
    directory.mkdir()
    with Cluster(run, directory) as cluster:
        yield cluster


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    """Return where our server is."""
    with ServerProcess.running(tmp_path / "data") as server:
        yield "lance://{}:{}".format(*server.address)


def in_the_log(url: str) -> int:
    """Return how many records our topic has."""
    with Client(url) as client, suppress(TopicNotFound):
        return client.get_topic("copied").record_count or 0
    return 0


def test_kills_of_a_source_double_nothing(own: Cluster, url: str, tmp_path: Path) -> None:
    """From the cluster into our log: every record that the cluster has, once, in order."""
    with FluvioClient(own.sc, retry_for=60) as client:
        client.create_topic("orders")
        producer = client.producer("orders")

        def fill(values: Sequence[bytes]) -> None:
            for value in values:
                producer.send(value)
            producer.flush()

        state = str(tmp_path / "state")
        ends = f"fluvio://{own.sc}/orders", f"{url}/copied"
        with bridging(*ends, "--create-topic", "--follow", "--state", state):
            disturbed(own, fill, lambda: in_the_log(url))
            end = client.offsets("orders").end
            eventually(lambda: in_the_log(url) >= end, 100)
        with client.consumer("orders", stop_at_end=True) as consumer:
            there = [each.value for each in consumer]
    with Consumer(f"{url}/copied", start="beginning", stop_at_end=True) as copies:
        assert [each.value for each in copies] == there
    assert set(there) == set(VALUES)


def test_kills_of_a_target_double_one_batch_at_most(own: Cluster, url: str, tmp_path: Path) -> None:
    """From our log into the cluster: nothing is missing, and a kill doubles one batch at most."""
    with (
        Producer(f"{url}/orders", create_topic=True) as producer,
        FluvioClient(own.sc, retry_for=60) as client,
    ):
        client.create_topic("copied")

        def fill(values: Sequence[bytes]) -> None:
            for value in values:
                producer.send(value)
            producer.flush()

        fill(VALUES[:1])
        state = str(tmp_path / "state")
        with bridging(f"{url}/orders", f"fluvio://{own.sc}/copied", "--follow", "--state", state):
            disturbed(own, fill, lambda: client.offsets("copied").end)
            with client.consumer("copied") as consumer:
                found = Counter[bytes]()
                while len(found) < RECORDS:
                    found.update(each.value for each in consumer.poll(60))
    assert set(found) == set(VALUES)
    assert found.total() - RECORDS - 1 <= KILLS * BATCH
