"""The upgrade: who gets a connection, and what it is granted (SF client section 8)."""

import base64
import socket
import ssl
from pathlib import Path

import pytest
import trustme
from websockets.exceptions import InvalidStatus

from lance_server.config.settings import ServerConfig
from lance_server.listeners.qwp import QwpOptions
from lance_server.listeners.qwp.testing import PUBLISHED, Endpoint, QwpPeer, endpoint
from lance_server.security.access import AccessConfig, TopicAccess
from lance_server.security.authorizer import Security
from lance_server.security.tls import TlsConfig
from lance_server.security.tokens import AuthConfig
from lance_spec.messages.qwp import ErrorResponse, Status

TOKEN = "correct horse battery"


def status_of(addr: str, **how: object) -> int:
    """Return the HTTP status that an upgrade is refused with."""
    with pytest.raises(InvalidStatus) as refused:
        QwpPeer(addr, **how)
    return refused.value.response.status_code


@pytest.mark.parametrize("path", ["/write/v4", "/api/v4/write", "/write/v4?client=x"])
def test_both_paths_are_served(qwp: Endpoint, path: str) -> None:
    """Senders ask for either path."""
    with QwpPeer(qwp.addr, path=path) as peer:
        assert peer.ok(PUBLISHED).wire_sequence == 0


def test_another_path_is_not_found(qwp: Endpoint) -> None:
    """Reading QWP is another path, and not served here."""
    assert status_of(qwp.addr, path="/read/v1") == 404


def test_version_one_and_the_largest_message_are_told(qwp: Endpoint) -> None:
    """The answer names the version and the limit."""
    with QwpPeer(qwp.addr) as peer:
        assert peer.granted("X-QWP-Version") == "1"
        assert peer.granted("X-QWP-Max-Batch-Size") == str(16 * 1024 * 1024)


def test_durable_acks_are_granted_to_who_asks(qwp: Endpoint) -> None:
    """The echo comes exactly when it was asked for."""
    with QwpPeer(qwp.addr) as plain:
        assert plain.granted("X-QWP-Durable-Ack") is None
    with QwpPeer(qwp.addr, headers=[("X-QWP-Request-Durable-Ack", "true")]) as durable:
        assert durable.granted("X-QWP-Durable-Ack") == "enabled"


def test_a_version_that_is_no_number_is_refused(qwp: Endpoint) -> None:
    """Garbage in a header is answered with 400."""
    with pytest.raises(InvalidStatus) as refused:
        QwpPeer(qwp.addr, headers=[("X-QWP-Max-Version", "one")])
    assert refused.value.response.status_code == 400


def test_a_port_scanner_gets_an_answer_and_is_let_go(qwp: Endpoint) -> None:
    """What is not HTTP at all does not disturb the endpoint."""
    host, _, port = qwp.addr.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=10) as stranger:
        stranger.sendall(b"\x16\x03\x01 what is this\r\n\r\n")
        while stranger.recv(4096):
            pass
    with QwpPeer(qwp.addr) as peer:
        assert peer.ok(PUBLISHED).wire_sequence == 0


def test_a_connection_too_many_is_told_to_come_back(tmp_path: Path) -> None:
    """The limit is answered with 503, which senders try again."""
    with (
        endpoint(tmp_path, options=QwpOptions(max_connections=1)) as qwp,
        QwpPeer(qwp.addr) as peer,
    ):
        assert peer.ok(PUBLISHED).wire_sequence == 0
        assert status_of(qwp.addr) == 503


def secured() -> Security:
    """Return what asks for a token."""
    return Security(None, AuthConfig(tokens=(TOKEN,)))


@pytest.mark.parametrize(
    "header",
    [
        f"Bearer {TOKEN}",
        "Basic " + base64.b64encode(f"anyone:{TOKEN}".encode()).decode(),
    ],
)
def test_a_token_lets_in(tmp_path: Path, header: str) -> None:
    """A token is carried by Bearer, or as the password of Basic."""
    with (
        endpoint(tmp_path, options=QwpOptions(security=secured())) as qwp,
        QwpPeer(qwp.addr, headers=[("Authorization", header)]) as peer,
    ):
        assert peer.ok(PUBLISHED).wire_sequence == 0


@pytest.mark.parametrize("header", ["", "Bearer wrong", "Basic !!!", "Digest x", "Bearer"])
def test_without_a_valid_token_nobody_is_let_in(tmp_path: Path, header: str) -> None:
    """Everything else is answered with 401, which ends a sender's attempts."""
    with endpoint(tmp_path, options=QwpOptions(security=secured())) as qwp:
        assert status_of(qwp.addr, headers=[("Authorization", header)]) == 401


def certified(folder: Path) -> tuple[TlsConfig, ssl.SSLContext]:
    """Return what a server needs that is called localhost, and a context that trusts it."""
    authority = trustme.CA()
    certificate = authority.issue_cert("localhost")
    certificate.cert_chain_pems[0].write_to_path(folder / "cert.pem")
    certificate.private_key_pem.write_to_path(folder / "key.pem")
    authority.cert_pem.write_to_path(folder / "ca.pem")
    context = ssl.create_default_context()
    authority.configure_trust(context)
    config = TlsConfig(
        cert_path=folder / "cert.pem",
        key_path=folder / "key.pem",
        client_ca_path=folder / "ca.pem",
    )
    return config, context


def test_tls_is_spoken_where_there_is_a_certificate(tmp_path: Path) -> None:
    """The server's certificate protects this port too."""
    tls, context = certified(tmp_path)
    with endpoint(tmp_path / "data", options=QwpOptions(security=Security(tls))) as qwp:
        addr = f"localhost:{qwp.listener.address.port}"
        with QwpPeer(addr, scheme="wss", ssl=context) as peer:
            assert peer.ok(PUBLISHED).wire_sequence == 0


def test_a_sender_that_may_not_write_there_is_told(tmp_path: Path) -> None:
    """A rule that forbids the topic is a security error, not a lost row."""
    tls, context = certified(tmp_path)
    rules = AccessConfig(topics={"other": TopicAccess()})
    with endpoint(
        tmp_path / "data", options=QwpOptions(security=Security(tls, None, rules))
    ) as qwp:
        addr = f"localhost:{qwp.listener.address.port}"
        with QwpPeer(addr, scheme="wss", ssl=context) as peer:
            assert peer.refused(PUBLISHED).status == Status.SECURITY_ERROR


def test_a_token_that_is_taken_back_counts_no_more(tmp_path: Path) -> None:
    """A reload holds for new connections, and for open ones from their next message on."""
    with endpoint(tmp_path / "data", options=QwpOptions(security=secured())) as qwp:
        known = [("Authorization", f"Bearer {TOKEN}")]
        with QwpPeer(qwp.addr, headers=known) as peer:
            peer.ok(PUBLISHED)
            other = AuthConfig(tokens=("another secret",))
            qwp.listener.reload(ServerConfig(data_dir=tmp_path, auth=other))
            peer.send(PUBLISHED)
            answer = peer.receive()
            assert isinstance(answer, ErrorResponse)
            assert answer.status == Status.SECURITY_ERROR
        assert status_of(qwp.addr, headers=known) == 401
