"""One log that speaks every protocol, for both ends of a bridge."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("cramjam", reason="the extra fluvio is not installed")
pytest.importorskip("click", reason="the extra cli is not installed")

from lance_server.config.settings import Address
from lance_server.embedded import running
from lance_server.listeners.fluvio import Cluster, FluvioOptions, fluvio_listeners
from lance_server.listeners.rustlog import RustlogListener, RustlogOptions
from lance_server.security.authorizer import Security

from .urls import Urls

LOCAL = Address("127.0.0.1", 0)


@contextmanager
def every_protocol(data: Path, **options: Any) -> Iterator[Urls]:
    """Run a server that speaks all of them.

    Args:
        data: its data directory.
        options: fields of `ServerConfig`; its certificates hold for all protocols.
    """
    security = Security(options.get("tls"))
    spu, sc = fluvio_listeners(LOCAL, LOCAL, Cluster(FluvioOptions(security=security)))
    rustlog = RustlogListener(LOCAL, RustlogOptions(security=security))
    with running(data, listeners=[spu, sc, rustlog], **options) as server:
        yield Urls(server.url, str(sc.address), str(rustlog.address))


@pytest.fixture
def urls(tmp_path: Path) -> Iterator[Urls]:
    """Return where a server with an empty log is reached, in each protocol."""
    with every_protocol(tmp_path / "data") as found:
        yield found
