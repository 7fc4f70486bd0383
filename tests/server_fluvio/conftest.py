"""Both servers for each test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("cramjam", reason="the extra fluvio is not installed")

from lance_server.listeners.fluvio.testing import FluvioPeer, FluvioServers, fluvio_servers


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[FluvioServers]:
    """Return both servers, with an empty log."""
    with fluvio_servers(tmp_path / "data") as running:
        yield running


@pytest.fixture
def sc(servers: FluvioServers) -> Iterator[FluvioPeer]:
    """Return a client of the SC."""
    with FluvioPeer(servers.sc) as peer:
        yield peer


@pytest.fixture
def spu(servers: FluvioServers) -> Iterator[FluvioPeer]:
    """Return a client of the SPU."""
    with FluvioPeer(servers.spu) as peer:
        yield peer
