"""``lwp bridge`` while both servers and the command itself are killed again and again.

The Fluvio end is our listener, and a real cluster. The environment variable LANCE_BRIDGE_KILLS
says how often; without it nothing is run here.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.restarted import RestartedBridge, RestartedServer

from lance_sdk import Client, Consumer, Producer
from lance_sdk.errors import TopicNotFound
from lance_sdk.fluvio import FluvioClient
from lance_server.testing import eventually

from .cluster import Cluster
from .conftest import OPTIONS

KILLS = int(os.environ.get("LANCE_BRIDGE_KILLS", "0"))
PART = 3_000
"""Records that are written before each kill."""
RECORDS = PART * KILLS
SIZE = 250
VALUES = [b"%0*d" % (SIZE, number) for number in range(RECORDS)]


class Fluvio(NamedTuple):
    """A cluster that may be disturbed.

    Attributes:
        sc: where its SC listens.
        kills: what kills each of its servers, and starts it again.
    """

    sc: str
    kills: Sequence[Callable[[], None]]


@pytest.fixture(params=["listener", "cluster"])
def fluvio(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Fluvio]:
    """Return our listener, and a real cluster."""
    if not KILLS:
        pytest.skip("LANCE_BRIDGE_KILLS does not say how often to kill")
    directory = tmp_path / "fluvio"
    if request.param == "listener":
        with RestartedServer(directory, *OPTIONS) as server:
            yield Fluvio(server.sc, [server.kill])
        return
    run: Path = request.getfixturevalue("run")
    directory.mkdir()
    with Cluster(run, directory) as cluster:
        yield Fluvio(cluster.sc, [partial(restart_spu, cluster), partial(restart_sc, cluster)])


def restart_spu(cluster: Cluster) -> None:
    """Kill the only SPU, and start it again."""
    (spu,) = cluster.spus
    cluster.kill(f"spu-{spu}")
    cluster.start_spu(spu)


def restart_sc(cluster: Cluster) -> None:
    """Kill the SC, and start it again."""
    cluster.kill("sc")
    cluster.start_sc()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RestartedServer]:
    """Return our server, the LWP end."""
    with RestartedServer(tmp_path / "data") as running:
        yield running


def disturbed(
    fill: Callable[[Sequence[bytes]], None],
    copied: Callable[[], int],
    bridge: RestartedBridge,
    servers: Sequence[Callable[[], None]],
) -> None:
    """Fill the source in parts; kill one by turns as soon as something of each part was copied."""
    kills = [bridge.kill, *servers]

    def moved(before: int) -> bool:
        return copied() > before

    for at, kill in zip(range(0, RECORDS, PART), cycle(kills), strict=False):
        before = copied()
        fill(VALUES[at : at + PART])
        eventually(partial(moved, before), 60)
        kill()


def in_the_log(url: str) -> int:
    """Return how many records our topic has."""
    with Client(url) as client, suppress(TopicNotFound):
        return client.get_topic("copied").record_count or 0
    return 0


def test_kills_double_nothing_in_our_log(
    fluvio: Fluvio, server: RestartedServer, tmp_path: Path
) -> None:
    """From the cluster into our log: every record that the cluster has, once, in order."""
    with FluvioClient(fluvio.sc, retry_for=60) as client:
        client.create_topic("orders")

        def fill(values: Sequence[bytes]) -> None:
            with client.producer("orders") as producer:
                for value in values:
                    producer.send(value)

        ends = f"fluvio://{fluvio.sc}/orders", f"{server.url}/copied"
        state = str(tmp_path / "state")
        with RestartedBridge(*ends, "--create-topic", "--state", state) as bridge:
            servers = [server.kill, *fluvio.kills]
            disturbed(fill, lambda: in_the_log(server.url), bridge, servers)
            assert bridge.finish() == 0
        with client.consumer("orders", stop_at_end=True) as consumer:
            there = [each.value for each in consumer]
    with Consumer(f"{server.url}/copied", start="beginning", stop_at_end=True) as copies:
        assert [each.value for each in copies] == there
    assert set(there) == set(VALUES)


def test_kills_double_nothing_in_the_cluster(
    fluvio: Fluvio, server: RestartedServer, tmp_path: Path
) -> None:
    """From our log into the cluster: every record once, in order."""
    with FluvioClient(fluvio.sc, retry_for=60) as client:
        client.create_topic("copied")

        def fill(values: Sequence[bytes]) -> None:
            with Producer(f"{server.url}/orders", create_topic=True) as producer:
                producer.send_many(values)

        fill(VALUES[:1])
        ends = f"{server.url}/orders", f"fluvio://{fluvio.sc}/copied"
        with RestartedBridge(*ends, "--state", str(tmp_path / "state")) as bridge:
            servers = [server.kill, *fluvio.kills]
            disturbed(fill, lambda: client.offsets("copied").end, bridge, servers)
            assert bridge.finish() == 0
        with client.consumer("copied", stop_at_end=True) as consumer:
            assert [each.value for each in consumer] == [VALUES[0], *VALUES]
