"""Records of the replicated log: writing them, and reading what others wrote (CLU-01)."""

from typing import Any, Final

from lance_server.cluster.replicated_log import Entry, StopNodeError
from lance_spec.checksum import CRC32C
from lance_spec.errors import DecodeError
from lance_spec.messages import replication
from lance_spec.messages.replication import LogRecord, RecordKind

FORMAT: Final = 1
"""The format of records that this release writes and reads."""
_FORMAT_PLACE: Final = slice(4, 6)
_MAGIC: Final = b"LNRL"

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


def next_digest(digest: int, record: bytes) -> int:
    """Return the digest of all records of a shard, with one more."""
    seen = CRC32C(record).to_bytes(4, "little")
    return CRC32C(digest.to_bytes(4, "little") + seen)
