"""Where the code of a page runs."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import trustme

from lance_server.config.settings import Address
from lance_server.embedded import EmbeddedServer, running
from lance_server.listeners.fluvio import Cluster, fluvio_listeners
from lance_server.listeners.qwp import QwpListener
from lance_server.listeners.rustlog import RustlogListener
from lance_server.security.tls import TlsConfig
from lance_server.security.tokens import AuthConfig

TOKEN = "s3cret-token"


@contextmanager
def secured(folder: Path) -> Iterator[EmbeddedServer]:
    """Run a server with TLS and a token; ``ca.pem`` in the folder is whom to trust."""
    authority = trustme.CA()
    certificate = authority.issue_cert("localhost", "127.0.0.1")
    authority.cert_pem.write_to_path(str(folder / "ca.pem"))
    certificate.private_key_pem.write_to_path(str(folder / "server.key"))
    certificate.cert_chain_pems[0].write_to_path(str(folder / "server.pem"))
    tls = TlsConfig(cert_path=folder / "server.pem", key_path=folder / "server.key")
    with running(folder / "secured", tls=tls, auth=AuthConfig(tokens=(TOKEN,))) as server:
        yield server


@pytest.fixture
def addresses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """What stands for the addresses on the pages; the working directory is an empty one."""
    monkeypatch.chdir(tmp_path)
    rows = QwpListener(Address("127.0.0.1", 0))
    rustlog = RustlogListener(Address("127.0.0.1", 0))
    local = Address("127.0.0.1", 0)
    spu, sc = fluvio_listeners(local, local, Cluster())
    with (
        running(tmp_path / "data", listeners=[rows, rustlog, spu, sc]) as plain,
        secured(tmp_path) as behind_tls,
    ):
        yield {
            "localhost:9000": str(rows.address),
            "localhost:9003": str(sc.address),
            "localhost:9092": str(rustlog.address),
            "localhost:1992": "{}:{}".format(*plain.address),
            "localhost:1993": "{}:{}".format(*behind_tls.address),
        }
