"""Interpreter exit: what is still buffered is delivered, or reported; nothing hangs."""

from typing import Any

import pytest

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


FORGOTTEN = """
    import sys
    from lance_sdk import AsyncProducer, Hooks
    class Told(Hooks):
        def on_close(self, event):
            print("closed:", event.delivered, event.unsent)
    async def main():
        producer = await AsyncProducer(sys.argv[1], hooks=Told(), linger=60).open()
        for number in range(100):
            await producer.send(b"%d" % number)
        {keep}
"""
RUNS = {
    "asyncio": "import asyncio; asyncio.run(main())",
    "trio": "import trio; trio.run(main)",
}
KEPT = pytest.mark.parametrize("keep", ["global kept; kept = producer", "return"])


def dedented(keep: str, backend: str) -> str:
    """Return a program that forgets to close its producer."""
    return f"{FORGOTTEN.format(keep=keep)}\n    {RUNS[backend]}\n"


@KEPT
@pytest.mark.parametrize("backend", sorted(RUNS))
def test_a_forgotten_async_producer_delivers_when_its_event_loop_ends(
    run: Any, server: FakeServer, keep: str, backend: str
) -> None:
    """Dropped or still referred to: all of its records arrive, and the hook says so.

    What the loop's end cuts off is sent again under its identity, which a real server stores once.
    """
    done = run(dedented(keep, backend), server.url())
    assert done.returncode == 0, done.stderr
    assert list(dict.fromkeys(server.records())) == [b"%d" % number for number in range(100)]
    assert "closed: 100 0" in done.stdout
    assert "DeliveryWarning" not in done.stderr


@pytest.mark.parametrize("backend", sorted(RUNS))
def test_what_an_event_loop_that_ends_cannot_deliver_is_told(
    run: Any, server: FakeServer, backend: str
) -> None:
    """By default, with the count, after two seconds."""
    server.on_ingest = lambda _peer, _frame: True
    done = run(dedented("return", backend), server.url())
    assert done.returncode == 0, done.stderr
    assert "DeliveryWarning: 100 records were not delivered when the event loop" in done.stderr
    assert "closed: 0 100" in done.stdout


def test_an_event_loop_that_was_stopped_tells_at_exit_what_is_lost(
    run: Any, server: FakeServer
) -> None:
    """Nothing can be delivered any more; the count is in the warning."""
    program = """
        import asyncio, sys
        from lance_sdk import AsyncProducer
        async def main():
            global producer
            producer = await AsyncProducer(sys.argv[1], linger=60).open()
            await producer.send(b"0")
            for number in range(9):
                await producer.send(b"x")
        server_waits = asyncio.new_event_loop()
        server_waits.run_until_complete(main())
    """
    server.on_ingest = lambda _peer, _frame: True
    done = run(program, server.url())
    assert done.returncode == 0, done.stderr
    assert "DeliveryWarning: 10 records were not delivered" in done.stderr


def test_an_event_loop_of_another_thread_gets_time_at_exit(run: Any, server: FakeServer) -> None:
    """Its producer delivers."""
    program = """
        import asyncio, sys, threading
        from lance_sdk import AsyncProducer
        loop = asyncio.new_event_loop()
        threading.Thread(target=loop.run_forever, daemon=True).start()
        async def main():
            global producer
            producer = await AsyncProducer(sys.argv[1], linger=60).open()
            await producer.send_many([b"x"] * 10)
        asyncio.run_coroutine_threadsafe(main(), loop).result()
    """
    done = run(program, server.url())
    assert done.returncode == 0, done.stderr
    assert server.records() == [b"x"] * 10


@pytest.mark.parametrize("backend", sorted(RUNS))
def test_a_cancelled_scope_tells_what_it_left_undelivered(
    run: Any, server: FakeServer, backend: str
) -> None:
    """The scope ends, and the warning has the count."""
    server.on_ingest = lambda _peer, _frame: True
    program = f"""
        import sys, anyio
        from lance_sdk import AsyncProducer
        async def main():
            with anyio.CancelScope() as scope:
                async with AsyncProducer(sys.argv[1]) as producer:
                    await producer.send_many([b"x"] * 7)
                    scope.cancel()
                    await anyio.sleep_forever()
            print("went on")
        anyio.run(main, backend="{backend}")
    """
    done = run(program, server.url())
    assert done.returncode == 0, done.stderr
    assert "went on" in done.stdout
    assert "DeliveryWarning: 7 records were not delivered when an exception ended" in done.stderr


def test_a_block_that_an_exception_ends_tells_what_is_lost(run: Any, server: FakeServer) -> None:
    """Beside the exception, which is not hidden."""
    server.on_ingest = lambda _peer, _frame: True
    program = """
        import sys
        from lance_sdk import Producer
        with Producer(sys.argv[1], close_timeout=0.2) as producer:
            producer.send_many([b"x"] * 3)
            raise ValueError("the block's own")
    """
    done = run(program, server.url())
    assert "ValueError: the block's own" in done.stderr
    assert "DeliveryWarning: 3 records were not delivered" in done.stderr
