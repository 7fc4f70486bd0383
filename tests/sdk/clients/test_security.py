"""TLS with certificates of both sides, and tokens that change."""

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
import trustme

from lance_sdk.errors import AuthenticationFailed, ConfigError, ConnectFailed, DeadlineExceeded
from lance_sdk.testing import FakePeer, FakeServer
from lance_spec.enums import Command, ErrorCode
from lance_spec.frames import Frame
from lance_spec.messages.lwp import AuthenticateResponse

pytestmark = pytest.mark.anyio


@pytest.fixture
def ca_file(authority: trustme.CA, tmp_path: Path) -> Path:
    """Return the file of the authority's certificate."""
    path = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(path)
    return path


@pytest.fixture
def mutual(authority: trustme.CA) -> Iterator[FakeServer]:
    """Return a server that asks its clients for a certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    authority.configure_trust(context)
    context.verify_mode = ssl.CERT_REQUIRED
    with FakeServer(tls=context) as server:
        yield server


def issue(authority: trustme.CA, folder: Path) -> dict[str, Path]:
    """Write a client's certificate and key; return the options that name them."""
    issued = authority.issue_cert("client.example")
    cert, key = folder / "client.pem", folder / "client.key"
    cert.write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
    issued.private_key_pem.write_to_path(key)
    return {"tls_cert": cert, "tls_key": key}


def secure(server: FakeServer, host: str = "localhost") -> str:
    """Return the server's lances:// URL."""
    return f"lances://{host}:{server.port}/orders"


async def test_a_file_of_certificates_is_trusted(
    api: Any, tls_server: FakeServer, ca_file: Path
) -> None:
    """tls_ca instead of a context of one's own; also in the URL."""
    url = f"{secure(tls_server)}?tls_ca={ca_file}"
    async with api.producer(url) as producer:
        await producer.send(b"secret")
    assert tls_server.records() == [b"secret"]


async def test_a_server_may_have_another_name(
    api: Any, tls_server: FakeServer, ca_file: Path
) -> None:
    """tls_server_name is what the certificate must say."""
    url = secure(tls_server, "127.0.0.1")
    async with api.client(url, tls_ca=ca_file, tls_server_name="localhost") as client:
        assert await client.ping() > 0
    with pytest.raises(ConnectFailed, match="127"):
        async with api.client(url, tls_ca=ca_file):
            pytest.fail("it must not open")


