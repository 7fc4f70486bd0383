"""Options of a node of a cluster, and how its log is opened."""

import logging
import re
import time
from collections.abc import Mapping
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final

import click

from lance_server.config.build import host_number
from lance_server.config.option_types import ABOVE_ZERO, ADDRESS, FILE, group
from lance_server.config.settings import ServerConfig
from lance_server.errors import ClusterLogError, ConfigError

if TYPE_CHECKING:
    from lance_server.cluster.member import ClusterMember
    from lance_server.cluster.replicated_log import ReplicatedLog

_log = logging.getLogger(__name__)
_RETRY_SECONDS: Final = 0.5
_ANYWHERE: Final = frozenset({"0.0.0.0", "::"})  # noqa: S104 - compared with, never bound here
_SHARDS: Final = re.compile(r"[0-9]{1,5}( *, *[0-9]{1,5})*")
_NEEDS_CLUSTER: Final = (
    *("advertise", "cluster_config", "engine_unsafe", "trim_log"),
    *("offer_copies", "redirect"),
)

CLUSTER: Final = group(
    click.option(
        "--cluster",
        metavar="URL",
        help="Be a node of the cluster whose log is in this Kafka topic: "
        "kafka://BROKER,BROKER,BROKER/TOPIC. `lwp cluster init` creates it.",
    ),
    click.option(
        "--advertise",
        type=ADDRESS,
        help="Address at which clients and other nodes reach this node; by default the address "
        "on which it listens.",
    ),
    click.option(
        "--cluster-config",
        type=FILE,
        help="File with lines SETTING=VALUE for the client of the log, with the names of "
        "librdkafka: TLS, users, passwords.",
    ),
    click.option(
        "--cluster-timeout",
        type=ABOVE_ZERO,
        default=60.0,
        help="Seconds to wait at the start until the log can be reached.",
    ),
    click.option(
        "--ack-timeout",
        type=ABOVE_ZERO,
        default=10.0,
        help="Seconds after which a write that the log has not confirmed is answered as maybe "
        "applied.",
    ),
    click.option(
        "--trim-log/--keep-log",
        default=False,
        help="Delete records from the log that every node has made durable. A new node then "
        "begins with a copy of another node (`lance-server clone`); it cannot begin "
        "empty. Set it on all nodes: the leader deletes.",
    ),
    click.option(
        "--offer-copies/--no-copies",
        default=False,
        help="Offer all files of this node at the --http address, so that `lance-server clone` "
        "on another machine can create or repair a node. If reading needs a token, this "
        "needs it, too.",
    ),
    click.option(
        "--shards",
        metavar="all|N,N,…",
        default="all",
        help="Shards that this node hosts: all, or some by their numbers. Every node hosts "
        "shard 0, which has the list of topics. A topic that is created here goes to one "
        "of the shards that are named.",
    ),
    click.option(
        "--redirect/--forward",
        default=False,
        help="Answer a request for a topic that this node does not host with NotLeader and the "
        "address of a node that hosts it. By default the node forwards the request. With "
        "TLS, tokens or access rules it redirects by default, because the client must "
        "identify itself.",
    ),
    click.option(
        "--read-consistency",
        type=click.Choice(["local", "linear"]),
        default="local",
        help="Records that a read returns: those that this node has applied (local), or all "
        "that any node had acknowledged before the request (linear); for that each read "
        "waits for the log.",
    ),
    click.option(
        "--engine-unsafe/--engine-safe",
        default=False,
        help="Accept a log whose settings can lose acknowledged records, such as a single "
        "broker; for trials.",
    ),
)


def build_member(options: Mapping[str, Any], config: ServerConfig) -> "ClusterMember | None":
    """Return what makes the server a node of a cluster, with its log open; None for none.

    Raises:
        ConfigError: an option makes no sense, or a package is missing.
        ClusterLogError: the log cannot be used, or was not reached in time.
    """
    if options["cluster"] is None:
        for name in _NEEDS_CLUSTER:
            if options[name]:
                written = "--" + name.replace("_", "-")
                raise ConfigError(f"{written} is for a node of a cluster; add --cluster")
        for name, default in (("read_consistency", "local"), ("shards", "all")):
            if options[name] != default:
                written = "--" + name.replace("_", "-")
                raise ConfigError(f"{written} is for a node of a cluster; add --cluster")
        return None
    _judge(options, config)
    from lance_server.cluster.member import ClusterMember  # noqa: PLC0415 - loaded where wanted

    return ClusterMember(
        log=_opened(options),
        advertise=options["advertise"],
        ack_timeout=options["ack_timeout"],
        release=version("lance-sdk"),
        trim_log=options["trim_log"],
        linear_reads=options["read_consistency"] == "linear",
        offer_copies=options["offer_copies"],
        shards=_shards(options["shards"]),
        redirects=options["redirect"],
    )


def _shards(text: str) -> frozenset[int] | None:
    """Return the shards that an option names; None for all.

    Raises:
        ConfigError: it names none.
    """
    if text == "all":
        return None
    if not _SHARDS.fullmatch(text):
        raise ConfigError(f"--shards: {text!r} is neither `all` nor numbers such as 0,2,5")
    return frozenset(int(each) for each in text.split(","))


def _judge(options: Mapping[str, Any], config: ServerConfig) -> None:
    if options["node_id"] is None and host_number() is None:
        raise ConfigError(
            "a node of a cluster needs a number of its own: add --node-id, with a different "
            "number for each node"
        )
    if options["advertise"] is None and config.listen.host in _ANYWHERE:
        raise ConfigError(
            f"the node listens on {config.listen}, which is not an address that clients can "
            "connect to: add --advertise HOST:PORT"
        )


def _opened(options: Mapping[str, Any]) -> "ReplicatedLog":
    """Open the log; wait for it as long as it may take."""
    from lance_server.cluster.log_address import open_log, parse_address  # noqa: PLC0415 - see above
    from lance_server.cluster.replicated_log import (  # noqa: PLC0415 - see above
        LogUnavailableError,
        ReplicatedLogError,
    )

    address = parse_address(options["cluster"], options["cluster_config"])
    deadline = time.monotonic() + options["cluster_timeout"]
    told = ""
    while True:
        try:
            return open_log(address, unsafe=options["engine_unsafe"])
        except LogUnavailableError as error:
            if time.monotonic() >= deadline:
                raise ClusterLogError(str(error)) from error
            if str(error) != told:
                told = str(error)
                _log.warning("waiting for the log: %s", told)
            time.sleep(_RETRY_SECONDS)
        except ReplicatedLogError as error:
            raise ClusterLogError(str(error)) from error
