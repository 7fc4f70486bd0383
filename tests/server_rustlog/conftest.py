"""A broker with one topic of two partitions for each test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from lance_server.listeners.rustlog.testing import Broker, RustlogPeer, broker
from lance_spec.messages.rustlog import CreateTopicRequest


@pytest.fixture
def rustlog(tmp_path: Path) -> Iterator[Broker]:
    """Return a broker."""
    with broker(tmp_path / "data") as running:
        yield running


@pytest.fixture
def peer(rustlog: Broker) -> Iterator[RustlogPeer]:
    """Return a client of a broker that has the topic ``demo`` with two partitions."""
    with RustlogPeer(rustlog.address) as client:
        client.ask(CreateTopicRequest(topic="demo", partitions=2))
        yield client


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """Return a broker with the topic ``demo``, for tests that leave nothing behind."""
    with broker(tmp_path_factory.mktemp("shared")) as running:
        with RustlogPeer(running.address) as client:
            client.ask(CreateTopicRequest(topic="demo", partitions=2))
        yield running


@pytest.fixture
def guest(shared: Broker) -> Iterator[RustlogPeer]:
    """Return a client of the shared broker."""
    with RustlogPeer(shared.address) as client:
        yield client
