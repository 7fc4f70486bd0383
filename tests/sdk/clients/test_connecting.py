"""Opening, failing to open, dialects, several hosts, TLS: on three clients."""

import socket
import ssl
from collections.abc import Iterator
from typing import Any

import anyio
import pytest
from anyio.lowlevel import checkpoint

from lance_sdk.errors import (
    AuthenticationFailed,
    ClosedError,
    ConfigError,
    ConnectFailed,
    DeadlineExceeded,
)
from lance_sdk.testing import FakePeer, FakeServer
from lance_server.testing import free_port
from lance_spec.dialect import DEPLOYED, SPECIFIED, Dialect
from lance_spec.enums import Command, ErrorCode
from lance_spec.frames import Frame
from lance_spec.messages.lwp import AuthenticateResponse, Fetch
from lance_spec.records import encode_records

pytestmark = pytest.mark.anyio


@pytest.fixture
def closed_port() -> Iterator[int]:
    """Return a port that nobody listens on, and nobody else gets meanwhile."""
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        yield holder.getsockname()[1]


async def test_the_error_lists_every_attempt(api: Any, closed_port: int) -> None:
    """Host, address, phase and cause of each; what to do in the end."""
    url = f"lance://127.0.0.1:{closed_port},127.0.0.1:{closed_port}/orders"
    with pytest.raises(ConnectFailed) as caught:
        async with api.producer(url):
            pytest.fail("it must not open")
    text = str(caught.value)
    line = f"127.0.0.1:{closed_port} [127.0.0.1:{closed_port}] tcp:"
    assert text.count(line) == 2
    assert "refused" in text
    assert "lance-server --listen" in text
    assert [attempt.phase for attempt in caught.value.attempts] == ["tcp", "tcp"]
    assert caught.value.retryable


async def test_a_name_that_does_not_resolve_is_a_dns_problem(api: Any) -> None:
    """Not "no brokers available"."""
    with pytest.raises(ConnectFailed, match="Check the host name") as caught:
        async with api.client("lance://host.invalid"):
            pytest.fail("it must not open")
    assert [attempt.phase for attempt in caught.value.attempts] == ["dns"]


async def test_a_server_of_another_kind_is_recognised(api: Any, server: FakeServer) -> None:
    """Something that talks, but not LWP."""
    server.on_accept = lambda peer: peer.send(b"SSH-2.0-OpenSSH_9.6\r\n" * 5) or False
    with pytest.raises(ConnectFailed, match="the answer begins with 'SSH-'") as caught:
        async with api.client(server.url()):
            pytest.fail("it must not open")
    assert {attempt.phase for attempt in caught.value.attempts} == {"handshake"}


async def test_a_server_that_closes_at_once_was_tried_in_every_dialect(
    api: Any, server: FakeServer
) -> None:
    """Both attempts are listed with their dialect."""
    server.on_accept = lambda _peer: True
    with pytest.raises(ConnectFailed) as caught:
        async with api.client(server.url()):
            pytest.fail("it must not open")
    assert [attempt.dialect for attempt in caught.value.attempts] == ["specified", "deployed"]


async def test_a_server_that_says_nothing_is_given_up(api: Any, server: FakeServer) -> None:
    """connect_timeout bounds the handshake too."""
    server.on_keepalive = lambda _peer, _frame: True
    with pytest.raises(ConnectFailed, match="no answer to the handshake"):
        async with api.client(server.url(), connect_timeout=0.05):
            pytest.fail("it must not open")


