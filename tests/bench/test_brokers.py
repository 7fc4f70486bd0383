"""The brokers that we are compared with: asked for what they promise, started, ended."""

import asyncio
import json
import os
import socket
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from bench.brokers import nats, redis
from bench.brokers.broker import Broker, missing, parse_version, version_of
from bench.brokers.child import running

BROKERS = [pytest.param(each, id=each.name) for each in (nats.BROKER, redis.BROKER)]


def needed(broker: Broker) -> None:
    """Skip the test where a broker, or its client, is not installed."""
    if lacking := missing(broker):
        pytest.skip(f"{lacking} is not installed; bench/install.sh and tox -e bench do that")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Brokers keep their data below the working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("said", "version"),
    [
        ("nats-server: v2.9.10\n", (2, 9, 10)),
        ("Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64\n", (7, 0, 15)),
    ],
)
def test_version(said: str, version: tuple[int, int, int]) -> None:
    """A broker's version is found in what it says of itself."""
    assert parse_version(said) == version


def test_version_missing() -> None:
    """A text without a version is refused, and the error quotes it."""
    with pytest.raises(ValueError, match="sha=7"):
        parse_version("Redis server sha=7")


def test_version_of_failing_program() -> None:
    """A program that is not there is an error, not a version."""
    with pytest.raises(OSError, match="no-such-server"):
        version_of("no-such-server")


@pytest.mark.parametrize(
    ("version", "store"),
    [
        ((2, 9, 10), {"store_dir": "/data"}),
        ((2, 10, 0), {"store_dir": "/data", "sync_interval": "always"}),
    ],
)
def test_nats_config(version: tuple[int, int, int], store: dict[str, str]) -> None:
    """NATS is told to sync always from the version on that knows the setting."""
    made = json.loads(nats.config(4222, Path("/data"), version))
    assert made == {"listen": "127.0.0.1:4222", "jetstream": store}


@pytest.mark.parametrize(("version", "word"), [((2, 9, 10), "not yet"), ((2, 12, 1), "always")])
def test_nats_durability(version: tuple[int, int, int], word: str) -> None:
    """What is said of NATS's durability is that of its version."""
    assert word in nats.durability(version)


def test_missing_program() -> None:
    """A broker without its server is told by the server's name."""
    assert missing(replace(nats.BROKER, program="no-such-server")) == "no-such-server"


def test_missing_client() -> None:
    """A broker without its Python client is told by the client's name."""
    broker = replace(nats.BROKER, program=sys.executable, client="no_such_client")
    assert missing(broker) == "Python client 'no_such_client'"


def test_ended() -> None:
    """The process of a server is gone after its block."""
    with running(["sh", "-c", "echo ready; exec sleep 60"], ready="ready") as pid:
        os.kill(pid, 0)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_not_started() -> None:
    """A server that ends before it is ready is an error with what it logged."""
    program = ["sh", "-c", "echo port taken >&2; exit 1"]
    with pytest.raises(RuntimeError, match="port taken"), running(program, ready="ready"):
        pass


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("broker", BROKERS)
def test_publish(broker: Broker) -> None:
    """Records that are published to a broker of our own are acknowledged."""
    needed(broker)
    with broker.served() as port:
        assert broker.publish(port, b"x" * 100, 50) > 0


@pytest.mark.parametrize("broker", BROKERS)
def test_stopped(broker: Broker, folder: Path) -> None:
    """After its block a broker listens no more, and its data is gone."""
    needed(broker)
    with broker.served() as port:
        socket.create_connection(("127.0.0.1", port), 30).close()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), 30)
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("broker", BROKERS)
def test_compared(broker: Broker) -> None:
    """What a broker is measured with names the installed version."""
    needed(broker)
    assert ".".join(map(str, version_of(broker.program))) in broker.compared()


@pytest.mark.usefixtures("folder")
def test_redis_syncs() -> None:
    """Redis runs with an append-only file that is synced before every reply."""
    needed(redis.BROKER)
    from redis import Redis  # noqa: PLC0415 - optional

    with redis.served() as port, Redis(port=port) as client:
        settings = client.config_get("append*")
    assert (settings["appendonly"], settings["appendfsync"]) == ("yes", "always")


@pytest.mark.usefixtures("folder")
def test_nats_keeps_files() -> None:
    """The stream of NATS is kept in files."""
    needed(nats.BROKER)
    import nats as client  # noqa: PLC0415 - optional

    async def storage(port: int) -> str | None:
        connection = await client.connect(f"nats://127.0.0.1:{port}")
        info = await connection.jetstream().stream_info("bench")
        await connection.close()
        return info.config.storage

    with nats.served() as port:
        assert asyncio.run(storage(port)) == "file"
