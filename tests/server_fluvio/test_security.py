"""The server's certificates and rules hold for Fluvio's clients too."""

import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

from lance_sdk.errors import LanceError
from lance_sdk.fluvio import FluvioClient, FluvioRefused
from lance_server.listeners.fluvio.options import FluvioOptions
from lance_server.listeners.fluvio.testing import FluvioServers, fluvio_servers
from lance_server.security.access import AccessConfig, ClientAccess
from lance_server.security.authorizer import Security
from lance_server.security.tls import TlsConfig
from lance_spec.messages.fluvio import ErrorCode


@pytest.fixture
def authority() -> trustme.CA:
    """Return who vouches for everybody."""
    return trustme.CA()


@pytest.fixture
def guarded(tmp_path: Path, authority: trustme.CA) -> Iterator[FluvioServers]:
    """Return servers where ``alice`` may use ``hers`` and nothing else."""
    issued = authority.issue_cert("127.0.0.1")
    cert, key, vouching = (tmp_path / name for name in ("cert.pem", "key.pem", "ca.pem"))
    cert.write_bytes(b"".join(each.bytes() for each in issued.cert_chain_pems))
    key.write_bytes(issued.private_key_pem.bytes())
    key.chmod(0o600)
    vouching.write_bytes(authority.cert_pem.bytes())
    rules = AccessConfig(
        clients={"alice": ClientAccess(allowed_topics=frozenset({"hers"}), admin=True)}
    )
    tls = TlsConfig(cert_path=cert, key_path=key, client_ca_path=vouching)
    options = FluvioOptions(security=Security(tls, None, rules))
    with fluvio_servers(tmp_path / "data", options) as servers:
        yield servers


def client_of(servers: FluvioServers, authority: trustme.CA, name: str) -> FluvioClient:
    """Return a client with a certificate."""
    context = ssl.create_default_context()
    authority.configure_trust(context)
    authority.issue_cert(f"{name}@example.org", common_name=name).configure_cert(context)
    host, port = servers.sc
    return FluvioClient(f"{host}:{port}", tls=context)


def test_a_client_may_do_what_the_rules_say(guarded: FluvioServers, authority: trustme.CA) -> None:
    """Who is allowed is served, over TLS on both servers."""
    with client_of(guarded, authority, "alice") as alice:
        alice.create_topic("hers")
        with alice.producer("hers") as producer:
            producer.send(b"secret")
        with alice.consumer("hers", stop_at_end=True) as consumer:
            assert [each.value for each in consumer] == [b"secret"]
        with pytest.raises(FluvioRefused) as refused:
            alice.create_topic("others")
        assert refused.value.code is ErrorCode.PERMISSION_DENIED


def test_a_stranger_sees_and_does_nothing(guarded: FluvioServers, authority: trustme.CA) -> None:
    """Topics are not even listed for who may not use them."""
    with client_of(guarded, authority, "alice") as alice:
        alice.create_topic("hers")
    with client_of(guarded, authority, "mallory") as mallory:
        assert [each.name for each in mallory.topics()] == ["consumer-offset"]
        with pytest.raises(FluvioRefused):
            mallory.producer("hers")
        with pytest.raises(FluvioRefused) as refused:
            mallory.delete_topic("hers")
        assert refused.value.code is ErrorCode.PERMISSION_DENIED


def test_who_does_not_speak_tls_is_turned_away(guarded: FluvioServers) -> None:
    """A plain connection comes to nothing."""
    host, port = guarded.sc
    with pytest.raises(LanceError), FluvioClient(f"{host}:{port}", retry_for=0) as client:
        client.topics()
