"""Clients that break the protocol, stall or want too much: only they suffer."""

import contextlib
import random
import socket
from dataclasses import replace
from pathlib import Path

import pytest

from lance_server.listeners.fluvio.options import FluvioOptions
from lance_server.listeners.fluvio.testing import FluvioPeer, FluvioServers, fluvio_servers
from lance_server.testing import eventually
from lance_spec.fluvio.apis import APIS
from lance_spec.messages.fluvio import (
    ApiVersionsResponse,
    ErrorCode,
    FetchOffsetsRequest,
    OffsetsTopic,
)

from .messages import VERSION, batch, create, ends, fetch, produce, request


def still_serves(servers: FluvioServers) -> bool:
    """Whether another client is served as if nothing had happened."""
    with FluvioPeer(servers.sc) as sc, FluvioPeer(servers.spu) as spu:
        create(sc, "others")
        return produce(spu, "others", batch(b"x")).outcome.code is ErrorCode.NONE


@pytest.mark.parametrize("server", ["sc", "spu"])
@pytest.mark.parametrize(
    "data",
    [
        b"\xff\xff\xff\xff",
        b"\x7f\xff\xff\xff" + b"x" * 100,
        b"\x00\x00\x00\x00",
        b"\x00\x00\x00\x03abc",
        b"\x00\x00\x00\x0a" + b"\xff" * 10,
        b"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
    ],
)
def test_what_is_no_request_ends_the_connection(
    servers: FluvioServers, server: str, data: bytes
) -> None:
    """Lengths and headers that make no sense are not waited for."""
    with FluvioPeer(getattr(servers, server)) as peer:
        peer.socket.sendall(data)
        assert peer.closed()
    assert still_serves(servers)


@pytest.mark.parametrize(
    ("server", "key", "version"),
    [
        ("sc", 0, 24),
        ("sc", 4711, 0),
        ("sc", 1003, 14),
        ("sc", 1004, 20),
        ("spu", 1004, 19),
        ("spu", 0, 26),
        ("spu", 0, -1),
        ("spu", 1003, 18),
        ("spu", 1005, 1),
    ],
)
def test_an_unknown_request_ends_the_connection(
    servers: FluvioServers, server: str, key: int, version: int
) -> None:
    """There is no response that such a client could read."""
    with FluvioPeer(getattr(servers, server)) as peer:
        peer.send(key, version, b"")
        assert peer.closed()


@pytest.mark.parametrize("server", ["sc", "spu"])
def test_every_request_that_is_offered_is_served(servers: FluvioServers, server: str) -> None:
    """ApiVersions lists the requests there are, in the versions that are taken."""
    with FluvioPeer(getattr(servers, server)) as peer:
        for version in (0, 1, 2):
            found = ApiVersionsResponse.decode(peer.ask(18, version, b""))
        offered = {each.api_key: (each.min_version, each.max_version) for each in found.api_keys}
    assert offered == {each.key: each.versions for each in APIS if each.server == server}


@pytest.mark.parametrize(
    "crowd",
    [
        b"\x00\x00\x00\x01\x00\x01t" + (2_000_000).to_bytes(4, "big") + bytes(16_000_000),
        (2_000_000).to_bytes(4, "big") + bytes(12_000_000),
        b"\x00\x00\x00\x01\x00\x01t\x00\x00\x00\x01\x00\x00\x00\x00"
        + (57 * 200_000).to_bytes(4, "big")
        + (bytes(8) + b"\x00\x00\x00\x2d" + bytes(45)) * 200_000,
        b"\x7f\xff\xff\xff",
    ],
)
def test_a_crowd_of_parts_is_not_read(servers: FluvioServers, crowd: bytes) -> None:
    """A request of millions of partitions or batches does not keep the server busy."""
    with FluvioPeer(servers.spu) as peer:
        peer.send(0, VERSION, b"\x00\x00\x01\x00\x00\x05\xdc" + crowd + bytes(4))
        assert peer.closed()
    assert still_serves(servers)


def test_a_long_list_is_not_read(servers: FluvioServers) -> None:
    """Only Produce has a reason to be large."""
    many = FetchOffsetsRequest(topics=[OffsetsTopic(topic="t", partitions=[0] * 100_000)])
    with FluvioPeer(servers.spu) as peer:
        peer.send(1002, VERSION, many.encode(VERSION))
        assert peer.closed()
    assert still_serves(servers)


