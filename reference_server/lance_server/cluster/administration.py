"""Administration for ``lwp cluster``: writes to a cluster's log, and reads the nodes' reports."""

import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, Final

from lance_server.cluster.applying.settings import APPLY_VERSION, DIGEST_MARK, Settings
from lance_server.cluster.copies.first_state import Founding, founding_of
from lance_server.cluster.kafka_log.settings import KafkaAddress
from lance_server.cluster.log_address import (
    open_log,
    parse_address,
    require_client,
)
from lance_server.cluster.peers import FEWEST_HOSTS
from lance_server.cluster.records import decode, encode, genesis_of
from lance_server.cluster.replicated_log import (
    AppendError,
    Entry,
    LogTrimmedError,
    LogUnavailableError,
    ReplicatedLog,
    ReplicatedLogError,
)
from lance_server.errors import ClusterLogError, ConfigError
from lance_spec.messages.replication import ApplyVersion, HostLeaves, NodeStatus

_STEP_TIMEOUT: Final = 30.0
_STEP: Final = 4 * 1024 * 1024
_TAIL: Final = 20_000
"""Records at the end of shard 0 in which a node that lives has told of itself."""
_TRIMS: Final = 5
"""Times that the log may be trimmed while its end is looked for."""
_SECOND: Final = 1_000_000_000
_LIVE_SECONDS: Final = 5


@contextmanager
def _refusing() -> Iterator[None]:
    """Turn errors of the log into those of a command."""
    try:
        yield
    except ReplicatedLogError as error:
        raise ClusterLogError(str(error)) from error


@contextmanager
def _opened(url: str, settings: Path | None, *, unsafe: bool) -> Iterator[ReplicatedLog]:
    """Open the log for the length of a block."""
    with _refusing():
        log = open_log(parse_address(url, settings), unsafe=unsafe)
        try:
            yield log
        finally:
            log.close()


def create(
    url: str,
    client: Path | None,
    *,
    shards: int,
    replicas: int,
    unsafe: bool,
    data_dir: Path | None = None,
    **chosen: Any,
) -> Iterator[str]:
    """Create a cluster, and its topic where that is missing; yield what was done.

    Args:
        url: where the log is.
        client: a file with settings of the log's client.
        shards: how many partitions the log gets where the topic is created, and has.
        replicas: brokers that keep each record, where the topic is created.
        unsafe: whether settings are taken that can lose records.
        data_dir: of a stopped single server, or of a node whose log is lost or to be left, with
            whose data the cluster begins; None for none.
        **chosen: fields of `Settings`; a cluster without an id gets a random one.

    Raises:
        LanceServerError: the log or the directory cannot be used, or belongs to something else.
    """
    name = chosen.pop("cluster_id") or f"cluster-{secrets.token_hex(8)}"
    if DIGEST_MARK in name:
        raise ConfigError(f"'{name}' cannot be the name of a cluster: leave out '{DIGEST_MARK}'")
    with _refusing(), _founding(data_dir, shards) as founding:
        yield from _create_topic(url, client, shards, replicas)
        with _opened(url, client, unsafe=unsafe) as log:
            _judge_shards(log, shards)
            settings = Settings(name, time.time_ns(), **chosen)
            if founding is not None:
                founding.check_log(log.identity())
                settings = founding.settings(settings)
            begun = list(_begin_all(log, settings))
            ids = sorted({genesis_of(entry).cluster_id for entry in begun})
            if len(ids) > 1:
                raise ReplicatedLogError(
                    "two commands created clusters in this topic at the same time "
                    f"({', '.join(ids)}); delete the topic and create the cluster again"
                )
            if founding is not None:
                yield from founding.finish(log.identity(), begun)
            made = "is created" if ids == [settings.cluster_id] else "exists already"
            yield f"cluster {ids[0]} {made}: {log.shards} shard(s) in {url}"
            yield log.durability()
            yield f"start nodes with: lance-server --data-dir DIR --cluster {url} --node-id N"


