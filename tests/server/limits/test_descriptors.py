"""Descriptors: what the server needs of them, and what happens where there are too few."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lance_server.testing import RawClient, ServerProcess, eventually
from lance_spec.frames import FrameKind
from lance_spec.records import decode_records

pytestmark = pytest.mark.skipif(
    not hasattr(resource, "prlimit"), reason="the limit of another process is changed"
)
TOPICS = 60
FREE = 41


def descriptors_of(server: ServerProcess) -> int:
    """Return how many descriptors a server has."""
    return sum(1 for _ in Path(f"/proc/{server.process.pid}/fd").iterdir())


@contextmanager
def few_descriptors(server: ServerProcess) -> Iterator[None]:
    """Let a server have only some more than it has, for a while."""
    process = server.process.pid
    soft, hard = resource.prlimit(process, resource.RLIMIT_NOFILE)
    resource.prlimit(process, resource.RLIMIT_NOFILE, (descriptors_of(server) + FREE, hard))
    yield
    resource.prlimit(process, resource.RLIMIT_NOFILE, (soft, hard))


def store(client: RawClient, topic_id: int, number: int) -> bool:
    """Send a batch; return whether it was acknowledged, and not refused."""
    client.send(client.batch([b"%d" % number], batch_id=number, topic_id=topic_id))
    frame = client.receive()
    if frame.kind is FrameKind.ACK:
        return True
    assert "Too many open files" in client.error(frame).message
    return False


def test_too_few_descriptors_are_an_error_of_one_request(tmp_path: Path) -> None:
    """Topics whose files are open take batches; the others do as soon as there are enough."""
    with ServerProcess.running(tmp_path) as server, RawClient(server.address) as client:
        topics = [client.create_topic(f"topic-{number}") for number in range(TOPICS)]
        acked: dict[int, list[int]] = {topic_id: [] for topic_id in topics}
        with few_descriptors(server):
            for number in (1, 2):
                for topic_id in topics:
                    if store(client, topic_id, number):
                        acked[topic_id].append(number)
            served = [numbers for numbers in acked.values() if numbers]
            assert 0 < len(served) < TOPICS
            assert all(numbers == [1, 2] for numbers in served)
        for topic_id in topics:
            eventually(lambda: store(client, topic_id, 3))  # noqa: B023 - called before the next one
            acked[topic_id].append(3)
        for topic_id in topics:
            values = [int(value) for _, value in decode_records(client.read_all(topic_id=topic_id))]
            assert values == acked[topic_id]


def test_a_topic_that_is_written_has_two_descriptors(tmp_path: Path) -> None:
    """Its data and its sidecar; a topic at rest has none."""
    options = ("--durability", "fsync", "--storage", "pwritev2")
    with ServerProcess.running(tmp_path, *options) as server, RawClient(server.address) as client:
        topics = [client.create_topic(f"topic-{number}") for number in range(TOPICS)]
        assert store(client, topics[0], 1)
        before = descriptors_of(server)
        for topic_id in topics[1:]:
            assert store(client, topic_id, 1)
        assert descriptors_of(server) - before == 2 * (TOPICS - 1)