def test_very_many_records_are_stored(servers: FluvioServers) -> None:
    """Empty records by the hundred thousand are no reason to be counted wrong."""
    raw = (200_000).to_bytes(4, "big") + b"\x0c\x00\x00\x00\x00\x00\x00" * 200_000
    crowd = replace(
        batch(b"x"), records=raw, last_offset_delta=199_999, first_timestamp=1_000
    ).with_crc()
    with FluvioPeer(servers.sc) as sc, FluvioPeer(servers.spu) as spu:
        create(sc, "orders")
        found = produce(spu, "orders", crowd)
        assert found.outcome.code is ErrorCode.NONE
        assert ends(spu, "orders")[2] == 200_000


def test_any_damage_ends_one_connection_at_most(servers: FluvioServers) -> None:
    """Requests with random damage are refused or answered; the log stays whole."""
    chance = random.Random(7)
    with FluvioPeer(servers.sc) as sc:
        create(sc, "orders")
    bodies = [
        (0, request("orders", batch(b"a", b"b")).encode(VERSION)),
        (1003, fetch("orders", 0)),
        (1008, b"\x00"),
    ]
    for _ in range(150):
        key, body = chance.choice(bodies)
        spoiled = bytearray(body)
        for _ in range(chance.randint(1, 4)):
            spoiled[chance.randrange(len(spoiled))] = chance.randrange(256)
        with FluvioPeer(servers.spu) as peer:
            peer.send(key, VERSION, bytes(spoiled[: chance.randint(0, len(spoiled))]))
            with contextlib.suppress(ConnectionError):  # what is let go may be reset
                peer.send(18, 2, b"")
                peer.socket.settimeout(5)
                peer.socket.recv(1)
    with FluvioPeer(servers.spu) as spu:
        assert ends(spu, "orders")[0].code is ErrorCode.NONE
    assert still_serves(servers)


def test_a_stalled_request_is_given_up(tmp_path: Path) -> None:
    """Who begins a request must go on with it; what it held is given back."""
    options = FluvioOptions(frame_timeout=0.3)
    with fluvio_servers(tmp_path / "data", options) as servers, FluvioPeer(servers.spu) as peer:
        peer.socket.sendall((1_000_000).to_bytes(4, "big") + b"x" * 1000)
        assert peer.closed()
        eventually(lambda: servers.cluster.quota.used == 0)


def test_a_silent_client_is_let_go(tmp_path: Path) -> None:
    """A connection without requests and streams ends after a while, one with a stream lives."""
    options = FluvioOptions(idle_timeout=0.3)
    with fluvio_servers(tmp_path / "data", options) as servers:
        with FluvioPeer(servers.sc) as sc:
            create(sc, "orders")
        with FluvioPeer(servers.spu) as tailing, FluvioPeer(servers.spu) as silent:
            tailing.send(1003, VERSION, fetch("orders", 0))
            assert silent.closed()
            with FluvioPeer(servers.spu) as spu:
                produce(spu, "orders", batch(b"x"))
            assert tailing.receive().body


def test_a_client_that_does_not_read_is_let_go(tmp_path: Path) -> None:
    """Responses that nobody takes hold memory for a while only."""
    options = FluvioOptions(frame_timeout=0.5, max_chunk=4 * 1024 * 1024)
    with fluvio_servers(tmp_path / "data", options) as servers:
        with FluvioPeer(servers.sc) as sc, FluvioPeer(servers.spu) as spu:
            create(sc, "large")
            for _ in range(8):
                produce(spu, "large", batch(b"x" * 1_000_000))
        with socket.socket() as deaf:
            deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            deaf.connect(servers.spu)
            peer = FluvioPeer.__new__(FluvioPeer)
            peer.socket, peer._number = deaf, 0
            for _ in range(6):
                peer.send(1003, VERSION, fetch("large", 0, max_bytes=1 << 22))
            eventually(lambda: servers.cluster.quota.used > 0)
            eventually(lambda: servers.cluster.quota.used == 0)
        assert still_serves(servers)