@contextmanager
def named(authority: trustme.CA, name: str) -> Iterator[FakeServer]:
    """Run a server whose certificate bears one name, an IP address or a host's."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(name).configure_cert(context)
    with FakeServer(tls=context) as server:
        yield server


def send_on(follower: FakeServer, leader: FakeServer, times: int) -> None:
    """Have a server send writers to another one, so many times; then it takes batches itself."""
    left = [times]

    def redirect(peer: FakePeer, _: Frame) -> bool:
        left[0] -= 1
        if left[0] < 0:
            return False
        address = f"127.0.0.1:{leader.port}"
        text = f"NOT_LEADER: redirect to {address}"
        peer.error(ErrorCode.NOT_LEADER, text, leader_addr=address)
        return True

    follower.on_ingest = redirect


async def test_the_target_of_a_redirect_bears_its_own_name(
    api: Any, authority: trustme.CA, ca_file: Path
) -> None:
    """Not that of the server which named it."""
    with named(authority, "localhost") as follower, named(authority, "127.0.0.1") as leader:
        send_on(follower, leader, 1)
        async with api.producer(secure(follower), tls_ca=ca_file) as producer:
            await (await producer.send(b"secret")).result(timeout=30)
        assert (leader.records(), follower.records()) == ([b"secret"], [])


async def test_the_target_of_a_redirect_with_a_wrong_name_gets_nothing(
    api: Any, authority: trustme.CA, ca_file: Path
) -> None:
    """Also where it has that of the server which named it."""
    with named(authority, "localhost") as follower, named(authority, "localhost") as leader:
        send_on(follower, leader, 2)
        async with api.producer(secure(follower), tls_ca=ca_file) as producer:
            await (await producer.send(b"secret")).result(timeout=60)
        assert (leader.records(), follower.records()) == ([], [b"secret"])


async def test_one_name_holds_for_the_targets_of_redirects(
    api: Any, authority: trustme.CA, ca_file: Path
) -> None:
    """All servers of a cluster have it in their certificates."""
    name = "cluster.example"
    with named(authority, name) as follower, named(authority, name) as leader:
        send_on(follower, leader, 1)
        options = {"tls_ca": ca_file, "tls_server_name": name}
        async with api.producer(secure(follower), **options) as producer:
            await (await producer.send(b"secret")).result(timeout=30)
        assert (leader.records(), follower.records()) == ([b"secret"], [])


async def test_both_sides_show_certificates(
    api: Any, mutual: FakeServer, authority: trustme.CA, ca_file: Path, tmp_path: Path
) -> None:
    """Mutual TLS; without a certificate the server does not talk."""
    options = {"tls_ca": ca_file, **issue(authority, tmp_path)}
    async with api.producer(secure(mutual), **options) as producer:
        await producer.send(b"secret")
    assert mutual.records() == [b"secret"]
    with pytest.raises(ConnectFailed):
        async with api.client(secure(mutual), tls_ca=ca_file):
            pytest.fail("it must not open")


async def test_a_renewed_certificate_is_taken_up_at_the_next_connection(
    api: Any, mutual: FakeServer, authority: trustme.CA, ca_file: Path, tmp_path: Path
) -> None:
    """Without a restart: the files are read for every connection."""
    options = {"tls_ca": ca_file, **issue(authority, tmp_path)}
    async with api.producer(secure(mutual), **options) as producer:
        await (await producer.send(b"first")).result(timeout=30)
        other = trustme.CA()
        issue(other, tmp_path)  # not one that the server trusts
        mutual.drop_all()
        delivery = await producer.send(b"second")
        with pytest.raises(DeadlineExceeded):
            await delivery.result(timeout=0.1)
        issue(authority, tmp_path)
        await delivery.result(timeout=30)
    assert mutual.records() == [b"first", b"second"]


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"tls_ca": "missing.pem"}, "tls_ca=missing.pem: No such file"),
        ({"tls_cert": "missing.pem"}, "tls_cert=missing.pem: No such file"),
        ({"tls_cert": __file__, "tls_key": __file__}, "expected a PEM certificate"),
    ],
)
async def test_a_file_that_cannot_be_used_is_named(
    api: Any, tls_server: FakeServer, options: dict[str, Any], complaint: str
) -> None:
    """With the option, the file and the reason."""
    with pytest.raises(ConnectFailed, match=complaint):
        async with api.client(secure(tls_server), **options):
            pytest.fail("it must not open")


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"tls_key": "a.key"}, "needs tls_cert="),
        ({"tls_ca": ""}, "expected a path"),
        ({"tls_server_name": 7}, "tls_server_name: expected text"),
        ({"tls_key_password": b"x"}, "tls_key_password: expected text, got bytes"),
    ],
)
async def test_options_that_cannot_work_are_refused(
    api: Any, options: dict[str, Any], complaint: str
) -> None:
    """When the object is made."""
    with pytest.raises(ConfigError, match=complaint):
        api.client("lances://localhost", **options)


async def test_a_context_is_complete(api: Any, tls_context: ssl.SSLContext) -> None:
    """Files beside it would be left out without a word."""
    with pytest.raises(ConfigError, match="load tls_ca into it"):
        api.client("lances://localhost", tls=tls_context, tls_ca="x")


class Guard:
    """Takes tokens, in order, from a list of those that open the door."""

    def __init__(self, server: FakeServer, *accepted: str) -> None:
        self.accepted = accepted
        self.seen: list[str] = []
        server.on_control = self.judge

    def judge(self, peer: FakePeer, frame: Frame) -> bool:
        """Answer Authenticate."""
        if frame.command is not Command.AUTHENTICATE:
            return False
        self.seen.append(bytes(frame.payload).decode())
        answer = AuthenticateResponse(ok=self.seen[-1] in self.accepted, message=b"expired")
        peer.control(Command.AUTHENTICATE_RESPONSE, answer.encode())
        return True


async def test_a_function_gives_a_fresh_token_for_every_connection(
    api: Any, server: FakeServer
) -> None:
    """Tokens that expire are renewed where they are needed."""
    guard = Guard(server, "token 1", "token 2")
    tokens = iter(["token 1", "token 2"])
    async with api.producer(server.url(), token=lambda: next(tokens)) as producer:
        await (await producer.send(b"a")).result(timeout=30)
        server.drop_all()
        await (await producer.send(b"b")).result(timeout=30)
    assert guard.seen == ["token 1", "token 2"]
    assert server.records() == [b"a", b"b"]


async def test_an_async_function_gives_tokens_to_async_apis(api: Any, server: FakeServer) -> None:
    """The sync API says that it cannot wait for one."""
    guard = Guard(server, "token")

    async def fetch_token() -> str:
        await anyio.lowlevel.checkpoint()
        return "token"

    producer = api.producer(server.url(), token=fetch_token)
    if api.name == "threads":
        with pytest.raises(ConnectFailed, match="needs an async API"):
            await producer.open()
        return
    async with producer:
        await producer.send(b"a")
    assert guard.seen == ["token"]


async def test_a_token_function_that_fails_is_an_attempt_that_failed(
    api: Any, server: FakeServer
) -> None:
    """In the phase auth, with its own words."""

    def broken() -> str:
        raise OSError("the vault is sealed")

    with pytest.raises(ConnectFailed, match="auth: the vault is sealed") as caught:
        async with api.client(server.url(), token=broken):
            pytest.fail("it must not open")
    assert [attempt.phase for attempt in caught.value.attempts] == ["auth"]


@pytest.mark.parametrize("token", [None, 7, b"bytes"])
async def test_a_function_that_returns_no_token_is_named(
    api: Any, server: FakeServer, token: Any
) -> None:
    """By what it returned."""
    with pytest.raises(ConnectFailed, match=f"returned {type(token).__name__}"):
        async with api.client(server.url(), token=lambda: token):
            pytest.fail("it must not open")


async def test_a_token_function_that_hangs_is_given_up(api: Any, server: FakeServer) -> None:
    """Within connect_timeout; nothing else waits for it."""
    release = threading.Event()

    def hang() -> str:
        release.wait(30)
        return "late"

    try:
        with pytest.raises(ConnectFailed, match="the token function took over"):
            async with api.client(server.url(), token=hang, connect_timeout=0.1):
                pytest.fail("it must not open")
    finally:
        release.set()


async def test_a_refused_token_is_no_reason_to_try_again(api: Any, server: FakeServer) -> None:
    """It ends the opening with what the server said."""
    Guard(server)
    with pytest.raises(AuthenticationFailed, match="expired"):
        async with api.client(server.url(), token=lambda: "old"):
            pytest.fail("it must not open")


async def test_a_token_that_is_none_is_refused_at_once(api: Any) -> None:
    """Without showing it."""
    with pytest.raises(ConfigError, match="token: expected text or a function, got bytes"):
        api.client("lance://localhost", token=b"s3cret")
