"""TLS and client certificates on real sockets (LWP section 7)."""

import socket
import ssl
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import trustme
from cryptography.hazmat.primitives import serialization

from lance_server import EmbeddedServer, running
from lance_server.config.settings import ServerConfig
from lance_server.errors import ConfigError
from lance_server.network.tls_acceptor import MOST_HANDSHAKES
from lance_server.security.access import AccessConfig, ClientAccess, TopicAccess
from lance_server.security.authorizer import Security
from lance_server.security.tls import TlsConfig
from lance_server.testing import RawClient, eventually
from lance_spec.dialect import DEPLOYED, SPECIFIED, Dialect
from lance_spec.enums import Command, ErrorCode
from lance_spec.messages.lwp import (
    CreatePartitionedTopic,
    DeleteTopic,
    Fetch,
    GetTopic,
    SetRetention,
)
from lance_spec.records import encode_records

BOTH = pytest.mark.parametrize("dialect", [SPECIFIED, DEPLOYED], ids=str)


@dataclass
class Authority:
    """A certificate authority and the files of what it issued."""

    ca: trustme.CA
    folder: Path

    @property
    def path(self) -> Path:
        """Its certificate."""
        path = self.folder / "ca.pem"
        self.ca.cert_pem.write_to_path(str(path))
        return path

    def issue(self, name: str) -> tuple[Path, Path]:
        """Return certificate and key of somebody."""
        issued = self.ca.issue_cert("localhost", common_name=name)
        cert, key = self.folder / f"{name}.pem", self.folder / f"{name}.key"
        cert.write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
        issued.private_key_pem.write_to_path(str(key))
        return cert, key

    def client(self, name: str | None = None, issuer: "Authority | None" = None) -> ssl.SSLContext:
        """Return what a client speaks TLS with that trusts this authority."""
        context = ssl.create_default_context(cafile=self.path)
        if name is not None:
            context.load_cert_chain(*(issuer or self).issue(name))
        return context


def authority(folder: Path) -> Authority:
    """Make an authority."""
    folder.mkdir()
    return Authority(trustme.CA(), folder)


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """The authority of the server."""
    return authority(tmp_path_factory.mktemp("tls") / "own")


