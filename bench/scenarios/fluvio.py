"""Fluvio's producers into our server.

The published client is compared with itself into a server that only acks, which
``python -m bench.scenarios.fluvio ADDRESS`` runs; a single batch, acknowledged, with LWP's.
"""

import asyncio
import importlib.util
import os
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from bench.harness import Rate, Scenario, rate
from bench.peers import server_process
from bench.scenarios.latency import acknowledged, quantile
from lance_sdk.fluvio import FluvioClient
from lance_spec.fluvio.batches import FluvioRecord, pack_batches
from lance_spec.messages.fluvio import (
    Frame,
    ProducePartition,
    ProduceRequest,
    ProduceTopic,
    RecordSet,
    Request,
)

_RECORDS = 50_000
_VALUE = b"x" * 100
_TOPIC = "bench"
_SC, _SPU = 9003, 9005
_BATCH_BYTES = 1_000
_BATCHES = 400
_VERSION = 25
_AHEAD = 2_000
"""Records that the client may have sent without looking at their acknowledgements."""


class AckOnly(asyncio.Protocol):
    """An SPU that acknowledges every batch and keeps nothing."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._offset = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep where answers go."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Answer every whole request."""
        self._data += data
        while len(self._data) >= 4:
            size = 4 + int.from_bytes(self._data[:4], "big")
            if len(self._data) < size:
                return
            frame = bytes(self._data[4:size])
            del self._data[:size]
            body = frame[4:8] + self._answer(frame)
            self._transport.write(len(body).to_bytes(4, "big") + body)

    def _answer(self, frame: bytes) -> bytes:
        if frame[:2] == b"\x00\x12":  # ApiVersions: Produce in versions 0 to 25
            return struct.pack(">hihhhH", 0, 1, 0, 0, 25, 6) + b"0.17.3"
        place = 10 + int.from_bytes(frame[8:10], "big") + 7  # past id, transaction and timeout
        out = bytearray(frame[place : place + 4])
        topics = int.from_bytes(out, "big")
        place += 4
        for _ in range(topics):
            behind = place + 2 + int.from_bytes(frame[place : place + 2], "big")
            out += frame[place : behind + 4]
            entries = int.from_bytes(frame[behind : behind + 4], "big")
            place = behind + 4
            for _ in range(entries):
                size = int.from_bytes(frame[place + 4 : place + 8], "big")
                out += frame[place : place + 4] + struct.pack(">hqqq", 0, self._offset, -1, 0)
                if size:  # last_offset_delta
                    self._offset += 1 + int.from_bytes(frame[place + 31 : place + 35], "big")
                place += 8 + size
        return bytes(out) + bytes(4)


def serve_acks(host: str) -> None:
    """Run the server that only acks, until standard input ends."""
    from lance_server.config.settings import Address  # noqa: PLC0415 - only this process needs the server
    from lance_server.embedded import running  # noqa: PLC0415 - likewise
    from lance_server.listeners.fluvio import Cluster, FluvioListener  # noqa: PLC0415 - likewise

    loop = asyncio.new_event_loop()
    loop.run_until_complete(loop.create_server(AckOnly, host, _SPU))
    threading.Thread(target=loop.run_forever, daemon=True).start()
    cluster = Cluster()
    cluster.spu = Address(host, _SPU)
    listener = FluvioListener("sc", Address(host, _SC), cluster)
    with tempfile.TemporaryDirectory() as data, running(data, listeners=[listener]):
        print("ready", flush=True)
        sys.stdin.read()


@contextmanager
def _acking(host: str) -> Iterator[None]:
    command = [sys.executable, "-m", "bench.scenarios.fluvio", host]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    try:
        assert process.stdout is not None
        if process.stdout.readline() != b"ready\n":
            raise RuntimeError("the server that only acks did not start")
        yield
    finally:
        process.communicate(timeout=30)


def _producer(host: str) -> Any:
    import fluvio  # noqa: PLC0415 - optional

    config = fluvio.FluvioConfig.new(f"{host}:{_SC}")
    fluvio.FluvioAdmin.connect_with_config(config).create_topic(
        _TOPIC, fluvio.TopicSpec.create().build()
    )
    return fluvio.Fluvio.connect_with_config(config).topic_producer(_TOPIC)


def _send(producer: Any) -> None:
    waiting = []
    for _ in range(_RECORDS):
        waiting.append(producer.send(b"", _VALUE))
        if len(waiting) >= _AHEAD:
            waiting[0].wait()
            waiting.clear()
    producer.flush()


@contextmanager
def _produce() -> Iterator[tuple[Rate, Rate]]:
    number = os.getpid() % 60_000
    ours, theirs = (f"127.{100 + each}.{number >> 8}.{number % 254 + 1}" for each in (0, 1))
    options = ("--fluvio-sc", f"{ours}:{_SC}", "--fluvio-spu", f"{ours}:{_SPU}")
    with server_process(*options), _acking(theirs):
        real, null = _producer(ours), _producer(theirs)
        yield rate(_RECORDS, lambda: _send(real)), rate(_RECORDS, lambda: _send(null))


def _acknowledged(host: str) -> float:
    """Send a batch of 1 KiB, wait for its response, and so on; return the usual time."""
    batch = next(pack_batches([FluvioRecord(b"x" * _BATCH_BYTES)]))
    part = ProducePartition(partition=0, records=RecordSet(batches=[batch]))
    asked = ProduceRequest(
        transactional_id=None,
        isolation=1,
        timeout_ms=30_000,
        topics=[ProduceTopic(name=_TOPIC, partitions=[part])],
    )
    request = Request(
        api_key=0,
        api_version=_VERSION,
        correlation_id=1,
        client_id="bench",
        body=asked.encode(_VERSION),
    )
    frame, times = Frame(body=request.encode()).encode(), []
    with socket.create_connection((host, _SPU), 30) as peer:
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for _ in range(_BATCHES):
            begun = time.perf_counter()
            peer.sendall(frame)
            size = int.from_bytes(peer.recv(4, socket.MSG_WAITALL), "big")
            peer.recv(size, socket.MSG_WAITALL)
            times.append(time.perf_counter() - begun)
    return quantile(times, 0.5)


@contextmanager
def _single() -> Iterator[tuple[Rate, Rate]]:
    number = os.getpid() % 60_000
    host = f"127.102.{number >> 8}.{number % 254 + 1}"
    options = ("--fluvio-sc", f"{host}:{_SC}", "--fluvio-spu", f"{host}:{_SPU}")
    with server_process(*options) as address:
        with FluvioClient(f"{host}:{_SC}") as client:
            client.create_topic(_TOPIC)
        yield (
            lambda: 1 / _acknowledged(host),
            lambda: 1 / quantile([end - begin for begin, end in acknowledged(address)], 0.5),
        )


_SINGLE = Scenario(
    name="fluvio/ack-p50",
    unit="1/s, of the median of a batch and its acknowledgement, 1 KiB",
    other="the same batch in LWP, into the same server",
    sides=_single,
)
SCENARIOS = (
    (
        _SINGLE,
        Scenario(
            name="fluvio/produce-100B",
            unit="records/s",
            other="the same client, fluvio 0.21.0, into a server that only acks",
            sides=_produce,
        ),
    )
    if importlib.util.find_spec("fluvio")
    else (_SINGLE,)
)


if __name__ == "__main__":
    serve_acks(sys.argv[1])
