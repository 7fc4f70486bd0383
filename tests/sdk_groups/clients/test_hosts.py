"""Topics of several hosts: each is connected to as the first server is, with TLS and a token."""

import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import trustme
from tests.sdk_groups.conftest import Threaded

from lance_sdk import AsyncTopicsConsumer, Producer, TopicsConsumer
from lance_sdk.errors import AuthenticationFailed
from lance_sdk.testing import FakePeer, FakeServer
from lance_spec.enums import Command, ErrorCode
from lance_spec.frames import Frame
from lance_spec.messages.lwp import AuthenticateResponse

pytestmark = pytest.mark.anyio

TOKEN, FAR = "secret", 30.0


class Guarded:
    """A server that asks for a token, and may send readers of a topic to another server.

    Args:
        server: the server.
        accepted: the token that it takes.
        host: where it sends them.

    Attributes:
        seen: the tokens that were shown.
    """

    def __init__(self, server: FakeServer, accepted: str, host: FakeServer | None = None) -> None:
        self._accepted = accepted
        self._host = host
        self.seen: list[str] = []
        server.on_control = self.judge

    def judge(self, peer: FakePeer, frame: Frame) -> bool:
        """Answer Authenticate, and GetTopic where another server has the topic."""
        if frame.command is Command.AUTHENTICATE:
            self.seen.append(bytes(frame.payload).decode())
            answer = AuthenticateResponse(ok=self.seen[-1] == self._accepted, message=b"unknown")
            peer.control(Command.AUTHENTICATE_RESPONSE, answer.encode())
            return True
        if frame.command is Command.GET_TOPIC and self._host is not None:
            address = f"127.0.0.1:{self._host.port}"
            peer.error(ErrorCode.NOT_LEADER, f"ask {address}", leader_addr=address)
            return True
        return False


@pytest.fixture
def authority() -> trustme.CA:
    """Return a certificate authority."""
    return trustme.CA()


@pytest.fixture
def reader(api: str, authority: trustme.CA, tmp_path: Path) -> Callable[[FakeServer], Any]:
    """Return what makes consumers of the topic ``orders`` that begin at a server."""
    ca_file = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(ca_file)

    def make(server: FakeServer) -> Any:
        kind: Any = TopicsConsumer if api == "threads" else AsyncTopicsConsumer
        made = kind(
            f"lances://127.0.0.1:{server.port}",
            ["orders"],
            start="beginning",
            tls_ca=ca_file,
            token=TOKEN,
            backoff_base=0.01,
        )
        return Threaded(made) if api == "threads" else made

    return make


@contextmanager
def secured(authority: trustme.CA) -> Iterator[FakeServer]:
    """Run a server with a certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    with FakeServer(tls=context) as server:
        yield server


@pytest.fixture
def servers(authority: trustme.CA, tmp_path: Path) -> Iterator[tuple[FakeServer, FakeServer]]:
    """Return a server, and the host of its topic, which has a record."""
    ca_file = tmp_path / "writer.pem"
    authority.cert_pem.write_to_path(ca_file)
    with secured(authority) as first, secured(authority) as host:
        url = f"lances://127.0.0.1:{host.port}/orders"
        with Producer(url, tls_ca=ca_file) as producer:
            producer.send(b"one")
        yield first, host


async def test_the_host_gets_the_token_over_tls(
    reader: Callable[[FakeServer], Any], servers: tuple[FakeServer, FakeServer]
) -> None:
    """As the first server does, once each."""
    first, host = servers
    asked, named = Guarded(first, TOKEN, host), Guarded(host, TOKEN)
    async with reader(first) as consumer:
        batch = await consumer.poll(FAR)
        assert [bytes(record.value) for record in batch] == [b"one"]
    assert (asked.seen, named.seen) == ([TOKEN], [TOKEN])


async def test_the_host_counts_in_the_stats(
    reader: Callable[[FakeServer], Any], servers: tuple[FakeServer, FakeServer]
) -> None:
    """The record came over the second connection; both are counted, also after the end."""
    first, host = servers
    Guarded(first, TOKEN, host)
    Guarded(host, TOKEN)
    async with reader(first) as consumer:
        batch = await consumer.poll(FAR)
        told = consumer.stats().server
    assert told.connects == 2
    assert told.bytes_received > len(batch.data)
    assert consumer.stats().server.connects == 2


async def test_a_host_that_refuses_the_token_is_told(
    reader: Callable[[FakeServer], Any], servers: tuple[FakeServer, FakeServer]
) -> None:
    """It is not asked again and again; the topic has an error."""
    first, host = servers
    Guarded(first, TOKEN, host)
    named = Guarded(host, "another")
    async with reader(first) as consumer:
        with pytest.raises(AuthenticationFailed, match=f"127.0.0.1:{host.port} refuses"):
            await consumer.poll(FAR)
        assert [topic.name for topic in consumer.errors] == ["orders"]
    assert named.seen == [TOKEN]