@pytest.fixture(scope="module")
def foreign(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Another authority."""
    return authority(tmp_path_factory.mktemp("tls") / "foreign")


def config(own: Authority, **options: object) -> TlsConfig:
    """The server's certificate, and what else is given."""
    cert, key = own.issue("server")
    return TlsConfig(cert_path=cert, key_path=key, **options)  # type: ignore[arg-type]


@pytest.fixture
def server(own: Authority, tmp_path: Path) -> Iterator[EmbeddedServer]:
    """A server that asks for client certificates and takes connections without."""
    tls = config(own, client_ca_path=own.path)
    access = AccessConfig(
        topics={
            "orders": TopicAccess(allowed_cns=frozenset({"shop", "office"})),
            "news": TopicAccess(mtls_enabled=False),
        },
        clients={
            "office": ClientAccess(allowed_topics=frozenset({"*"}), admin=True),
            "reader": ClientAccess(allowed_topics=frozenset({"archive", 0}), write=False),
        },
    )
    with running(tmp_path, tls=tls, access=access) as running_server:
        with RawClient(running_server.address, tls=own.client("office")) as office:
            for name in ("orders", "news", "archive"):
                office.create_topic(name)
        yield running_server


ORDERS, NEWS, ARCHIVE = 1, 2, 3


# TLS --------------------------------------------------------------------------------------------


@BOTH
def test_records_go_in_and_come_out_over_tls(
    own: Authority, tmp_path: Path, dialect: Dialect
) -> None:
    """Megabytes, in one frame each way."""
    value = bytes(range(256)) * 40_000
    with (
        running(tmp_path, tls=config(own)) as server,
        RawClient(server.address, dialect, tls=own.client()) as client,
    ):
        client.store([value], batch_id=1)
        assert client.read_all() == encode_records([value])


def test_many_tls_connections_do_not_mix(own: Authority, tmp_path: Path) -> None:
    """They share one receive buffer as plain ones do."""
    with running(tmp_path, tls=config(own)) as server:
        clients = [RawClient(server.address, tls=own.client()) for _ in range(10)]
        frames = [
            client.batch([b"%d" % n * 900], batch_id=n + 1) for n, client in enumerate(clients)
        ]
        for half in (slice(0, 400), slice(400, None)):
            for client, frame in zip(clients, frames, strict=True):
                client.send(frame[half])
        assert [client.acked() for client in clients] == list(range(1, 11))
        for client in clients:
            client.close()


def test_an_oversize_frame_is_told_over_tls(own: Authority, tmp_path: Path) -> None:
    """The last words arrive although TLS cannot be closed in one direction (AMB-17)."""
    with (
        running(tmp_path, tls=config(own), max_payload=1024) as server,
        RawClient(server.address, tls=own.client()) as client,
    ):
        client.send(client.batch([bytes(200_000)], batch_id=1))
        assert client.error().code is ErrorCode.PAYLOAD_TOO_LARGE
        assert client.wait_for_close() == []


def test_a_client_that_does_not_trust_the_server_leaves(
    own: Authority, foreign: Authority, tmp_path: Path
) -> None:
    """And harms nobody."""
    with running(tmp_path, tls=config(own)) as server:
        with pytest.raises(ssl.SSLCertVerificationError):
            RawClient(server.address, tls=foreign.client())
        with RawClient(server.address, tls=own.client()) as client:
            client.store([b"one"], batch_id=1)


def test_plain_bytes_are_not_served_on_a_tls_port(own: Authority, tmp_path: Path) -> None:
    """Whoever forgets TLS is closed, not answered in the clear."""
    with running(tmp_path, tls=config(own)) as server:
        with RawClient(server.address) as client:
            client.send(client.batch([b"one"], batch_id=1))
            with pytest.raises(ConnectionError):
                client.receive()
        assert server.stats()["batches_in"] == 0


def assert_kept_out(server: EmbeddedServer, context: ssl.SSLContext) -> None:
    """A client does not get as far as an answer."""
    with (
        pytest.raises((ssl.SSLError, ConnectionError)),  # in TLS 1.3 only when it reads
        RawClient(server.address, tls=context) as client,
    ):
        client.ask(Command.LIST_TOPICS)


# Client certificates ----------------------------------------------------------------------------


def test_without_a_certificate_nobody_gets_in_where_one_is_required(
    own: Authority, foreign: Authority, tmp_path: Path
) -> None:
    """Nor with one from somebody else."""
    tls = config(own, client_ca_path=own.path, require_client_cert=True)
    with running(tmp_path, tls=tls) as server:
        assert_kept_out(server, own.client())
        assert_kept_out(server, own.client("shop", foreign))
        with RawClient(server.address, tls=own.client("shop")) as client:
            client.store([b"one"], batch_id=1)


def test_a_topic_is_open_to_the_names_it_lists(server: EmbeddedServer, own: Authority) -> None:
    """Its clients may read and write it; no other topic (LWP section 7.2)."""
    with RawClient(server.address, tls=own.client("shop")) as shop:
        shop.store([b"one"], batch_id=1, topic_id=ORDERS)
        assert shop.read_all(topic_id=ORDERS) == encode_records([b"one"])
        shop.send(shop.batch([b"one"], batch_id=2, topic_id=ARCHIVE))
        error = shop.error()
        assert (error.code, error.message) == (
            ErrorCode.ACCESS_DENIED,
            f"Access denied: client 'shop' not authorized for topic {ARCHIVE}",
        )


def test_other_names_are_kept_out(server: EmbeddedServer, own: Authority) -> None:
    """A valid certificate is not enough: what no rule allows is refused."""
    with RawClient(server.address, tls=own.client("stranger")) as stranger:
        for topic in (0, ORDERS, ARCHIVE, 99):
            fetched = stranger.ask(Command.FETCH, Fetch(topic, 0, 100).encode())
            assert stranger.error(fetched).code is ErrorCode.ACCESS_DENIED


def test_an_open_topic_needs_no_certificate(server: EmbeddedServer, own: Authority) -> None:
    """``mtls_enabled = false`` opens it to all, and nothing else."""
    with RawClient(server.address, tls=own.client()) as anybody:
        anybody.store([b"one"], batch_id=1, topic_id=NEWS)
        refused = anybody.ask(Command.GET_TOPIC, GetTopic(ORDERS).encode())
        assert "client without certificate not authorized" in anybody.error(refused).message


def test_a_client_is_confined_to_its_list(server: EmbeddedServer, own: Authority) -> None:
    """By name or number, and to what it may do there."""
    with RawClient(server.address, tls=own.client("reader")) as reader:
        for topic in (0, ARCHIVE):
            assert reader.fetch(0, topic_id=topic).next_offset == 0
            reader.send(reader.batch([b"one"], batch_id=1, topic_id=topic))
            assert reader.error().code is ErrorCode.ACCESS_DENIED
        refused = reader.ask(Command.FETCH, Fetch(NEWS, 0, 100).encode())
        assert reader.error(refused).code is ErrorCode.ACCESS_DENIED


def test_topics_are_changed_by_those_who_administer_them(
    server: EmbeddedServer, own: Authority
) -> None:
    """Creating, deleting and retention are refused to all others."""
    requests = {
        Command.CREATE_TOPIC: b"mine",
        Command.SET_RETENTION: SetRetention(ORDERS, 1, 1).encode(),
        Command.DELETE_TOPIC: DeleteTopic(ORDERS).encode(),
    }
    with RawClient(server.address, tls=own.client("shop")) as shop:
        for command, payload in requests.items():
            assert shop.error(shop.ask(command, payload)).code is ErrorCode.ACCESS_DENIED
    with RawClient(server.address, tls=own.client("office")) as office:
        for command, payload in requests.items():
            assert office.ask(command, payload).command == Command.TOPIC_RESPONSE


def test_a_list_shows_what_one_may_use(server: EmbeddedServer, own: Authority) -> None:
    """Who may not use a topic does not learn that it is there."""
    seen = {}
    for name in ("office", "shop", "reader", "stranger"):
        with RawClient(server.address, tls=own.client(name)) as client:
            topics = client.ask_json(Command.LIST_TOPICS)["topics"]
            assert isinstance(topics, list)
            seen[name] = [topic["name"] for topic in topics]
    assert seen == {
        "office": ["orders", "news", "archive"],
        "shop": ["orders", "news"],
        "reader": ["archive"],
        "stranger": ["news"],
    }


def test_an_authority_of_one_topic_speaks_for_that_topic_only(
    own: Authority, foreign: Authority, tmp_path: Path
) -> None:
    """It cannot make up a client that the rules of the server name."""
    tls = config(own, client_ca_path=own.path)
    access = AccessConfig(
        topics={"default": TopicAccess(client_ca_path=foreign.path)},
        clients={"office": ClientAccess(allowed_topics=frozenset({"*"}), admin=True)},
    )
    with running(tmp_path, tls=tls, access=access) as server:
        with RawClient(server.address, tls=own.client("office", foreign)) as pretender:
            pretender.store([b"one"], batch_id=1)
            refused = pretender.ask(Command.CREATE_TOPIC, b"mine")
            assert pretender.error(refused).code is ErrorCode.ACCESS_DENIED
        with RawClient(server.address, tls=own.client("office")) as office:
            office.create_topic("mine")
            office.send(office.batch([b"one"], batch_id=2))
            assert office.error().code is ErrorCode.ACCESS_DENIED


# Reloading --------------------------------------------------------------------------------------


def test_new_certificates_are_used_for_new_connections(
    own: Authority, foreign: Authority, tmp_path: Path
) -> None:
    """Open ones go on; clients of an authority that is gone are not let in again."""
    before = config(own, client_ca_path=own.path, require_client_cert=True)
    cert, key = foreign.issue("server")
    after = TlsConfig(
        cert_path=cert, key_path=key, client_ca_path=foreign.path, require_client_cert=True
    )
    with running(tmp_path, tls=before) as server:
        with RawClient(server.address, tls=own.client("shop")) as client:
            client.store([b"one"], batch_id=1)
            server._running.reload(_with(server, tls=after))
            client.store([b"two"], batch_id=2)
        with RawClient(server.address, tls=foreign.client("shop")) as client:
            client.store([b"three"], batch_id=3)
        assert_kept_out(server, foreign.client("shop", own))


def test_new_rules_are_used_for_open_connections(own: Authority, tmp_path: Path) -> None:
    """Who loses a topic loses it now."""
    tls = config(own, client_ca_path=own.path)
    allowed = AccessConfig(topics={"default": TopicAccess(allowed_cns=frozenset({"shop"}))})
    denied = AccessConfig(topics={"default": TopicAccess(allowed_cns=frozenset({"office"}))})
    with (
        running(tmp_path, tls=tls, access=allowed) as server,
        RawClient(server.address, tls=own.client("shop")) as client,
    ):
        client.store([b"one"], batch_id=1)
        server._running.reload(_with(server, access=denied))
        client.send(client.batch([b"two"], batch_id=2))
        assert client.error().code is ErrorCode.ACCESS_DENIED


def _with(server: EmbeddedServer, **changes: object) -> ServerConfig:
    return replace(server._config, **changes)  # type: ignore[arg-type]


def test_a_rule_for_a_partitioned_topic_is_for_its_partitions(
    own: Authority, tmp_path: Path
) -> None:
    """AMB-59: rules are judged by the name of the whole."""
    access = AccessConfig(
        topics={"orders": TopicAccess(allowed_cns=frozenset({"office", "shop"}))},
        clients={"office": ClientAccess(allowed_topics=frozenset({"orders"}), admin=True)},
    )
    request = CreatePartitionedTopic(b"orders", 2, 1, 0, 0).encode()
    tls = config(own, client_ca_path=own.path)
    with running(tmp_path, tls=tls, access=access) as server:
        with RawClient(server.address, tls=own.client("office")) as office:
            office.ask_json(Command.CREATE_PARTITIONED_TOPIC, request)
        with RawClient(server.address, tls=own.client("shop")) as shop:
            shop.store([b"one"], batch_id=1, topic_id=2)
        with RawClient(server.address, tls=own.client("other")) as other:
            other.send(other.batch([b"two"], batch_id=2, topic_id=2))
            assert other.error().code is ErrorCode.ACCESS_DENIED


# What cannot be used ----------------------------------------------------------------------------


def test_files_that_cannot_be_used_are_named(own: Authority, tmp_path: Path) -> None:
    """A server never starts with less protection than it was told to have."""
    cert, key = own.issue("server")
    junk = tmp_path / "junk.pem"
    junk.write_text("no certificate")
    with pytest.raises(ConfigError, match=r"junk\.pem"):
        Security(TlsConfig(cert_path=junk, key_path=key))
    with pytest.raises(ConfigError, match="No such file"):
        Security(TlsConfig(cert_path=cert, key_path=tmp_path / "missing"))
    with pytest.raises(ConfigError, match=r"client_ca_path '.*junk\.pem'"):
        Security(TlsConfig(cert_path=cert, key_path=key, client_ca_path=junk))
    with pytest.raises(ConfigError, match=r"needs tls\.client_ca_path"):
        TlsConfig(cert_path=cert, key_path=key, require_client_cert=True)


def test_rules_without_what_they_rest_on_are_refused(own: Authority) -> None:
    """Names mean nothing without an authority that vouches for them."""
    rules = AccessConfig(clients={"shop": ClientAccess()})
    with pytest.raises(ConfigError, match="access rules need TLS"):
        Security(access=rules)
    with pytest.raises(ConfigError, match=r"access\.clients needs tls\.client_ca_path"):
        Security(config(own), access=rules)


def test_a_key_with_a_passphrase_is_told(own: Authority, tmp_path: Path) -> None:
    """The server does not ask for it on a terminal that nobody watches."""
    cert, key = own.issue("server")
    locked = serialization.load_pem_private_key(key.read_bytes(), None).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"secret"),
    )
    (tmp_path / "locked.key").write_bytes(locked)
    with pytest.raises(ConfigError, match="passphrase"):
        Security(TlsConfig(cert_path=cert, key_path=tmp_path / "locked.key"))


def test_many_that_never_finish_their_handshake_keep_nobody_out(
    own: Authority, tmp_path: Path
) -> None:
    """The oldest of them make room, long before their time is up."""
    with running(tmp_path, tls=config(own)) as server:
        silent = [
            socket.create_connection(server.address, timeout=5) for _ in range(MOST_HANDSHAKES + 20)
        ]
        with RawClient(server.address, tls=own.client()) as client:
            client.store([b"one"], batch_id=1)
        assert [each.recv(1) for each in silent[:20]] == [b""] * 20
        for each in silent:
            each.close()


def test_a_handshake_that_is_never_finished_ends(own: Authority, tmp_path: Path) -> None:
    """Nobody occupies the server by saying nothing."""
    with running(tmp_path, tls=config(own), idle_timeout=0.3) as server:
        with socket.create_connection(server.address, timeout=10) as silent:
            assert silent.recv(1) == b""
        eventually(lambda: server.stats()["connections_open"] == 0)
