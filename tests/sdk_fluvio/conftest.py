"""A server of our own for each test, and one whose connections break."""

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("cramjam", reason="the extra fluvio is not installed")

from lance_server.config.settings import Address
from lance_server.listeners.fluvio.options import FluvioOptions
from lance_server.listeners.fluvio.testing import FluvioServers, fluvio_servers

from .breaking import Proxy


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[FluvioServers]:
    """Return both servers, with an empty log."""
    with fluvio_servers(tmp_path / "data") as running:
        yield running


@pytest.fixture
def address(servers: FluvioServers) -> str:
    """Return where the SC listens."""
    host, port = servers.sc
    return f"{host}:{port}"


@pytest.fixture
def proxy(tmp_path: Path) -> Iterator[Proxy]:
    """Return what stands between clients and the SPU; its ``sc`` is where the SC listens."""
    with Proxy() as between:
        options = FluvioOptions(spu_public=Address(*between.address))
        with fluvio_servers(tmp_path / "data", options) as running:
            between.target = running.spu
            between.sc = "{}:{}".format(*running.sc)
            yield between