async def test_a_socket_that_takes_no_connection_is_given_up(api: Any) -> None:
    """A full backlog drops the packets: connecting has a deadline."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full:
        port = full.getsockname()[1]
        holders = [socket.socket() for _ in range(4)]
        for holder in holders:
            holder.setblocking(False)
            holder.connect_ex(("127.0.0.1", port))
        with pytest.raises(ConnectFailed) as caught:
            async with api.client(f"lance://127.0.0.1:{port}", connect_timeout=0.05):
                pytest.fail("it must not open")
        for holder in holders:
            holder.close()
    causes = [attempt.cause for attempt in caught.value.attempts]
    assert all(isinstance(cause, DeadlineExceeded) for cause in causes)


async def test_auto_finds_a_deployed_server(api: Any, deployed: FakeServer) -> None:
    """The second connection speaks IEEE CRC-32; the first was closed without a word."""
    async with api.producer(deployed.url()) as producer:
        await (await producer.send(b"a")).result(timeout=10)
        assert producer.stats().peer_dialect == "deployed"
    assert deployed.accepted == 2
    assert deployed.records() == [b"a"]


async def test_a_chosen_dialect_is_the_only_one(api: Any, deployed: FakeServer) -> None:
    """In the URL or in code."""
    async with api.client(deployed.url(dialect="deployed")) as client:
        await client.ping()
    assert deployed.accepted == 1
    with pytest.raises(ConnectFailed):
        async with api.client(deployed.url(), dialect="specified"):
            pytest.fail("it must not open")


async def test_the_next_host_is_tried_when_one_is_down(
    api: Any, server: FakeServer, closed_port: int
) -> None:
    """At once, within one opening."""
    url = f"lance://127.0.0.1:{closed_port},127.0.0.1:{server.port}/orders"
    async with api.producer(url) as producer:
        await (await producer.send(b"a")).result(timeout=10)


async def test_failover_takes_what_is_unacknowledged_along(api: Any, until: Any) -> None:
    """The second server gets what the first one did not acknowledge."""
    with FakeServer() as first, FakeServer() as second:
        first.on_ingest = lambda _peer, _frame: True
        url = f"lance://127.0.0.1:{first.port},127.0.0.1:{second.port}/orders"
        async with api.producer(url) as producer:
            delivery = await producer.send(b"a")
            await until(first, lambda: len(first.ingested) == 1)
            first.stop()
            receipt = await delivery.result(timeout=10)
        assert receipt.attempts == 2
        assert second.records() == [b"a"]


async def test_open_timeout_keeps_trying(api: Any, closed_port: int) -> None:
    """For programs that start before their server does."""
    with pytest.raises(ConnectFailed) as caught:
        async with api.client(
            f"lance://127.0.0.1:{closed_port}", open_timeout=0.5, backoff_base=0.01
        ):
            pytest.fail("nobody listens")
    assert len(caught.value.attempts) > 1


async def test_a_server_that_comes_late_is_found(api: Any) -> None:
    """Within open_timeout; the second attempt is what starts it."""
    port = free_port()
    with FakeServer() as impatient:
        late: list[FakeServer] = []

        def start_the_other(_peer: object) -> bool:
            if not late:
                late.append(FakeServer(port=port).__enter__())
            return True

        impatient.on_accept = start_the_other
        url = f"lance://127.0.0.1:{port},127.0.0.1:{impatient.port}"
        try:
            async with api.client(url, open_timeout=10) as client:
                await client.ping()
        finally:
            late[0].stop()


async def test_a_token_opens_the_door_or_does_not(api: Any, server: FakeServer) -> None:
    """It is sent first, on every connection, and is never shown."""
    tokens: list[bytes] = []

    def guard(peer: FakePeer, frame: Frame) -> bool:
        if frame.command is not Command.AUTHENTICATE:
            return False
        tokens.append(bytes(frame.payload))
        ok = tokens[-1] == b"good"
        answer = AuthenticateResponse(ok=ok, message=b"" if ok else b"Invalid token")
        peer.control(Command.AUTHENTICATE_RESPONSE, answer.encode())
        return True

    server.on_control = guard
    async with api.client(f"lance://good@127.0.0.1:{server.port}") as client:
        assert "good" not in repr(client)
    with pytest.raises(AuthenticationFailed, match="Invalid token"):
        async with api.client(server.url(), token="bad"):
            pytest.fail("it must not open")
    assert tokens == [b"good", b"bad"]


async def test_tls_to_a_server_without_it_is_a_tls_problem(api: Any, server: FakeServer) -> None:
    """The phase says so, and so does the advice."""
    url = f"lances://127.0.0.1:{server.port}/orders"
    with pytest.raises(ConnectFailed, match=r"does not speak TLS there") as e:
        async with api.client(url, connect_timeout=1):
            pytest.fail("it must not open")
    assert [attempt.phase for attempt in e.value.attempts] == ["tls"]


async def test_tls_carries_records(
    api: Any, tls_server: FakeServer, tls_context: ssl.SSLContext
) -> None:
    """lances:// with a context that trusts the server."""
    url = f"lances://localhost:{tls_server.port}/orders"
    values = [bytes(1000)] * 500
    async with api.producer(url, tls=tls_context) as producer:
        await producer.send_many(values)
        await producer.flush(timeout=30)
    async with api.consumer(url, tls=tls_context, stop_at_end=True) as consumer:
        assert [record.value async for record in consumer] == values


async def test_an_untrusted_certificate_is_refused(api: Any, tls_server: FakeServer) -> None:
    """The system's trust store does not know it."""
    with pytest.raises(ConnectFailed, match=r"(?i)certificate") as caught:
        async with api.client(f"lances://localhost:{tls_server.port}"):
            pytest.fail("it must not open")
    assert {attempt.phase for attempt in caught.value.attempts} == {"tls"}


