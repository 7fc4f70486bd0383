"""After os.fork() the child is told so, and the parent notices nothing."""

import threading
from typing import Any

from tests.platforms.systems import needs_posix

from lance_sdk.testing import FakePeer, FakeServer
from lance_spec.frames import Frame

pytestmark = needs_posix("no process is forked there")

PARENT = 1
"""Number of the connection of the parent's producer, the first one that is opened."""

PROGRAM = """
    import os, sys, warnings
    warnings.simplefilter("ignore", DeprecationWarning)  # 3.12 warns of forking with threads
    from lance_sdk import Consumer, Producer
    from lance_sdk.errors import DeliveryError, ForkedError

    url = sys.argv[1]
    with Producer(url, linger=60) as producer, Consumer(url) as consumer:
        pending = producer.send(b"from the parent")
        pid = os.fork()
        if pid == 0:
            for use in (
                lambda: producer.send(b"from the child"),
                lambda: producer.send_many([b"from the child"]),
                producer.flush,
                consumer.poll,
                pending.result,
            ):
                try:
                    use()
                except (ForkedError, DeliveryError) as error:
                    assert "open a new one in the child" in str(error), error
                else:
                    os._exit(3)
            assert producer.close().clean
            with Producer(url) as own:
                own.send(b"from the child's own")
            os._exit(0)
        _, status = os.waitpid(pid, 0)
        assert status == 0, status
        producer.flush()
        print(pending.result().attempts)
"""


def test_the_child_is_refused_and_the_parent_goes_on(run: Any, server: FakeServer) -> None:
    """Every use in the child raises ForkedError; a producer of its own works.

    The server takes the parent's record after the child's own, so that it is in flight meanwhile.
    """
    child_stored = threading.Event()

    def child_first(peer: FakePeer, _frame: Frame) -> bool:
        if peer.number == PARENT:
            child_stored.wait(30)
        else:
            child_stored.set()
        return False

    server.on_ingest = child_first
    done = run(PROGRAM, server.url())
    assert done.returncode == 0, done.stderr
    assert done.stdout == "1\n"
    assert server.records() == [b"from the child's own", b"from the parent"]


def test_a_lock_held_while_forking_does_not_block_the_child(run: Any, server: FakeServer) -> None:
    """Threads that send while the process forks leave no lock behind."""
    program = """
        import os, sys, threading, warnings
        warnings.simplefilter("ignore", DeprecationWarning)
        from lance_sdk import Producer
        from lance_sdk.errors import ForkedError

        with Producer(sys.argv[1]) as producer:
            stop = threading.Event()
            def busy():
                while not stop.is_set():
                    producer.send(b"x")
            threads = [threading.Thread(target=busy) for _ in range(3)]
            for thread in threads: thread.start()
            for _ in range(20):
                pid = os.fork()
                if pid == 0:
                    try:
                        producer.send(b"y")
                    except ForkedError:
                        os._exit(0)
                    os._exit(3)
                assert os.waitpid(pid, 0)[1] == 0
            stop.set()
            for thread in threads: thread.join()
    """
    done = run(program, server.url())
    assert done.returncode == 0, done.stderr
    assert b"y" not in server.records()


def test_an_async_producer_is_refused_in_the_child(run: Any, server: FakeServer) -> None:
    """The event loop belongs to the parent."""
    program = """
        import asyncio, os, sys
        from lance_sdk import AsyncProducer
        from lance_sdk.errors import ForkedError
        async def main():
            async with AsyncProducer(sys.argv[1]) as producer:
                pid = os.fork()
                if pid == 0:
                    try:
                        await producer.send(b"y")
                    except ForkedError:
                        os._exit(0)
                    os._exit(3)
                assert os.waitpid(pid, 0)[1] == 0
                await producer.send(b"x")
        asyncio.run(main())
    """
    done = run(program, server.url())
    assert done.returncode == 0, done.stderr
    assert server.records() == [b"x"]
