"""The published client with the kit's golden servers: what they do is what it relies on."""

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("fluvio", reason="the published client fluvio is not installed")
pytest.importorskip("cramjam", reason="the extra fluvio is not installed")

import fluvio

SERVE = """
import asyncio
from lance_conformance.fluvio.golden.server import Rules, serving

async def main():
    async with serving(Rules()) as port:
        print(port, flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""
RECORDS = 200


@pytest.fixture
def config() -> Iterator[Any]:
    """Return what the published client needs to find golden servers in another process."""
    with subprocess.Popen([sys.executable, "-c", SERVE], stdout=subprocess.PIPE, text=True) as run:
        try:
            assert run.stdout is not None
            yield fluvio.FluvioConfig.new(f"127.0.0.1:{int(run.stdout.readline())}")
        finally:
            run.kill()


@pytest.mark.parametrize("kind", ["Gzip", "Snappy", "Lz4", "Zstd"])
def test_the_published_client_works_with_the_golden_servers(config: Any, kind: str) -> None:
    """It creates a topic, produces compressed, consumes what it produced, deletes the topic."""
    admin = fluvio.FluvioAdmin.connect_with_config(config)
    admin.create_topic("golden", fluvio.TopicSpec.create().with_partitions(1).build())
    client = fluvio.Fluvio.connect_with_config(config)
    builder = fluvio.TopicProducerConfigBuilder().compression(getattr(fluvio.Compression, kind))
    producer = client.topic_producer_with_config("golden", builder.build())
    for number in range(RECORDS):
        producer.send(b"%d" % number, b"value %d" % number)
    producer.flush()
    stream = client.partition_consumer("golden", 0).stream(fluvio.Offset.beginning())
    for number in range(RECORDS):
        record = next(stream)
        assert (record.offset(), record.value_string()) == (number, f"value {number}")
    admin.delete_topic("golden")
    assert "golden" not in [topic.name() for topic in admin.all_topics()]