async def test_a_url_without_a_topic_is_refused_at_once(api: Any) -> None:
    """Before anything connects."""
    with pytest.raises(ConfigError, match="append one, as in lance://localhost:1992/orders"):
        api.producer("lance://localhost")


async def test_the_constructor_connects_to_nothing(api: Any, server: FakeServer) -> None:
    """No I/O before open()."""
    api.producer(server.url())
    api.consumer(server.url())
    api.client(server.url())
    assert server.accepted == 0


async def test_a_host_name_that_is_none_is_a_dns_problem(api: Any) -> None:
    """A label of 64 characters cannot even be asked for."""
    with pytest.raises(ConnectFailed) as caught:
        async with api.client(f"lance://{'a' * 64}.example"):
            pytest.fail("it must not open")
    assert [attempt.phase for attempt in caught.value.attempts] == ["dns"]


async def test_closing_abandons_a_connection_attempt(api: Any) -> None:
    """Whoever waits for the opening is told; nobody waits for connect_timeout."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full:
        port = full.getsockname()[1]
        holders = [socket.socket() for _ in range(4)]
        for holder in holders:
            holder.setblocking(False)
            holder.connect_ex(("127.0.0.1", port))
        client = api.client(f"lance://127.0.0.1:{port}", connect_timeout=60)
        with anyio.fail_after(20):
            async with anyio.create_task_group() as group:
                group.start_soon(_open_in_vain, client)
                while "NOTOPEN" in repr(client):
                    await checkpoint()
                assert (await client.close(timeout=0)).clean
        for holder in holders:
            holder.close()


async def _open_in_vain(client: Any) -> None:
    with pytest.raises(ClosedError):
        await client.open()


@pytest.mark.parametrize("dialect", [SPECIFIED, DEPLOYED], ids=str)
async def test_the_leader_is_followed(api: Any, dialect: Dialect) -> None:
    """In both forms in which a server names it: JSON details, or text (LWP section 12.4)."""
    with FakeServer(dialect) as leader, FakeServer(dialect) as follower:

        def redirect(peer: FakePeer, frame: Frame) -> bool:
            address = f"127.0.0.1:{leader.port}"
            details = {"batch_id": frame.batch_id, "leader_addr": address}
            text = f"NOT_LEADER: redirect to {address}"
            peer.error(ErrorCode.NOT_LEADER, text, **details)
            return True

        follower.on_ingest = redirect
        async with api.producer(follower.url(), dialect=dialect.name) as producer:
            receipt = await (await producer.send(b"x")).result(timeout=30)
        assert leader.records() == [b"x"]
        assert receipt.attempts == 2
        assert leader.ingested[0].batch_id == follower.ingested[0].batch_id


@pytest.mark.parametrize("dialect", [SPECIFIED, DEPLOYED], ids=str)
async def test_a_consumer_follows_the_leader(api: Any, dialect: Dialect) -> None:
    """And goes on at the offset where it was."""
    with FakeServer(dialect) as leader, FakeServer(dialect) as follower:
        for server in (leader, follower):
            server.topics.append(1, encode_records([b"a", b"b"]))
        leader.topics.append(1, encode_records([b"c"]))

        def redirect(peer: FakePeer, frame: Frame) -> bool:
            beyond = frame.command is Command.FETCH and Fetch.decode(frame.payload).start_offset
            if beyond == 12:
                address = f"127.0.0.1:{leader.port}"
                text = f"NOT_LEADER: redirect to {address}"
                peer.error(ErrorCode.NOT_LEADER, text, leader_addr=address)
            return beyond == 12

        follower.on_control = redirect
        options = {"dialect": dialect.name, "poll_interval": 0.001}
        async with api.consumer(follower.url(), **options) as consumer:
            found = []
            async for record in consumer:
                found.append(record.value)
                if len(found) == 3:
                    break
        assert found == [b"a", b"b", b"c"]


@pytest.mark.parametrize("kind", ["producer", "consumer"])
@pytest.mark.parametrize("dialect", [SPECIFIED, DEPLOYED], ids=str)
async def test_topic_0_of_a_published_server_is_warned_of(
    api: Any, kind: str, dialect: Dialect, caplog: pytest.LogCaptureFixture
) -> None:
    """It acknowledges records there, and nobody can read them (AMB-34)."""
    with FakeServer(dialect) as server:
        async with getattr(api, kind)(f"{server.url('')}?topic_id=0"):
            pass
    told = [each for each in caplog.messages if "topic 0 of a published server" in each]
    assert len(told) == (0 if dialect is SPECIFIED else 1)
