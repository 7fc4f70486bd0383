"""Produce requests that come alone, which the server serves where it reads them."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from lance_server.listeners.fluvio.options import FluvioOptions
from lance_server.listeners.fluvio.testing import FluvioPeer, FluvioServers, fluvio_servers
from lance_spec.messages.fluvio import ErrorCode, Frame, ProduceResponse, Request

from .messages import VERSION, batch, create, ends, produce, request

_IDLE = 600.0


@pytest.fixture(autouse=True)
def orders(sc: FluvioPeer) -> None:
    """Have a topic to write to."""
    assert create(sc, "orders").outcome.code is ErrorCode.NONE


def framed(number: int, topic: str = "orders") -> bytes:
    """Return the frame of a request with one batch."""
    asked = Request(
        api_key=0,
        api_version=VERSION,
        correlation_id=number,
        client_id="",
        body=request(topic, batch(b"%d" % number)).encode(VERSION),
    )
    return Frame(body=asked.encode()).encode()


def answered(spu: FluvioPeer) -> tuple[int, ErrorCode | int, int]:
    """Return the number of the next response, its outcome and its offset."""
    response = spu.receive()
    found = ProduceResponse.decode(response.body, VERSION).topics[0].partitions[0]
    return response.correlation_id, found.outcome.code, found.base_offset


def test_one_after_another_is_made_durable_by_the_event_loop(
    servers: FluvioServers, spu: FluvioPeer
) -> None:
    """As an LWP client's batches that come alone are, on a disk that is quick."""
    servers.cluster.engine.flusher.clock = lambda: 0.0
    for number in range(50):
        assert produce(spu, "orders", batch(b"x")).base_offset == number
    assert servers.cluster.engine.flusher.lone_flushes > 0


def test_what_it_held_of_memory_is_given_back(servers: FluvioServers, spu: FluvioPeer) -> None:
    """Each request counts against the limit only until it is answered."""
    for _ in range(5):
        produce(spu, "orders", batch(b"x"))
    ends(spu, "orders")  # asked on the same connection: the requests before it are done with
    assert servers.cluster.quota.used <= 100


def test_requests_that_come_in_one_piece_are_answered_in_order(spu: FluvioPeer) -> None:
    """Only one that came alone is served where it was read."""
    spu.socket.sendall(framed(1))
    assert answered(spu) == (1, ErrorCode.NONE, 0)
    spu.socket.sendall(framed(2) + framed(3))
    assert {answered(spu), answered(spu)} == {(2, ErrorCode.NONE, 1), (3, ErrorCode.NONE, 2)}
    spu.socket.sendall(framed(4))
    assert answered(spu) == (4, ErrorCode.NONE, 3)


def test_the_rest_of_a_request_is_not_taken_for_another(spu: FluvioPeer) -> None:
    """A request whose second half looks like a whole one is one request."""
    inner = framed(7)
    whole = Request(
        api_key=0,
        api_version=VERSION,
        correlation_id=1,
        client_id="",
        body=request("orders", batch(b"a" + inner + b"z")).encode(VERSION),
    )
    data = Frame(body=whole.encode()).encode()
    place = data.index(inner)
    ends(spu, "orders")
    for piece in (data[:place], inner, data[place + len(inner) :]):
        spu.socket.sendall(piece)
    assert answered(spu) == (1, ErrorCode.NONE, 0)
    assert ends(spu, "orders")[2] == 1


@pytest.mark.parametrize("topic", ["missing", "consumer-offset"])
def test_no_such_partition_is_told(spu: FluvioPeer, topic: str) -> None:
    """Refusals are those of every Produce request."""
    assert produce(spu, "orders", batch(b"a")).base_offset == 0
    spu.socket.sendall(framed(9, topic))
    assert answered(spu) == (9, ErrorCode.NOT_LEADER_FOR_PARTITION, -1)


def test_a_wrong_checksum_is_told(spu: FluvioPeer) -> None:
    """Nothing is stored."""
    assert produce(spu, "orders", batch(b"a")).base_offset == 0
    assert produce(spu, "orders", replace(batch(b"a"), crc=1)).outcome.code is ErrorCode.OTHER
    assert ends(spu, "orders")[2] == 1


def test_who_sends_them_is_not_silent(tmp_path: Path, clock: Callable[[float], None]) -> None:
    """The time without a request begins anew with each."""
    options = FluvioOptions(idle_timeout=_IDLE)
    with (
        fluvio_servers(tmp_path / "idle", options) as servers,
        FluvioPeer(servers.sc) as sc,
        FluvioPeer(servers.spu) as spu,
    ):
        create(sc, "orders")
        produce(spu, "orders", batch(b"x"))
        for _ in range(4):
            clock(0.7 * _IDLE)
            produce(spu, "orders", batch(b"x"))
        clock(1.1 * _IDLE)
        assert spu.closed()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Return what sets the clock of asyncio's event loops forward."""
    ahead = [0.0]
    time = asyncio.BaseEventLoop.time
    monkeypatch.setattr(asyncio.BaseEventLoop, "time", lambda loop: time(loop) + ahead[0])

    def forward(seconds: float) -> None:
        ahead[0] += seconds

    return forward