def test_memory_that_is_used_up_makes_others_wait(tmp_path: Path) -> None:
    """One request at a time goes beyond the limit; the next is served when there is room."""
    options = FluvioOptions(max_memory=1_000_000, frame_timeout=20)
    begun = (990_000).to_bytes(4, "big") + b"x" * 900_000
    with fluvio_servers(tmp_path / "data", options) as servers:
        account = servers.cluster.quota
        with FluvioPeer(servers.sc) as sc:
            create(sc, "orders")
        with (
            FluvioPeer(servers.spu) as holding,
            FluvioPeer(servers.spu) as favoured,
            FluvioPeer(servers.spu) as waiting,
        ):
            holding.socket.sendall(begun)
            eventually(lambda: account.used > 900_000)
            favoured.socket.sendall(begun)
            eventually(lambda: account.used > 1_800_000)
            number = waiting.send(
                0, VERSION, request("orders", batch(b"y" * 200_000)).encode(VERSION)
            )
            eventually(lambda: account._waiters != [])
            for peer in (holding, favoured):
                peer.socket.shutdown(socket.SHUT_RDWR)
            assert waiting.receive().correlation_id == number


def test_too_many_connections_are_turned_away(tmp_path: Path) -> None:
    """Those that are there are served on."""
    with (
        fluvio_servers(tmp_path / "data", FluvioOptions(max_connections=2)) as servers,
        FluvioPeer(servers.spu) as one,
        FluvioPeer(servers.spu) as two,
    ):
        assert one.ask(18, 2, b"")
        assert two.ask(18, 2, b"")
        with FluvioPeer(servers.spu) as three:
            assert three.closed()
        assert one.ask(18, 2, b"")


def test_clients_that_vanish_leave_nothing(servers: FluvioServers) -> None:
    """Connections that are cut in the middle of anything give everything back."""
    with FluvioPeer(servers.sc) as sc:
        create(sc, "orders")
        for number in range(20):
            with FluvioPeer(servers.spu) as peer:
                peer.send(0, VERSION, request("orders", batch(b"x" * 10_000)).encode(VERSION))
                peer.send(1003, VERSION, fetch("orders", 0))
                if number % 2:
                    peer.socket.sendall(b"\x00\x01\x00\x00part")
        eventually(lambda: servers.cluster.quota.used == 0)
        topic = servers.cluster.engine.topic_named("orders")
        assert topic is not None
        eventually(lambda: not topic.partition._watchers)
        assert create(sc, "more", dry_run=True).outcome.code is ErrorCode.NONE


@pytest.mark.parametrize("size", [1000, 4000, 7800])
def test_a_produce_request_above_the_limit_is_refused(tmp_path: Path, size: int) -> None:
    """The client is told that its records are too many, and its connection goes on."""
    options = FluvioOptions(max_frame=1000)
    with (
        fluvio_servers(tmp_path / "data", options) as servers,
        FluvioPeer(servers.sc) as sc,
        FluvioPeer(servers.spu) as spu,
    ):
        create(sc, "hello")
        entry = produce(spu, "hello", batch(b"x" * size))
        assert entry.outcome.code is ErrorCode.MESSAGE_TOO_LARGE
        assert produce(spu, "hello", batch(b"small")).base_offset == 0


def test_most_of_a_large_request_is_not_kept(tmp_path: Path) -> None:
    """What is above the limit is read and forgotten, however much memory there is."""
    options = FluvioOptions(max_frame=200_000, max_memory=400_000)
    with (
        fluvio_servers(tmp_path / "data", options) as servers,
        FluvioPeer(servers.sc) as sc,
        FluvioPeer(servers.spu) as spu,
    ):
        create(sc, "hello")
        entry = produce(spu, "hello", batch(b"x" * 1_500_000))
        assert entry.outcome.code is ErrorCode.MESSAGE_TOO_LARGE


def test_a_request_far_above_the_limit_ends_the_connection(tmp_path: Path) -> None:
    """Nobody reads as much as a client may claim to send."""
    with (
        fluvio_servers(tmp_path / "data", FluvioOptions(max_frame=1000)) as servers,
        FluvioPeer(servers.spu) as spu,
    ):
        spu.socket.sendall((8001).to_bytes(4, "big") + bytes(100))
        assert spu.closed()
