"""Interpreter exit: what is still buffered is delivered, or reported; nothing hangs."""

from typing import Any

from lance_sdk.testing import FakeServer


def test_a_forgotten_producer_is_flushed(run: Any, server: FakeServer) -> None:
    """The program ends without close(): its records arrive all the same."""
    program = """
        import sys
        from lance_sdk import Producer
        producer = Producer(sys.argv[1], linger=60).open()
        producer.send_many([b"%d" % number for number in range(1000)])
    """
    done = run(program, server.url())
    assert done.returncode == 0, done.stderr
    assert server.records() == [b"%d" % number for number in range(1000)]


def test_a_server_that_never_acknowledges_cannot_keep_the_process(
    run: Any, server: FakeServer
) -> None:
    """After a bounded time it ends, and says how many records were lost."""
    server.on_ingest = lambda _peer, _frame: True
    program = """
        import sys
        from lance_sdk import Producer
        producer = Producer(sys.argv[1]).open()
        producer.send_many([b"x"] * 12)
    """
    done = run(program, server.url())
    assert done.returncode == 0, done.stderr
    assert "DeliveryWarning: 12 records were not delivered" in done.stderr


def test_a_server_that_is_gone_cannot_keep_the_process(run: Any, server: FakeServer) -> None:
    """Neither can reconnecting."""
    server.on_ingest = lambda _peer, _frame: server.drop_all() or True
    program = """
        import sys
        from lance_sdk import Producer
        producer = Producer(sys.argv[1]).open()
        producer.send(b"x")
    """
    done = run(program, server.url())
    assert done.returncode == 0, done.stderr
    assert "DeliveryWarning: 1 records" in done.stderr


def test_a_forgotten_consumer_ends_with_the_program(run: Any, server: FakeServer) -> None:
    """Its thread does not keep the process."""
    program = """
        import sys
        from lance_sdk import Consumer
        consumer = Consumer(sys.argv[1]).open()
        assert consumer.poll(timeout=0.01) is None
    """
    done = run(program, server.url())
    assert done.returncode == 0, done.stderr


def test_a_dropped_producer_warns_and_delivers(run: Any, server: FakeServer) -> None:
    """Losing the last reference is a ResourceWarning, not a loss."""
    program = """
        import sys, warnings
        warnings.simplefilter('always')
        from lance_sdk import Producer
        producer = Producer(sys.argv[1], linger=60).open()
        delivery = producer.send(b"x")
        del producer
        delivery.result(timeout=10)
    """
    done = run(program, server.url())
    assert done.returncode == 0, done.stderr
    assert "ResourceWarning: unclosed <Producer lance://" in done.stderr
    assert server.records() == [b"x"]


def test_an_asyncio_program_that_forgets_to_close_ends(run: Any, server: FakeServer) -> None:
    """Its tasks are cancelled with the loop; what was lost is not hidden."""
    program = """
        import asyncio, sys
        from lance_sdk import AsyncProducer
        async def main():
            async with AsyncProducer(sys.argv[1]) as producer:
                await producer.send(b"x")
        asyncio.run(main())
    """
    done = run(program, server.url())
    assert done.returncode == 0, done.stderr
    assert server.records() == [b"x"]
