"""A server that is killed with SIGKILL while a producer sends: nothing is lost, nothing doubled."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.restarted import RestartedServer

from lance_sdk import Consumer, Producer


@pytest.fixture
def victim(tmp_path: Path) -> Iterator[RestartedServer]:
    """Return a server process; it is killed in the end, too."""
    with RestartedServer(tmp_path / "data") as server:
        yield server


def test_every_acknowledged_record_is_there_once_and_in_order(victim: RestartedServer) -> None:
    """Retries carry their first ids, and the server knows them again (AMB-25)."""
    url = f"{victim.url}/orders"
    values = [b"%07d" % number * 10 for number in range(60_000)]
    enough = threading.Semaphore(0)

    def acknowledged(_delivery: object) -> None:
        enough.release()

    options = {"create_topic": True, "backoff_cap": 0.1, "batch_bytes": 4000}
    with Producer(url, close_timeout=60, **options) as producer:
        for part in range(3):
            chunk = values[part * 20_000 : (part + 1) * 20_000]
            producer.send_many(chunk[:10_000])
            producer.send(chunk[10_000]).add_done_callback(acknowledged)
            assert enough.acquire(timeout=60)
            producer.send_many(chunk[10_001:-1])
            victim.freeze()  # while the second half of the chunk is on its way
            producer.send(chunk[-1])
            victim.kill()
        producer.flush(timeout=60)
        assert producer.stats().connects >= 4
    with Consumer(url, stop_at_end=True) as consumer:
        found = [record.value for batch in consumer.batches() for record in batch]
    assert found == values
