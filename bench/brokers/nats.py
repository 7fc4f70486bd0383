"""NATS JetStream: a stream on disk, asynchronous publishing with nats-py."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from time import perf_counter

from bench.brokers.broker import Broker, Version, dotted, free_port, version_of
from bench.brokers.child import running
from bench.peers import data_directory

_PROGRAM = "nats-server"
_SYNC_ALWAYS_SINCE = (2, 10, 0)
_SUBJECT = "bench"


def config(port: int, folder: Path, version: Version) -> str:
    """Return the server's configuration, as durable as its version allows.

    Args:
        port: of 127.0.0.1, where it listens.
        folder: where streams are kept.
        version: the server's.
    """
    store = {"store_dir": str(folder)}
    if version >= _SYNC_ALWAYS_SINCE:
        store["sync_interval"] = "always"
    return json.dumps({"listen": f"127.0.0.1:{port}", "jetstream": store})


def durability(version: Version) -> str:
    """Say when a version of the server syncs what it acknowledges."""
    if version >= _SYNC_ALWAYS_SINCE:
        return "synced before every acknowledgement (sync_interval: always)"
    return (
        "acknowledged when written, not yet synced: this version syncs by a timer of its own and "
        "has no setting for it"
    )


@contextmanager
def served() -> Iterator[int]:
    """Run the server with an empty stream in a file store, and yield its port."""
    port = free_port()
    with data_directory() as folder:
        file = folder / "server.conf"
        file.write_text(config(port, folder, version_of(_PROGRAM)))
        with running([_PROGRAM, "-c", str(file)], ready="Server is ready"):
            asyncio.run(_create(port))
            yield port


async def _create(port: int) -> None:
    import nats  # noqa: PLC0415 - optional

    client = await nats.connect(f"nats://127.0.0.1:{port}")
    await client.jetstream().add_stream(name=_SUBJECT, subjects=[_SUBJECT], storage="file")
    await client.close()


def publish(port: int, value: bytes, count: int) -> float:
    """Publish copies of a value; return how many a second were acknowledged.

    Raises:
        nats.js.errors.APIError: the server refused one.
    """
    return asyncio.run(_publish(port, value, count))


async def _publish(port: int, value: bytes, count: int) -> float:
    import nats  # noqa: PLC0415 - optional

    client = await nats.connect(f"nats://127.0.0.1:{port}")
    stream = client.jetstream()
    began = perf_counter()
    acks = [await stream.publish_async(_SUBJECT, value) for _ in range(count)]
    await stream.publish_async_completed()
    seconds = perf_counter() - began
    for ack in acks:
        ack.result()
    await stream.purge_stream(_SUBJECT)
    await client.close()
    return count / seconds


def _compared() -> str:
    server, client = version_of(_PROGRAM), metadata.version("nats-py")
    return (
        f"NATS JetStream {dotted(server)}, file store, {durability(server)}; nats-py "
        f"{client}, publish_async, 4,000 in flight"
    )


BROKER = Broker(
    name="nats",
    program=_PROGRAM,
    client="nats",
    compared=_compared,
    served=served,
    publish=publish,
    records=15_000,
)
