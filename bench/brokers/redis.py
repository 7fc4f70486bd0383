"""Redis Streams: an append-only file that is synced always, pipelined XADD with redis-py."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter

from bench.brokers.broker import Broker, dotted, free_port, version_of
from bench.brokers.child import running
from bench.peers import data_directory

_PROGRAM = "redis-server"
_IN_PIPELINE = 1_000
_STREAM = "bench"


def command(port: int, folder: Path) -> list[str]:
    """Return how the server is started: every reply waits until its commands are synced.

    Args:
        port: of 127.0.0.1, where it listens.
        folder: where its append-only file is kept.
    """
    settings = {
        "port": str(port),
        "bind": "127.0.0.1",
        "dir": str(folder),
        "appendonly": "yes",
        "appendfsync": "always",
        "save": "",
        "auto-aof-rewrite-percentage": "0",  # no rewriting beside what is measured
    }
    pairs = ((f"--{name}", value) for name, value in settings.items())
    return [_PROGRAM, *(part for pair in pairs for part in pair)]


@contextmanager
def served() -> Iterator[int]:
    """Run the server, and yield its port."""
    port = free_port()
    with data_directory() as folder, running(command(port, folder), ready="Ready to accept"):
        yield port


def publish(port: int, value: bytes, count: int) -> float:
    """Publish copies of a value; return how many a second were acknowledged.

    Raises:
        redis.RedisError: the server refused one.
    """
    import redis  # noqa: PLC0415 - optional

    with redis.Redis(port=port) as client:
        began = perf_counter()
        for sent in range(0, count, _IN_PIPELINE):
            pipeline = client.pipeline()
            for _ in range(min(_IN_PIPELINE, count - sent)):
                pipeline.xadd(_STREAM, {b"v": value})
            pipeline.execute()
        seconds = perf_counter() - began
        client.delete(_STREAM)
    return count / seconds


def _compared() -> str:
    parser = "with hiredis" if find_spec("hiredis") else "without hiredis"
    return (
        f"Redis Streams {dotted(version_of(_PROGRAM))}, appendfsync always: synced before every "
        f"reply; redis-py {version('redis')} {parser}, pipelines of {_IN_PIPELINE:,} XADD in "
        "one transaction, so that one sync serves a whole pipeline"
    )


BROKER = Broker(
    name="redis",
    program=_PROGRAM,
    client="redis",
    compared=_compared,
    served=served,
    publish=publish,
    records=30_000,
)
