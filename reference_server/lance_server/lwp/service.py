"""Parts that all connections share."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from lance_server.config.settings import ServerConfig
from lance_server.log.log_manager import LogManager
from lance_server.lwp.forwarding.node_connection import ConnectNode, Forwarder
from lance_server.runtime.disk_monitor import WatchedStorage
from lance_server.runtime.memory_quota import MemoryBudget
from lance_server.runtime.request_stall import RequestStall
from lance_server.security.authorizer import Security
from lance_server.telemetry.counters import Counters
from lance_server.telemetry.rate_sampler import Sampler
from lance_spec.codec.siphash import consumer_id


@dataclass(slots=True)
class Service:
    """What a connection needs to serve its client.

    Attributes:
        engine: the log.
        config: what the server was told.
        disk: the watched disk below the log.
        security: who may connect, and what they may do.
        counters: what is counted.
        memory: the bound of what clients can make the server hold.
        sampler: rates, from the counts.
        connect_node: opens a connection to another server that answers requests.
        stall: whether requests wait and none completes.
        work_clock: tells how long a connection has worked in a turn of the event loop.
        pressure: why producers are to slow down, or None.
        stopping: whether the server is about to end.
        more_reasons: tells further reasons why batches are not stored now.
        started_at: when it was started, by the monotonic clock.
        consumer_names: names of consumers by their numbers, as far as it was told them.
    """

    engine: LogManager
    config: ServerConfig
    disk: WatchedStorage
    security: Security
    counters: Counters = field(default_factory=Counters)
    memory: MemoryBudget = field(init=False)
    sampler: Sampler = field(init=False)
    connect_node: ConnectNode = Forwarder
    stall: RequestStall = field(default_factory=RequestStall)
    work_clock: Callable[[], float] = time.perf_counter
    pressure: str | None = None
    stopping: bool = False
    more_reasons: Callable[[], list[str]] = list
    started_at: float = field(default_factory=time.monotonic)
    consumer_names: Mapping[int, str] = field(init=False)

    def __post_init__(self) -> None:
        self.consumer_names = {consumer_id(name): name for name in self.config.consumer_names}
        self.sampler = Sampler(self.counters, self.engine)
        self.memory = MemoryBudget(self.config.max_memory, self.engine.backlog)