def _founding(data_dir: Path | None, shards: int) -> AbstractContextManager[Founding | None]:
    return nullcontext() if data_dir is None else founding_of(data_dir, shards)


def _judge_shards(log: ReplicatedLog, shards: int) -> None:
    if log.shards != shards:
        raise ReplicatedLogError(
            f"the topic has {log.shards} partition(s), not {shards}: name another topic, or give "
            f"--shards {log.shards}. The number of shards of a cluster is fixed"
        )


def _create_topic(url: str, settings: Path | None, shards: int, replicas: int) -> Iterator[str]:
    address = parse_address(url, settings)
    if isinstance(address, KafkaAddress):
        require_client()
        from lance_server.cluster.kafka_log.log import create_topic  # noqa: PLC0415 - needs an extra

        if create_topic(address, shards, replicas):
            yield f"created the topic '{address.topic}'"
            _await_topic(address)


def _await_topic(address: KafkaAddress) -> None:
    """Wait until all brokers know a topic that was just created."""
    deadline = time.monotonic() + _STEP_TIMEOUT
    while True:
        try:
            open_log(address, unsafe=True).close()
        except LogUnavailableError:
            if time.monotonic() >= deadline:
                raise
            time.sleep(0.1)
        else:
            return


def _begin_all(log: ReplicatedLog, settings: Settings) -> Iterator[Entry]:
    """Begin all shards alike, shard 0 last: a node that finds it begun finds all begun."""
    for shard in reversed(range(log.shards)):
        begun = _begin(log, shard, settings)
        settings = Settings.of(genesis_of(begun))  # an earlier command may have come as far as this
        yield begun


def _begin(log: ReplicatedLog, shard: int, settings: Settings) -> Entry:
    """Write the first record of a shard, unless there is one, and return what stands there."""
    if log.earliest(shard) != 0:
        raise ReplicatedLogError(
            f"shard {shard} has lost its first records: it belongs to a cluster that runs, or to "
            "another program; choose another topic"
        )
    if log.end(shard) == 0:
        _append(log, shard, settings.to_genesis())
    reader = log.read(shard, 0)
    try:
        entries = _await_entries(lambda: reader.read(1, 1.0))
    finally:
        reader.close()
    entry: Entry = entries[0]
    genesis_of(entry)
    return entry


