"""Ctrl-C interrupts every wait, and leaving the block then takes a bounded time."""

import signal
from typing import Any

import pytest

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
