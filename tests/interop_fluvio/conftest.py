"""Servers for the published client and for ours: our listener, and a real cluster.

The cluster runs where the environment variable `cluster.PROGRAM` names the program `fluvio-run`;
tests that need it are skipped elsewhere.
"""

import uuid
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal

pytest.importorskip("cramjam", reason="the extra fluvio is not installed")

from lance_sdk.fluvio import FluvioClient
from lance_server.testing import ServerProcess

from .both_apis import Connect, blocking_client
from .cluster import PROGRAM, Cluster, program

OPTIONS = ("--fluvio-sc", "127.0.0.1:0", "--fluvio-spu", "127.0.0.1:0")


class Running:
    """A server for the published client.

    Attributes:
        server: its process.
        sc: where the SC listens; it tells clients where the SPU does.
    """

    def __init__(self, server: ServerProcess) -> None:
        self.server = server
        self.sc = "{}:{}".format(*server.others["fluvio-sc"])
        self._fluvio = pytest.importorskip("fluvio", reason="the published client is missing")

    def _config(self) -> Any:
        return self._fluvio.FluvioConfig.new(self.sc)

    def client(self) -> Any:
        """Return a published client."""
        return self._fluvio.Fluvio.connect_with_config(self._config())

    def admin(self) -> Any:
        """Return a published client for administration."""
        return self._fluvio.FluvioAdmin.connect_with_config(self._config())

    def create(self, topic: str, partitions: int = 1) -> None:
        """Create a topic with the published client."""
        spec = self._fluvio.TopicSpec.create().with_partitions(partitions).build()
        self.admin().create_topic(topic, spec)

    def topics(self) -> list[str]:
        """Return what topics the published client sees."""
        return [each.name() for each in self.admin().all_topics()]

    @property
    def url(self) -> str:
        """Where LWP clients connect."""
        host, port = self.server.address
        return f"lance://{host}:{port}"


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    """Return a running server with an empty log."""
    with ServerProcess.running(tmp_path / "data", *OPTIONS) as server:
        yield Running(server)


@pytest.fixture(scope="session")
def run() -> Path:
    """Return the program of a real cluster."""
    found = program()
    if found is None:
        pytest.skip(f"{PROGRAM} does not name the program fluvio-run of a Fluvio cluster")
    return found


@pytest.fixture(scope="session")
def cluster(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Return a real cluster with one SPU, for all tests that do not disturb it."""
    with Cluster(run, tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.fixture(scope="session")
def listener(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return where the SC of our listener is, for all tests that do not disturb it."""
    with ServerProcess.running(tmp_path_factory.mktemp("listener") / "data", *OPTIONS) as server:
        yield "{}:{}".format(*server.others["fluvio-sc"])


@pytest.fixture(params=["listener", "cluster"])
def sc(request: pytest.FixtureRequest) -> str:
    """Return where an SC listens: our listener's, and a real cluster's."""
    found = request.getfixturevalue(request.param)
    return found if isinstance(found, str) else found.sc


@pytest.fixture(scope="session")
def portal() -> Iterator[BlockingPortal]:
    """Return where coroutines run while tests wait for them."""
    with start_blocking_portal() as running:
        yield running


@pytest.fixture(params=["sync", "async"])
def connect(request: pytest.FixtureRequest, sc: str, portal: BlockingPortal) -> Connect:
    """Return what makes a client of the sync API, and of the async one."""
    if request.param == "sync":
        return partial(FluvioClient, sc)
    return partial(blocking_client, portal, sc)


@pytest.fixture
def topic() -> str:
    """Return a name that no other test uses."""
    return f"t-{uuid.uuid4().hex[:16]}"
