"""Ctrl-C interrupts every wait, and leaving the block then takes a bounded time."""

import signal
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from tests.interrupts import strikes

from lance_sdk import Consumer, Producer, TopicsConsumer
from lance_sdk._api import interruptible
from lance_sdk.testing import FakeServer

WAITS = {
    "flush": "producer.send(b'x'); ready(); producer.flush()",
    "result": "d = producer.send(b'x'); producer._driver.wake(); ready(); d.result()",
    "full buffer": "ready(); [producer.send(bytes(60_000)) for _ in range(10_000)]",
    "bulk": "ready(); producer.send_many(bytes(60_000) for _ in range(10_000))",
}


@pytest.mark.parametrize("wait", WAITS.values(), ids=WAITS.keys())
def test_ctrl_c_ends_a_producers_wait(start: Any, server: FakeServer, wait: str) -> None:
    """The program sees KeyboardInterrupt at once; the process ends."""
    server.on_ingest = lambda _peer, _frame: True
    program = f"""
        import sys
        from lance_sdk import Producer
        def ready():
            print("ready", flush=True)
        with Producer(sys.argv[1], buffer_bytes=1_000_000) as producer:
            {wait}
    """
    process = start(program, server.url())
    assert process.stdout.readline() == "ready\n"
    server.wait_for(lambda: bool(server.ingested))
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=20)
    assert process.returncode == -signal.SIGINT, err
    assert "KeyboardInterrupt" in err


def test_ctrl_c_ends_a_consumers_wait(start: Any, server: FakeServer) -> None:
    """A consumer at the end of the log can be interrupted."""
    program = """
        import sys
        from lance_sdk import Consumer
        with Consumer(sys.argv[1]) as consumer:
            print("ready", flush=True)
            for record in consumer:
                pass
    """
    process = start(program, server.url())
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=20)
    assert process.returncode == -signal.SIGINT, err


def test_ctrl_c_ends_opening(start: Any, server: FakeServer) -> None:
    """Even while a server does not answer."""
    server.on_keepalive = lambda _peer, _frame: True
    program = """
        import sys
        from lance_sdk import Producer
        Producer(sys.argv[1], connect_timeout=60).open()
    """
    process = start(program, server.url())
    server.wait_for(lambda: bool(server.frames))
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=20)
    assert process.returncode == -signal.SIGINT, err


def test_after_ctrl_c_the_producer_still_works(start: Any, server: FakeServer) -> None:
    """An interrupt leaves no lock behind and no record twice."""
    program = """
        import sys
        from lance_sdk import Producer
        sent = 0
        with Producer(sys.argv[1], batch_bytes=1000) as producer:
            print("ready", flush=True)
            try:
                while True:
                    producer.send(b"%d" % sent)
                    sent += 1
            except KeyboardInterrupt:
                producer.send(b"last")
                producer.flush(timeout=10)
        print(sent)
    """
    process = start(program, server.url())
    assert process.stdout.readline() == "ready\n"
    server.wait_for(lambda: len(server.ingested) > 3)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert process.returncode == 0, err
    sent, records = int(out), server.records()
    assert records[-1] == b"last"
    # The interrupt may strike between handing over a record and counting it, never within.
    assert records[:-1] in ([b"%d" % n for n in range(sent)], [b"%d" % n for n in range(sent + 1)])


CONSUMERS: dict[str, Callable[[str], Any]] = {
    "one topic": lambda url: Consumer(url, start="beginning"),
    "several topics": lambda url: TopicsConsumer(url, start="beginning"),
}
COUNT = 5


def some_in_a_loop(consumer: Any, got: list[Any]) -> None:
    """Take three records one by one."""
    for record in consumer:
        got.append([record])
        if len(got) == COUNT - 2:
            return


def a_batch(consumer: Any, got: list[Any]) -> None:
    """Take a batch."""
    got.append(consumer.poll())


@pytest.mark.filterwarnings(
    # A generator that is being closed swallows Ctrl-C, as Python has it.
    "ignore:Exception ignored in. <generator:pytest.PytestUnraisableExceptionWarning"
)
@pytest.mark.parametrize("make", CONSUMERS.values(), ids=CONSUMERS)
@pytest.mark.parametrize("read", [some_in_a_loop, a_batch])
def test_after_ctrl_c_a_consumer_goes_on(
    server: FakeServer,
    make: Callable[[str], Any],
    read: Callable[[Any, list[Any]], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Wherever it struck in taking records: the program gets each of them once."""
    monkeypatch.setattr(interruptible, "LOOK", 0.02)
    sent = [b"%d" % number for number in range(COUNT)]
    with Producer(server.url()) as producer:
        producer.send_many(sent)
    for strike in strikes(within="lance_sdk"):
        got: list[Any] = []
        with make(server.url()) as consumer:
            strike(partial(read, consumer, got))
            while sum(map(len, got)) < COUNT:
                batch = consumer.poll(20)
                assert batch is not None, f"nothing came after {got}"
                got.append(batch)
        assert [record.value for records in got for record in records] == sent
