"""SIGKILL while records arrive: nothing acknowledged is lost, nothing undurable was shown."""

import threading
from collections.abc import Callable
from typing import Any, Self

import pytest

from lance_sdk import Client, Consumer, Producer

RECORDS = [f"record {number:06d} {'x' * (number % 97)}".encode() for number in range(12_000)]
DEADLINE = 60.0
EAGER = {
    "batch_bytes": 4096,
    "max_in_flight": 64,  # 256 KiB: some are acknowledged before the first kill
    "linger": 0.001,
    "backoff_base": 0.01,
    "backoff_cap": 0.2,
}
PATIENT = {"backoff_base": 0.01, "backoff_cap": 0.2, "poll_interval": 0.005}

Lay = Callable[..., Any]


class Reader:
    """Follows a topic from its beginning in a thread and keeps every byte it was shown.

    It begins before the first kill, and leaves when it has seen the last record.
    """

    def __init__(self, url: str) -> None:
        self.seen: list[tuple[int, bytes]] = []
        self.began = threading.Event()
        self._url = url
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        assert self.began.wait(DEADLINE)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_error: object) -> None:
        if kind is None:
            self._thread.join(DEADLINE)
            assert not self._thread.is_alive(), "the reader never saw the last record"

    def _run(self) -> None:
        with Consumer(self._url, **PATIENT) as consumer:
            for batch in consumer.batches():
                self.seen.append((batch.offset, batch.data))
                self.began.set()
                if batch.data.endswith(RECORDS[-1]):
                    return


def log_of(url: str) -> list[tuple[int, bytes]]:
    """The whole topic as it is now: offset and bytes of every piece."""
    with Consumer(url, stop_at_end=True, **PATIENT) as consumer:
        return [(batch.offset, batch.data) for batch in consumer.batches()]


def values_of(url: str) -> list[bytes]:
    """The values of all records, in log order."""
    with Consumer(url, stop_at_end=True, **PATIENT) as consumer:
        return [record.value for record in consumer]


def assert_shown_bytes_are_in_the_log(reader: Reader, log: list[tuple[int, bytes]]) -> None:
    """What the reader saw at an offset is what the log holds there now."""
    stretches = joined(log)
    for offset, data in reader.seen:
        start, held = next(pair for pair in reversed(stretches) if pair[0] <= offset)
        assert held[offset - start : offset - start + len(data)] == data


def joined(log: list[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
    """The log as few pieces as its gaps allow: a crash retires the offsets after it."""
    pieces: list[tuple[int, bytearray]] = []
    for offset, data in log:
        if pieces and pieces[-1][0] + len(pieces[-1][1]) == offset:
            pieces[-1][1].extend(data)
        else:
            pieces.append((offset, bytearray(data)))
    return [(offset, bytes(data)) for offset, data in pieces]


@pytest.fixture(params=["server", "forgetful_server"], ids=["disk", "forgetful disk"])
def any_server(request: pytest.FixtureRequest) -> Any:
    """The server, on a disk that SIGKILL does no harm, and on one that it does."""
    return request.getfixturevalue(request.param)


@pytest.mark.parametrize(
    ("any_server", "upstream", "downstream"),
    [
        pytest.param("forgetful_server", [2_000, 60_001, 250_007, 600_011], [],
                     id="while frames arrive"),
        pytest.param("forgetful_server", [], [400, 1_001, 3_000, 6_007],
                     id="while acknowledgements leave"),
        pytest.param("forgetful_server", [100_000, 101_000, 102_000], [5_000],
                     id="again soon after a restart"),
        pytest.param("server", [2_000, 250_007], [1_001, 5_000], id="on a disk that keeps all"),
    ],
    indirect=["any_server"],
)  # fmt: skip
def test_a_killed_and_restarted_server_has_every_record_once_in_order(
    any_server: Any, wire: Lay, upstream: list[int], downstream: list[int]
) -> None:
    """The producer reconnects by itself; all its deliveries succeed and none is stored twice."""
    server = any_server
    with Producer(f"{server.url}/flights", create_topic=True) as producer:
        producer.send(RECORDS[0])
    line = wire(
        server.port,
        dict.fromkeys(upstream, server.restart),
        dict.fromkeys(downstream, server.restart),
    )
    with Reader(f"{server.url}/flights") as reader:
        with Producer(f"{line.url}/flights", **EAGER) as producer:
            deliveries = [producer.send(value) for value in RECORDS[1:]]
            producer.flush(timeout=DEADLINE)
        for delivery in deliveries:
            delivery.result(timeout=0)
    assert line.pending == 0
    assert server.starts == 1 + len(upstream) + len(downstream)
    assert values_of(f"{server.url}/flights") == RECORDS
    assert_shown_bytes_are_in_the_log(reader, log_of(f"{server.url}/flights"))


def test_after_a_final_kill_the_log_is_what_was_sent_up_to_some_record(
    any_server: Any, wire: Lay
) -> None:
    """The server stays away: what was acknowledged is there, the rest may be, in order."""
    server = any_server
    with Client(server.url) as client:
        client.create_topic("flights")
    line = wire(server.port, {300_001: server.kill})
    producer = Producer(f"{line.url}/flights", **EAGER)
    producer.open()
    deliveries = [producer.send(value) for value in RECORDS]
    report = producer.close(timeout=0.5)
    server.start()
    stored = values_of(f"{server.url}/flights")
    assert not report.clean
    assert 0 < report.delivered == sum(map(delivered, deliveries)) <= len(stored) < len(RECORDS)
    assert stored == RECORDS[: len(stored)]


def delivered(delivery: Any) -> bool:
    """Whether the server acknowledged the record."""
    return delivery.done() and delivery.exception() is None
