"""Options of one node of a cluster."""

from dataclasses import dataclass

from lance_server.errors import DataDirError


@dataclass(frozen=True, slots=True)
class NodeOptions:
    """What one node is told; nothing here influences what comes of records.

    Attributes:
        node_id: its number in the cluster.
        address: where clients reach it.
        release: of the software.
        process: a random number that no other process has.
        ack_timeout: seconds after which an append is answered as maybe applied.
        max_outstanding: bytes that may be appended and not applied.
        mark_bytes: bytes of records after which a mark is written.
        mark_seconds: seconds after which a mark is written.
        status_seconds: seconds between two NodeStatus.
        housekeeping_seconds: seconds between two looks at what is to be proposed.
        max_lag_secs: seconds that applying may lag while the node is ready.
        segment_age_secs: age at which an open segment is proposed to be closed; 0 for never.
        trims: whether the log is told to delete what all hosts have made durable. A node that
            joins later begins with a copy of another one.
        offers_copies: whether it hands out copies of its data to other nodes.
        linear_reads: whether a read waits until all that was acknowledged before it is applied.
        shards: the shards that it hosts beside shard 0, which every node hosts; None for all. New
            topics go to these.
        redirects: whether a request for a topic that it does not host is answered with where one
            is that does; else it is forwarded there.
    """

    node_id: int
    address: str
    process: int
    release: str = ""
    ack_timeout: float = 10.0
    max_outstanding: int = 64 * 1024 * 1024
    mark_bytes: int = 64 * 1024 * 1024
    mark_seconds: float = 1.0
    status_seconds: float = 1.0
    housekeeping_seconds: float = 1.0
    max_lag_secs: float = 1.0
    segment_age_secs: int = 7 * 24 * 3600
    trims: bool = False
    linear_reads: bool = False
    offers_copies: bool = False
    shards: frozenset[int] | None = None
    redirects: bool = False


def hosted_of(options: NodeOptions, shards: int) -> frozenset[int]:
    """Return the shards that a node hosts: shard 0, which has the list of topics, among them.

    Args:
        options: what the node is told.
        shards: how many the log has.

    Raises:
        DataDirError: the log has not got one that the node is to host.
    """
    if options.shards is None:
        return frozenset(range(shards))
    missing = sorted(each for each in options.shards if each >= shards)
    if missing:
        raise DataDirError(
            f"the log has shards 0 to {shards - 1}, and --shards names {missing[0]}; `lwp cluster "
            "status` lists them"
        )
    return options.shards | {0}
