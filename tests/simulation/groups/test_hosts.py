"""Topics of several hosts, in simulated time: connections stay, and topics move with their host."""

from collections import Counter
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

import pytest
from tests.simulation.groups.loop import SimulatedLoop
from tests.simulation.groups.network import ClientEnd, Network
from tests.simulation.groups.server import ServerModel
from tests.simulation.groups.world import dial_in, end, simulated

from lance_sdk import AsyncTopicsConsumer

NODES = ["server", "server2", "server3"]
TOPICS = [f"t{number}" for number in range(4)]
FIRST = 10
"""Records of each topic at the beginning."""


class Counting(Network):
    """Counts the connections that were asked for.

    Attributes:
        dialled: by host.
    """

    def __init__(self, loop: SimulatedLoop, random: Random) -> None:
        super().__init__(loop, random)
        self.dialled = Counter[str]()

    async def dial(self, action: Any, tls: Any) -> ClientEnd:
        """Count, and connect."""
        self.dialled[action.host] += 1
        return await super().dial(action, tls)


class Reading:
    """A consumer that reads topics of three nodes, which redirect.

    Attributes:
        model: the nodes.
        network: their connections.
        read: numbers of the records that came, by topic.
    """

    def __init__(self, loop: SimulatedLoop) -> None:
        self.loop = loop
        self.network = Counting(loop, Random(1))
        self.model = ServerModel()
        self.model.hosts = lambda: [name for name in NODES if name in self.network.services]
        for name in TOPICS:
            self.model.create(name).count = FIRST
        for name in NODES:
            self.start(name)
        self.read: dict[str, list[int]] = {name: [] for name in TOPICS}
        self.consumer = AsyncTopicsConsumer(
            "lance://server",
            TOPICS,
            start="beginning",
            mode="poll",
            dialect="specified",
            poll_interval=0.3,
            backoff_base=0.05,
            backoff_cap=1.0,
        )
        dial_in(self.consumer._reader, self.network)

    def start(self, name: str) -> None:
        """Start a node."""
        self.network.services[name] = self.model.node(name)

    def append(self) -> None:
        """Add a record to each topic."""
        for topic in self.model.alive:
            topic.count += 1

    async def take(self, seconds: float) -> None:
        """Take what comes for some time."""
        until = self.loop.now + seconds
        while (left := until - self.loop.now) > 0:
            if (batch := await self.consumer.poll(left)) is not None:
                read = self.read[str(batch.topic)]
                read += [int.from_bytes(each.value, "big") for each in batch]

    def check(self) -> None:
        """See that each record has come once, in order."""
        for topic in self.model.alive:
            assert self.read[topic.info.name] == list(range(topic.count))


Play = Callable[[Reading], Awaitable[None]]


def play(scene: Play) -> None:
    """Play a scene in simulated time."""
    loop = SimulatedLoop()

    async def run() -> None:
        reading = Reading(loop)
        async with reading.consumer:
            await scene(reading)
            reading.check()

    try:
        with simulated(loop, Random(2)):
            loop.run_until_complete(run())
    finally:
        end(loop)


def test_each_host_is_connected_to_once() -> None:
    """However long nothing comes."""

    async def scene(reading: Reading) -> None:
        await reading.take(600.0)
        reading.append()
        await reading.take(600.0)
        assert reading.network.dialled == dict.fromkeys(NODES, 1)

    play(scene)


@pytest.mark.parametrize("host", ["server2", "server3"])
def test_topics_of_a_host_that_goes_are_read_elsewhere(host: str) -> None:
    """And there again, once it is back."""

    async def scene(reading: Reading) -> None:
        await reading.take(10.0)
        reading.network.drop_host(host)
        reading.append()
        await reading.take(10.0)
        reading.check()
        reading.start(host)
        reading.append()
        await reading.take(10.0)
        assert reading.network.dialled.total() <= len(NODES) + 4

    play(scene)


def test_connections_are_left_that_no_topic_needs() -> None:
    """The one with the server of the URL stays."""

    async def scene(reading: Reading) -> None:
        await reading.take(10.0)
        reading.model.hosts = lambda: ["server"]
        await reading.take(10.0)
        assert [each.host for each in reading.network.links if each.near.open] == ["server"]
        reading.append()
        await reading.take(10.0)

    play(scene)


def test_a_host_that_cannot_be_reached_is_not_asked_all_the_time() -> None:
    """And its topics hold up no other."""

    async def scene(reading: Reading) -> None:
        del reading.network.services["server3"]
        reading.model.hosts = lambda: NODES
        for topic in reading.model.alive:
            if reading.model.host_of(topic.info.id) == "server3":
                topic.count = 0
        await reading.take(120.0)
        assert 60 <= reading.network.dialled["server3"] <= 300

    play(scene)
