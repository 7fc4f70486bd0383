"""Where rows go: straight to the server, or by way of a commit log, once."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Final, Protocol

import pyarrow as pa

from lance_sdk.errors import ConfigError
from lance_sdk.spark.errors import SinkError
from lance_sdk.spark.options import Options
from lance_sdk.spark.rows.encoding import check_columns, frames_of
from lance_sdk.spark.writing.commit_log import CommitLog, Staged, local_path
from lance_sdk.spark.writing.sending import FrameSender

_FOLDER: Final = "lwp-ledger"


@dataclass(frozen=True, slots=True)
class Task:
    """Which task writes.

    Attributes:
        partition: its number.
        attempt: of this try, in all of Spark.
        query: id of the streaming query.
        batch: number of the micro-batch.
    """

    partition: int = 0
    attempt: int = 0
    query: str | None = None
    batch: int | None = None


@dataclass(frozen=True, slots=True)
class Written:
    """What a task wrote to the server.

    Attributes:
        records: how many.
        bytes: of the records.
    """

    records: int
    bytes: int


class Sink(Protocol):
    """What writes a query's rows; it is pickled to the tasks."""

    def write(self, batches: Iterator[pa.RecordBatch], task: Task) -> Any:
        """Write the rows of one task, in the task; return what `commit` has to know."""
        ...

    def commit(self, told: Sequence[Any], batch: int) -> None:
        """Make what all tasks wrote final; may be repeated."""
        ...

    def abort(self, told: Sequence[Any], batch: int) -> None:
        """Take note that not all tasks came to an end."""
        ...


def batch_sink(options: Options, names: Sequence[str], *, overwrite: bool) -> Sink:
    """Return the sink of a batch query.

    Raises:
        ConfigError: the rows or the options do not fit.
    """
    _check(options, names, overwrite=overwrite)
    if options.semantics == "at-least-once":
        return DirectSink(options)
    if options.txn_id is None or options.ledger_path is None:
        raise ConfigError(
            "semantics=exactly-once needs txnId, the name under which this write may be repeated, "
            "and ledgerPath, a folder that driver and tasks share"
        )
    if not options.txn_id.replace("-", "").replace("_", "").isalnum():
        raise ConfigError(f"txnId={options.txn_id!r}: expected letters, digits, - and _")
    return StagingSink(options, local_path(options.ledger_path))


def stream_sink(options: Options, names: Sequence[str], *, overwrite: bool) -> Sink:
    """Return the sink of a streaming query.

    Raises:
        ConfigError: the rows or the options do not fit.
    """
    _check(options, names, overwrite=overwrite)
    if options.semantics == "at-least-once":
        return DirectSink(options)
    if options.txn_id is not None:
        raise ConfigError(
            "txnId names a batch write; a streaming query is known by its checkpoint: leave it out"
        )
    folder = options.ledger_path
    if folder is None and options.checkpoint is not None:
        folder = f"{options.checkpoint.rstrip('/')}/{_FOLDER}"
    if folder is None:
        raise ConfigError(
            "semantics=exactly-once needs ledgerPath, a folder that driver and tasks share, or "
            "the query's own checkpointLocation"
        )
    return StagingSink(options, local_path(folder))


def _check(options: Options, names: Sequence[str], *, overwrite: bool) -> None:
    if overwrite:
        raise ConfigError("a log is only appended to: use mode('append')")
    options.url()
    if len(options.topics) > 1 or options.topics_pattern is not None:
        raise ConfigError("say one topic to write to, or fill the column topic")
    check_columns(names, options.topics[0] if options.topics else None)


@dataclass(frozen=True, slots=True)
class DirectSink:
    """Every task sends its rows itself; a task that is repeated sends them again.

    Attributes:
        options: of the query.
    """

    options: Options

    def write(self, batches: Iterator[pa.RecordBatch], task: Task) -> Written:
        """Send the rows; returns when the server has acknowledged all of them.

        Raises:
            DeliveryError: some could not be delivered.
        """
        del task
        topic = self.options.topics[0] if self.options.topics else None
        senders: dict[str, FrameSender] = {}
        records = size = 0
        with ExitStack() as stack:
            for batch in batches:
                for frame in frames_of(
                    batch, topic, self.options.batch_bytes, stored=self.options.stored
                ):
                    sender = senders.get(frame.topic)
                    if sender is None:
                        sender = FrameSender(self.options, frame.topic)
                        senders[frame.topic] = stack.enter_context(sender)
                    sender.send_frame(frame)
                    records, size = records + frame.count, size + len(frame.payload)
            for sender in senders.values():
                sender.finish()
        return Written(records, size)

    def commit(self, told: Sequence[Any], batch: int) -> None:
        """Do nothing: everything is at the server."""

    def abort(self, told: Sequence[Any], batch: int) -> None:
        """Do nothing: what is at the server stays there."""


@dataclass(frozen=True, slots=True)
class StagingSink:
    """Tasks put their frames into files; the driver sends what the manifest names, once.

    Attributes:
        options: of the query.
        folder: the commit log.
    """

    options: Options
    folder: str

    def write(self, batches: Iterator[pa.RecordBatch], task: Task) -> Staged:
        """Stage the rows.

        Raises:
            SinkError: the commit log cannot be written to.
        """
        topic = self.options.topics[0] if self.options.topics else None
        limit = self.options.batch_bytes
        stored = self.options.stored
        frames = (
            frame for batch in batches for frame in frames_of(batch, topic, limit, stored=stored)
        )
        query, number = self._place(task)
        commit_log = CommitLog(self.folder, query)
        return commit_log.stage(frames, number, task.partition, task.attempt)

    def commit(self, told: Sequence[Any], batch: int) -> None:
        """Freeze which files make up the batch, and send them.

        Raises:
            SinkError: it cannot be told what an earlier attempt sent.
            DeliveryError: not everything was acknowledged; repeating the query goes on.
        """
        for query, staged in _by_query(told).items():
            CommitLog(self.folder, query).commit(self.options, staged, batch)

    def abort(self, told: Sequence[Any], batch: int) -> None:
        """Remove what was staged, unless a manifest names it: then it may have been sent."""
        for query, staged in _by_query(told).items():
            CommitLog(self.folder, query).abort(staged, batch)

    def _place(self, task: Task) -> tuple[str, int]:
        """Return whose commit log it is, and the number of the batch in it."""
        if self.options.txn_id is not None:
            return self.options.txn_id, 0
        if task.batch is None or task.query is None:
            raise SinkError(
                "Spark does not tell its tasks which micro-batch they write (local properties "
                "streaming.sql.batchId and sql.streaming.queryId); use semantics=at-least-once"
            )
        return task.query, task.batch


def _by_query(told: Sequence[Any]) -> dict[str, list[Staged]]:
    found: dict[str, list[Staged]] = {}
    for each in told:
        found.setdefault(each.query, []).append(each)
    return found
