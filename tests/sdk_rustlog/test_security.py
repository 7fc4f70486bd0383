"""TLS and access rules, which RustLog's protocol knows nothing of."""

import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

from lance_sdk.errors import ConnectFailed
from lance_sdk.rustlog import RustlogError
from lance_server.listeners.rustlog import RustlogOptions
from lance_server.listeners.rustlog.testing import broker
from lance_server.security.access import AccessConfig, ClientAccess
from lance_server.security.authorizer import Security
from lance_server.security.tls import TlsConfig

from .conftest import Client

pytestmark = pytest.mark.anyio
RULES = AccessConfig(
    clients={
        "maker": ClientAccess(allowed_topics=frozenset({"*"}), admin=True),
        "reader": ClientAccess(allowed_topics=frozenset({"demo"}), write=False),
    }
)


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    """Return who vouches for both sides."""
    return trustme.CA()


@pytest.fixture
def secured(tmp_path: Path, authority: trustme.CA) -> Iterator[str]:
    """Return the address of a broker with rules."""
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    own = authority.issue_cert("localhost", "127.0.0.1")
    own.private_key_pem.write_to_path(str(tmp_path / "server.key"))
    own.cert_chain_pems[0].write_to_path(str(tmp_path / "server.pem"))
    tls = TlsConfig(
        cert_path=tmp_path / "server.pem",
        key_path=tmp_path / "server.key",
        client_ca_path=tmp_path / "ca.pem",
    )
    options = RustlogOptions(security=Security(tls, None, RULES))
    with broker(tmp_path / "data", options) as found:
        yield "{}:{}".format(*found.address)


def context(authority: trustme.CA, name: str) -> ssl.SSLContext:
    """Return how a client with this name connects."""
    found = ssl.create_default_context()
    authority.configure_trust(found)
    authority.issue_cert(f"{name}@example.org", common_name=name).configure_cert(found)
    return found


async def test_rules_hold_for_rustlog_too(api: str, secured: str, authority: trustme.CA) -> None:
    """Who may only read is told so, with code 500: the protocol has no other."""
    maker = Client(api, secured, tls=context(authority, "maker"))
    await maker.create_topic("demo")
    await maker.create_topic("secret")
    await maker.produce("demo", [b"a"])
    await maker.close()
    reader = Client(api, secured, tls=context(authority, "reader"))
    assert (await reader.fetch("demo")).records[0].value == b"a"
    assert await reader.topics() == {"demo": 1}
    with pytest.raises(RustlogError, match="Access denied") as caught:
        await reader.produce("demo", [b"b"])
    assert caught.value.code == 500
    for name in ("secret", "more"):
        with pytest.raises(RustlogError, match=r"Access denied|not found"):
            await reader.describe_topic(name)
    with pytest.raises(RustlogError, match="Access denied"):
        await reader.create_topic("more")
    await reader.close()


async def test_a_certificate_nobody_vouches_for_is_named(api: str, secured: str) -> None:
    """Before anything is said."""
    stranger = Client(api, secured, tls=ssl.create_default_context())
    with pytest.raises(ConnectFailed, match="certificate is not accepted"):
        await stranger.ping()
    await stranger.close()
