"""RustLog: our client through outages, and the words of the published broker next to ours.

``LANCE_RUSTLOG_RUN`` names the published broker's program (``kafka-lite``), which listens on port
9092 of this machine and nowhere else.
"""

import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import count
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from tests.restarted import RestartedServer

from lance_sdk.errors import LanceError
from lance_sdk.rustlog import NoSuchPartition, RustlogClient
from lance_server.testing import ServerProcess, eventually
from lance_spec.messages.rustlog import (
    CreateTopicRequest,
    DescribePartitionRequest,
    DescribeTopicRequest,
    FetchRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
    ProduceRequest,
)

BROKER = "LANCE_RUSTLOG_RUN"
BINARY = ("--rustlog", "127.0.0.1:0", "--rustlog-dialect", "binary")
PLACE = ("127.0.0.1", 9092)
REQUESTS: list[Any] = [
    ProduceRequest(topic="orders", partition=0, records=(b"first", b"", b"third")),
    FetchRequest(group="readers", topic="orders", partition=0, offset=1, max_bytes=4096),
    FetchRequest(group="", topic="orders", partition=0, offset=1, max_bytes=4096),
    OffsetCommitRequest(group="readers", topic="orders", partition=0, offset=1),
    OffsetFetchRequest(group="readers", topic="orders", partition=0),
    CreateTopicRequest(topic="orders", partitions=1),
    DescribeTopicRequest(topic="orders"),
    DescribePartitionRequest(topic="orders", partition=0),
]
NOT_UTF8 = [b"a\xff", b"\xe2\x82", b"\xc0\xaf", b"ab\xf0\x9f\x98x", b"\xed\xa0\x80"]


def listens() -> bool:
    """Whether somebody listens where the published broker does."""
    with closing(socket.socket()) as probe:
        return probe.connect_ex(PLACE) == 0


@contextmanager
def published_broker(folder: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """Run it for a ``with`` block; it keeps its files where it was started."""
    with subprocess.Popen(
        [os.environ[BROKER]], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        try:
            eventually(listens, 30)
            yield process
        finally:
            process.kill()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the published broker can run."""
    if not os.environ.get(BROKER):
        pytest.skip(f"{BROKER} does not name the published broker")
    if listens():
        pytest.skip(f"somebody else listens on {PLACE[1]}, the only port of the published broker")
    return tmp_path


def answer(place: tuple[str, int], payload: bytes) -> bytes:
    """Return what a broker answers to a payload, on a connection of its own."""
    with socket.create_connection(place, 10) as link, link.makefile("rb") as reading:
        link.sendall(len(payload).to_bytes(4, "big") + payload)
        return reading.read(int.from_bytes(reading.read(4), "big"))


def cut_short() -> Iterator[bytes]:
    """Yield every request without its last bytes, as many as there are."""
    for request in REQUESTS:
        payload = request.encode()
        yield from (payload[:size] for size in range(1, len(payload)))


def misnamed() -> Iterator[bytes]:
    """Yield every request with a topic that is not UTF-8."""
    for request in REQUESTS:
        for name in NOT_UTF8:
            wanted = len(name).to_bytes(2, "big") + name
            yield request.encode().replace(b"\0\6orders", wanted)


def test_what_cannot_be_read_is_answered_as_by_the_published_broker(folder: Path) -> None:
    """Byte for byte: every request cut short at every place, and names that are no text."""
    payloads = [*cut_short(), *misnamed(), *(bytes([kind]) for kind in range(10, 255))]
    with (
        ServerProcess.running(folder / "ours", *BINARY) as server,
        published_broker(folder),
    ):
        ours = [answer(server.others["rustlog"], payload) for payload in payloads]
        theirs = [answer(PLACE, payload) for payload in payloads]
    different = [
        (payload.hex(), mine, other)
        for payload, mine, other in zip(payloads, ours, theirs, strict=True)
        if mine != other
    ]
    assert different == []


def test_nothing_that_was_acknowledged_is_lost_in_an_outage(restarted: RestartedServer) -> None:
    """Our client connects again by itself, and says which of its calls failed."""
    acked: list[bytes] = []
    many, enough = Event(), Event()

    def send_on(client: RustlogClient) -> None:
        for number in count():
            if enough.is_set():
                return
            value = b"%d" % number
            try:
                client.produce("orders", [value])
            except LanceError:
                continue
            acked.append(value)
            if len(acked) == 20:
                many.set()

    with RustlogClient(restarted.rustlog) as client:
        client.create_topic("orders")
        sending = Thread(target=send_on, args=(client,))
        sending.start()
        assert many.wait(60)
        restarted.kill()
        before = len(acked)
        eventually(lambda: len(acked) > before, 60)
        enough.set()
        sending.join(60)
        found = [record.value for record in client.records("orders")]
    assert set(acked) <= set(found)
    assert len(set(found)) == len(found)


def test_the_published_broker_keeps_nothing_through_an_outage(folder: Path) -> None:
    """Its topics are in its memory: the same client is told so, and goes on when they are made."""
    with RustlogClient("{}:{}".format(*PLACE)) as client:
        with published_broker(folder) as broker:
            client.create_topic("orders")
            client.produce("orders", [b"first"])
            broker.send_signal(signal.SIGKILL)
        with published_broker(folder):
            with pytest.raises(NoSuchPartition):
                client.produce("orders", [b"second"])
            client.create_topic("orders")
            client.produce("orders", [b"third"])
            assert [record.value for record in client.records("orders")][-1] == b"third"
