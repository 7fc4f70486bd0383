"""A member in a process: forks, Ctrl-C, and an interpreter that ends with it open."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from tests.platforms.systems import needs_posix

from lance_sdk.errors import ForkedError
from lance_sdk.groups import Coordinator, GroupConsumer
from lance_sdk.offsets import MemoryStore
from lance_server.testing import eventually


@pytest.fixture
def consumer(server: Any, coordinator: Coordinator, topics: Any) -> Iterator[GroupConsumer]:
    """Return a member that reads."""
    options: dict[str, Any] = {"group": "g", "topics": topics.names}
    with GroupConsumer(server.url, coordinator=coordinator.url, **options) as consumer:
        consumer.poll()
        yield consumer


@needs_posix("no process is forked there")
def test_forked_child_is_told(consumer: GroupConsumer) -> None:
    """A forked child cannot use its parent's member, and closing it there does no harm."""
    child = os.fork()
    if child == 0:  # only reports: an assertion here would run the rest of the tests twice
        try:
            consumer.poll()
        except ForkedError:
            consumer.close()
            os._exit(0)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    consumer.commit()


_WAITING = """
import sys
from lance_sdk import GroupConsumer
server, coordinator, *topics = sys.argv[1:]
with GroupConsumer(server, group="g", topics=topics, coordinator=coordinator) as consumer:
    seen = 0
    while True:
        seen += len(consumer.poll())
        if seen == 40:
            print("waiting", flush=True)
"""
_LEAVING = """
import sys
from lance_sdk import GroupConsumer
server, coordinator, *topics = sys.argv[1:]
consumer = GroupConsumer(server, group="g", topics=topics, coordinator=coordinator).open()
print(len(consumer.poll()))
"""


def start(program: str, server: Any, coordinator: Coordinator, topics: Any) -> Any:
    """Start a program that reads these topics."""
    command = [sys.executable, "-c", program, server.url, coordinator.url, *topics.names]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True)


def test_ctrl_c_ends_the_wait_and_commits(server: Any, topics: Any) -> None:
    """Ctrl-C ends a waiting member at once; what it was done with is committed."""
    store = MemoryStore()
    with (
        Coordinator("127.0.0.1:0", store=store) as coordinator,
        start(_WAITING, server, coordinator, topics) as process,
    ):
        assert process.stdout.readline() == "waiting\n"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=20)
        assert "KeyboardInterrupt" in errors
        assert coordinator._service.groups["g"].members == {}
    assert len(store.commits()) >= 3  # the last batch was still being worked on


def test_interpreter_ends_with_a_member_open(
    server: Any, topics: Any, coordinator: Coordinator
) -> None:
    """A program that forgets to close its member ends all the same."""
    with start(_LEAVING, server, coordinator, topics) as process:
        output, _ = process.communicate(timeout=20)
    assert (process.returncode, output) == (0, "10\n")


def test_forgotten_member_is_told(server: Any, coordinator: Coordinator, topics: Any) -> None:
    """A member that was dropped without being closed warns, leaves, and its threads end."""
    options: dict[str, Any] = {"group": "g", "topics": topics.names}
    before = set(threading.enumerate())
    consumer = GroupConsumer(server.url, coordinator=coordinator.url, **options).open()
    consumer.poll()

    def begun() -> list[threading.Thread]:
        return [
            each
            for each in set(threading.enumerate()) - before
            if "AnyIO" not in each.name and not each.name.startswith("asyncio")
        ]

    eventually(lambda: len(begun()) == 2)  # one for each connection
    threads = begun()
    with pytest.warns(ResourceWarning, match="unclosed <GroupConsumer g OPEN"):
        del consumer
    for thread in threads:
        thread.join(10.0)
    assert not any(thread.is_alive() for thread in threads)
    assert coordinator._service.groups["g"].members == {}


_FORGETTING = """
import asyncio, gc, sys
from lance_sdk import AsyncGroupConsumer
server, coordinator, *topics = sys.argv[1:]
async def main():
    consumer = AsyncGroupConsumer(server, group="g", topics=topics, coordinator=coordinator)
    await consumer.open()
    print(len(await consumer.poll()), flush=True)
    del consumer
    gc.collect()
asyncio.run(main())
"""


def test_forgotten_async_member_is_told(server: Any, topics: Any, coordinator: Coordinator) -> None:
    """So does one of tasks."""
    command = [sys.executable, "-W", "always", "-c", _FORGETTING, server.url, coordinator.url]
    done = subprocess.run(
        [*command, *topics.names], capture_output=True, text=True, timeout=30, check=False
    )
    assert done.stdout == "10\n"
    assert "ResourceWarning: unclosed <AsyncGroupConsumer g OPEN" in done.stderr
