"""Turns a server into a node of a cluster."""

import asyncio
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lance_server.cluster.log_manager import ReplicatedLogManager
from lance_server.cluster.node import POOL, TRIM_POOL
from lance_server.cluster.node_options import NodeOptions
from lance_server.cluster.replicated_log import ReplicatedLog, ReplicatedLogError
from lance_server.config.settings import Address, ServerConfig
from lance_server.errors import DataDirError
from lance_server.runtime.scheduling import Scheduler
from lance_server.security.access import AccessConfig
from lance_server.storage.contract import StorageBackend

if TYPE_CHECKING:
    from lance_server.listeners.listener_api import Listener


@dataclass(slots=True)
class ClusterMember:
    """What makes a server a node of a cluster.

    Attributes:
        log: the node's connection to the replicated log.
        advertise: where clients reach the node; by default where it listens.
        ack_timeout: seconds after which an append is answered as maybe applied.
        release: of the software, as other nodes are told.
        trim_log: whether the log is told to delete what every node has made durable.
        offer_copies: whether the HTTP port hands out copies of the data to other nodes.
        linear_reads: whether a read waits until all that was acknowledged before it is applied.
        shards: those that the node hosts beside shard 0; None for all.
        redirects: whether a request for a topic that the node does not host is answered with where
            one is that does; else it is forwarded, where everyone may do everything, without TLS.
    """

    log: ReplicatedLog
    advertise: Address | None = None
    ack_timeout: float = 10.0
    release: str = ""
    trim_log: bool = False
    linear_reads: bool = False
    offer_copies: bool = False
    shards: frozenset[int] | None = None
    redirects: bool = False
    _config: ServerConfig | None = field(default=None, init=False)

    @property
    def pools(self) -> Mapping[str, int]:
        """The threads that a node needs beside a server's."""
        return {POOL: 1, TRIM_POOL: 1}

    def judge(self, config: ServerConfig, listeners: "Sequence[Listener]") -> None:
        """Take a server's configuration; a node serves every protocol."""
        del listeners
        self._config = config

    def join(
        self,
        storage: StorageBackend,
        scheduler: Scheduler,
        loop: asyncio.AbstractEventLoop,
        address: Address,
    ) -> ReplicatedLogManager:
        """Open the node's directory and begin to apply.

        Raises:
            DataDirError: the directory or the log cannot be used.
            OSError: the disk refused.
        """
        config = self._config
        assert config is not None, "it was judged"
        options = NodeOptions(
            node_id=config.node_id,
            address=str(self.advertise or address),
            process=secrets.randbits(63),
            release=self.release,
            ack_timeout=self.ack_timeout,
            segment_age_secs=config.segment_age_secs,
            trims=self.trim_log,
            linear_reads=self.linear_reads,
            offers_copies=self.offer_copies,
            shards=self.shards,
            redirects=self.redirects or _knows_clients(config),
        )
        try:
            return ReplicatedLogManager.join(
                config.data_dir,
                storage,
                scheduler,
                log=self.log,
                node=options,
                options=config.log_options,
                post=loop.call_soon_threadsafe,
                clock=time.time_ns,
                now=time.monotonic,
            )
        except ReplicatedLogError as error:
            raise DataDirError(f"node {config.node_id} cannot join: {error}") from error


def _knows_clients(config: ServerConfig) -> bool:
    """Whether it matters who a client is: then no other node may ask in its place."""
    has_rules = config.access is not None and config.access != AccessConfig()
    return config.tls is not None or config.auth is not None or has_rules
