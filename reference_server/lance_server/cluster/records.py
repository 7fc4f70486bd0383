"""Records of the replicated log: writing them, and reading what others wrote (CLU-01)."""

from collections.abc import Sequence
from typing import Any, Final

from lance_server.cluster.replicated_log import (
    Entry,
    LogReplacedError,
    LogTrimmedError,
    LogUnavailableError,
    ReplicatedLog,
    ReplicatedLogError,
    StopNodeError,
)
from lance_spec.checksum import CRC32C
from lance_spec.errors import DecodeError
from lance_spec.messages import replication
from lance_spec.messages.replication import LogRecord, RecordKind

FORMAT: Final = 1
"""The format of records that this release writes and reads."""
_FORMAT_PLACE: Final = slice(4, 6)
_MAGIC: Final = b"LNRL"
_READ_TIMEOUT: Final = 5.0
"""Seconds that the first record of a log may take."""

KINDS: Final[dict[type, RecordKind]] = {
    replication.Genesis: RecordKind.GENESIS,
    replication.Append: RecordKind.APPEND,
    replication.CreateTopic: RecordKind.CREATE_TOPIC,
    replication.DeleteTopic: RecordKind.DELETE_TOPIC,
    replication.TopicBegins: RecordKind.TOPIC_BEGINS,
    replication.TopicEnds: RecordKind.TOPIC_ENDS,
    replication.SetRetention: RecordKind.SET_RETENTION,
    replication.CommitOffset: RecordKind.COMMIT_OFFSET,
    replication.DeleteCommit: RecordKind.DELETE_COMMIT,
    replication.ExpireCommits: RecordKind.EXPIRE_COMMITS,
    replication.DropBefore: RecordKind.DROP_BEFORE,
    replication.Roll: RecordKind.ROLL,
    replication.NodeStatus: RecordKind.NODE_STATUS,
    replication.HostJoins: RecordKind.HOST_JOINS,
    replication.HostLeaves: RecordKind.HOST_LEAVES,
    replication.ApplyVersion: RecordKind.APPLY_VERSION,
    type(None): RecordKind.BARRIER,
}
"""The kind of a record with a body of each class; a Barrier has none."""


class UnknownRecordError(StopNodeError):
    """An entry of the log is not a record that this release can apply."""


def encode(body: Any, process: int, counter: int) -> bytes:
    """Return a record.

    Args:
        body: what happens; None for a Barrier.
        process: the random number of the sending process.
        counter: the number of the record among those of the process.
    """
    return LogRecord(
        format=FORMAT, kind=KINDS[type(body)], process=process, counter=counter, body=body
    ).encode()


def decode(shard: int, entry: Entry) -> LogRecord:
    """Return the record that an entry holds.

    Raises:
        UnknownRecordError: a newer release wrote it, or it comes from another program.
    """
    try:
        return LogRecord.decode(entry.record)
    except DecodeError as error:
        where = f"shard {shard}, position {entry.position}"
        written = int.from_bytes(entry.record[_FORMAT_PLACE], "little")
        if entry.record[: len(_MAGIC)] == _MAGIC and written > FORMAT:
            raise UnknownRecordError(
                f"{where}: the record has format {written}, this release knows up to {FORMAT}; "
                "upgrade this node"
            ) from error
        raise UnknownRecordError(
            f"{where}: the entry is not a record of a LANCE cluster ({error}); another program "
            "writes to the log, or it is not this cluster's"
        ) from error


def genesis_of(entry: Entry) -> replication.Genesis:
    """Return the Genesis that the first entry of a shard is.

    Raises:
        ReplicatedLogError: it is something else.
    """
    body = decode(entry.shard, entry).body
    if not isinstance(body, replication.Genesis):
        raise ReplicatedLogError(
            f"shard {entry.shard} does not begin a cluster; choose another topic"
        )
    return body


def check_beginning(log: ReplicatedLog, shard: int, cluster_id: str) -> None:
    """Refuse a log that begins with the Genesis of another cluster; one that is trimmed tells none.

    Args:
        log: the log.
        shard: the shard whose first record is read.
        cluster_id: of the cluster that the node's data came from.

    Raises:
        LogUnavailableError: the log cannot be reached.
        LogReplacedError: it is that of another cluster.
    """
    first = log.earliest(shard)
    if first == log.end(shard):
        return
    try:
        entries = _read_one(log, shard, first)
    except LogTrimmedError:  # just now
        return
    if not entries:
        raise LogUnavailableError(f"{log!r} has not handed out its first record yet")
    body = decode(shard, entries[0]).body
    if isinstance(body, replication.Genesis) and body.cluster_id != cluster_id:
        raise LogReplacedError(
            f"this node's data is that of cluster {cluster_id}, the log begins with the Genesis of "
            f"cluster {body.cluster_id}: correct the address of the log, or start the node with an "
            "empty directory to have it join that cluster"
        )


def _read_one(log: ReplicatedLog, shard: int, position: int) -> Sequence[Entry]:
    reader = log.read(shard, position)
    try:
        return reader.read(1, _READ_TIMEOUT)
    finally:
        reader.close()


def next_digest(digest: int, record: bytes) -> int:
    """Return the digest of all records of a shard, with one more."""
    seen = CRC32C(record).to_bytes(4, "little")
    return CRC32C(digest.to_bytes(4, "little") + seen)