def _await_entries(read: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + _STEP_TIMEOUT
    while not (entries := read()):
        if time.monotonic() >= deadline:
            raise LogUnavailableError(f"the log returned nothing within {_STEP_TIMEOUT:g} s")
    return entries


def _append(log: ReplicatedLog, shard: int, body: Any) -> None:
    """Append a record and wait until a quorum has it."""
    told: list[int | AppendError] = []
    done = threading.Event()

    def note(end: int | AppendError) -> None:
        told.append(end)
        done.set()

    log.append(shard, encode(body, secrets.randbits(63), 1), note)
    if not done.wait(_STEP_TIMEOUT):
        raise LogUnavailableError(
            f"no quorum confirmed the record within {_STEP_TIMEOUT:g} s; look at `lwp cluster "
            "status` before the command is repeated"
        )
    (end,) = told
    if isinstance(end, AppendError):
        raise end


class _Seen:
    """What the end of shard 0 says of the nodes."""

    def __init__(self) -> None:
        self.nodes: dict[int, tuple[int, NodeStatus]] = {}
        self.time_ns = 0

    @classmethod
    def read(cls, log: ReplicatedLog) -> "_Seen":
        """Read the last records of shard 0, also while the log is trimmed."""
        for _ in range(_TRIMS):
            with suppress(LogTrimmedError):
                return cls._read(log)
        return cls._read(log)

    @classmethod
    def _read(cls, log: ReplicatedLog) -> "_Seen":
        seen, end = cls(), log.end(0)
        position = max(log.earliest(0), end - _TAIL)
        if position == end:
            return seen
        reader = log.read(0, position)
        try:
            while position < end:
                for entry in _await_entries(lambda: reader.read(_STEP, 1.0)):
                    position = entry.position + 1
                    seen.note(entry.time_ns, decode(0, entry).body)
        finally:
            reader.close()
        return seen

    def note(self, time_ns: int, body: Any) -> None:
        """Note what a record tells of a node."""
        self.time_ns = max(self.time_ns, time_ns)
        if isinstance(body, NodeStatus):
            self.nodes[body.node_id] = (time_ns, body)
        elif isinstance(body, HostLeaves):
            self.nodes.pop(body.node_id, None)

    def live(self, node_id: int) -> bool:
        """Whether a node has told of itself lately, by the log's time."""
        time_ns, _ = self.nodes[node_id]
        return time.time_ns() - time_ns < _LIVE_SECONDS * _SECOND

    def hosts(self, shard: int) -> str:
        """Return which nodes host a shard, and a warning where they are too few."""
        found = [
            key
            for key, (_, told) in sorted(self.nodes.items())
            if self.live(key) and any(each.shard == shard for each in told.positions)
        ]
        named = f"hosts {', '.join(map(str, found))}" if found else "no live host"
        few = len(found) < FEWEST_HOSTS and len(self.nodes) >= FEWEST_HOSTS
        return f"{named} (start one more with --shards {shard} among its shards)" if few else named


def show(url: str, client: Path | None) -> Iterator[str]:
    """Yield what the log says of itself and of the nodes.

    Raises:
        LanceServerError: the log cannot be used.
    """
    with _opened(url, client, unsafe=True) as log:
        yield f"log {log.identity()}"
        yield log.durability()
        ends = [log.end(shard) for shard in range(log.shards)]
        seen = _Seen.read(log)
        for shard, end in enumerate(ends):
            yield f"shard {shard}: positions {log.earliest(shard)} to {end}, {seen.hosts(shard)}"
        if not seen.nodes:
            yield "no node has told of itself lately"
        for node_id, (_, told) in sorted(seen.nodes.items()):
            yield _line(told, ends, live=seen.live(node_id))


def _line(told: NodeStatus, ends: list[int], *, live: bool) -> str:
    shards = ", ".join(
        f"shard {each.shard}: applied {each.applied} ({max(0, ends[each.shard] - each.applied)} to "
        f"go), durable {each.durable}"
        for each in told.positions
        if each.shard < len(ends)
    )
    state = "live" if live else "silent"
    return f"node {told.node_id} at {told.address}, {state}, release {told.release}; {shards}"


def raise_version(url: str, client: Path | None, version: int, *, unsafe: bool) -> None:
    """Let all nodes apply by a newer version of the rules.

    Raises:
        LanceServerError: a node cannot, or the log cannot be used.
    """
    with _opened(url, client, unsafe=unsafe) as log:
        seen = _Seen.read(log)
        unable = [key for key, (_, told) in seen.nodes.items() if told.apply_version < version]
        if unable or not seen.nodes or version > APPLY_VERSION:
            named = ", ".join(map(str, sorted(unable))) or "any"
            raise ReplicatedLogError(
                f"nodes cannot apply by version {version}: {named}; upgrade and start them first"
            )
        for shard in range(log.shards):
            _append(log, shard, ApplyVersion(version=version))


def remove_node(url: str, client: Path | None, node_id: int, *, force: bool, unsafe: bool) -> str:
    """Forget a node; return what was done.

    Raises:
        LanceServerError: it runs, or the log cannot be used.
    """
    with _opened(url, client, unsafe=unsafe) as log:
        seen = _Seen.read(log)
        if node_id in seen.nodes and seen.live(node_id) and not force:
            raise ReplicatedLogError(
                f"node {node_id} runs: stop it first, or it joins again; --force removes it "
                "all the same"
            )
        for shard in range(log.shards):
            _append(log, shard, HostLeaves(node_id=node_id, shard=shard))
    if node_id in seen.nodes:
        return f"node {node_id} is removed"
    heard = ", ".join(map(str, sorted(seen.nodes))) or "none"
    return (
        f"node {node_id} is removed, if there was one: it has told nothing of itself lately; those "
        f"that have: {heard}"
    )
