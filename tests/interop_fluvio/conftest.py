"""The published client of Fluvio with our server, which runs in a process of its own."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fluvio", reason="the published client fluvio is not installed")
pytest.importorskip("cramjam", reason="the extra fluvio is not installed")

import fluvio

from lance_server.testing import ServerProcess

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

    def _config(self) -> Any:
        return fluvio.FluvioConfig.new(self.sc)

    def client(self) -> Any:
        """Return a published client."""
        return fluvio.Fluvio.connect_with_config(self._config())

    def admin(self) -> Any:
        """Return a published client for administration."""
        return fluvio.FluvioAdmin.connect_with_config(self._config())

    def create(self, topic: str, partitions: int = 1) -> None:
        """Create a topic with the published client."""
        spec = fluvio.TopicSpec.create().with_partitions(partitions).build()
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
