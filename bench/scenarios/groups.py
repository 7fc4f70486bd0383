"""Groups: how quickly they rebalance, how many connections they need, what reading in one costs.

``python -m bench.scenarios.groups`` tells the figures that are no comparison.
"""

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from functools import partial
from time import monotonic, perf_counter
from typing import Any

from bench.harness import Rate, Scenario
from bench.peers import server_process
from lance_sdk import (
    AsyncGroupConsumer,
    Client,
    Consumer,
    Coordinator,
    GroupConsumer,
    Producer,
)

_RECORDS = 1_000_000
_VALUE = b"x" * 100
_MEMBERS, _PARTITIONS, _SESSION = 20, 200, 3.0
_TOPICS = 40


# What reading in a group costs --------------------------------------------------------------------


def _read(consumer: Any) -> float:
    """Return records a second, from the first batch on: joining a group is not reading."""
    with consumer:
        batches = consumer.batches()
        first = next(batches).count
        began = perf_counter()
        rest = sum(batch.count for batch in batches)
        took = perf_counter() - began
    if first + rest != _RECORDS:
        raise RuntimeError(f"{first + rest} of {_RECORDS} records came")
    return float(rest / took)


def _read_alone(url: str) -> float:
    return _read(Consumer(f"{url}/bench", stop_at_end=True))


def _read_in_group(url: str, coordinator: str, turns: Iterator[int]) -> float:
    group = f"g{next(turns)}"  # each begins at the beginning
    options: Any = {"coordinator": coordinator, "stop_at_end": True}
    return _read(GroupConsumer(url, group=group, topics=["bench"], **options))


@contextmanager
def _consuming() -> Iterator[tuple[Rate, Rate]]:
    with server_process() as address, Coordinator("127.0.0.1:0") as coordinator:
        url = f"lance://{address}"
        with Producer(f"{url}/bench", create_topic=True) as producer:
            producer.send_many([_VALUE] * _RECORDS)
        ours = partial(_read_in_group, url, coordinator.url, iter(range(1 << 30)))
        yield ours, partial(_read_alone, url)


SCENARIOS = (
    Scenario(
        name="groups/consume-in-a-group-of-one-100B",
        unit="records/s",
        other="the same records read by a plain Consumer",
        sides=_consuming,
    ),
)


# A rebalance after a kill -------------------------------------------------------------------------


def _be_killed(url: str, coordinator: str) -> None:
    """Be a member of the group until this process is killed."""
    with GroupConsumer(
        url,
        group="large",
        topics=["large"],
        coordinator=coordinator,
        member="victim",
        session_timeout=_SESSION,
        on_assigned=lambda topics: print(len(topics), flush=True),
    ) as consumer:
        while True:
            consumer.poll(1.0)


class _Owners:
    """Counts the partitions that the members of this process have."""

    def __init__(self) -> None:
        self.owned: dict[str, set[str]] = {}
        self.changed = asyncio.Event()

    async def read(self, consumer: AsyncGroupConsumer, name: str) -> None:
        while True:
            await consumer.poll(0.05)
            self.owned[name] = {topic.label for topic in consumer.assignment}
            self.changed.set()

    async def wait_for(self, count: int) -> None:
        """Wait until they have so many together."""
        while sum(map(len, self.owned.values())) != count:
            self.changed.clear()
            await self.changed.wait()


async def _rebalance(url: str, coordinator: str) -> float:
    """Return the seconds from a kill, beyond the session, until every partition has an owner."""
    owners = _Owners()
    async with AsyncExitStack() as stack, asyncio.TaskGroup() as tasks:
        for number in range(_MEMBERS - 1):
            name = f"m{number}"
            made = AsyncGroupConsumer(
                url,
                group="large",
                topics=["large"],
                coordinator=coordinator,
                member=name,
                session_timeout=_SESSION,
            )
            consumer = await stack.enter_async_context(made)
            tasks.create_task(owners.read(consumer, name))
        await owners.wait_for(_PARTITIONS)
        command = [sys.executable, "-m", "bench.scenarios.groups", "member", url, coordinator]
        victim = subprocess.Popen(command, stdout=subprocess.PIPE)  # noqa: ASYNC220 - it lives on
        await asyncio.to_thread(victim.stdout.readline)  # type: ignore[union-attr]  # it is a pipe
        share = _PARTITIONS // _MEMBERS
        await asyncio.wait_for(owners.wait_for(_PARTITIONS - share), 60)
        victim.kill()
        began = monotonic()
        await asyncio.wait_for(owners.wait_for(_PARTITIONS), 60)
        took = monotonic() - began - _SESSION
        victim.communicate()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            if "read" in repr(task.get_coro()):
                task.cancel()
    return took


# Connections and round trips ----------------------------------------------------------------------


class _Counted:
    """A relay to the server that counts connections, and bytes of requests while it is told to."""

    def __init__(self, address: str) -> None:
        self._host, _, self._port = address.partition(":")
        self.connections = 0
        self.turns = 0
        self._last = ""

    async def start(self) -> str:
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        host, port = server.sockets[0].getsockname()[:2]
        return f"lance://{host}:{port}"

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        back, forth = await asyncio.open_connection(self._host, int(self._port))
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._pass(reader, forth, "ask"))
            tasks.create_task(self._pass(back, writer, "answer"))

    async def _pass(
        self, source: asyncio.StreamReader, target: asyncio.StreamWriter, what: str
    ) -> None:
        while data := await source.read(1 << 16):
            if what == "ask" and self._last != "ask":
                self.turns += 1
            self._last = what
            target.write(data)
            await target.drain()
        target.close()


async def _many_topics(address: str, coordinator: str) -> dict[str, int]:
    """Return what a member of many topics costs in connections, and its lag in round trips."""
    relay = _Counted(address)
    url = await relay.start()
    names = [f"topic-{number}" for number in range(_TOPICS)]
    async with AsyncGroupConsumer(
        url, group="many", topics=names, coordinator=coordinator, mode="push"
    ) as consumer:
        while len(consumer.assignment) < _TOPICS:
            await consumer.poll(0.1)
        connections, relay.turns = relay.connections, 0
        lags = await consumer.lag()
        return {"connections": connections, "lag_round_trips": relay.turns, "topics": len(lags)}


def main() -> None:
    """Print the figures as JSON."""
    if sys.argv[1:2] == ["member"]:
        _be_killed(*sys.argv[2:])
        return
    with server_process() as address, Coordinator("127.0.0.1:0") as coordinator:
        url = f"lance://{address}"
        with Client(url) as client:
            client.create_topic("large", partitions=_PARTITIONS)
            for number in range(_TOPICS):
                client.create_topic(f"topic-{number}")
        told: dict[str, Any] = asyncio.run(_many_topics(address, coordinator.url))
        told["rebalance_seconds"] = round(asyncio.run(_rebalance(url, coordinator.url)), 3)
        print(json.dumps(told | {"members": _MEMBERS, "partitions": _PARTITIONS}))


if __name__ == "__main__":
    main()
