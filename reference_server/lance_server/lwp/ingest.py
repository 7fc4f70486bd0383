"""Judging and storing Ingest frames (LWP section 4.1, AMB-20, 25, 27, 33)."""

from bisect import bisect_right
from collections.abc import Sequence
from typing import Final, NamedTuple, TypeAlias

from lance_server.log.dedup import FIRST_LASTING_ID
from lance_server.log.log_manager import Topic
from lance_server.lwp.compression import decompress
from lance_server.lwp.pending_requests import FRAME_COST
from lance_server.lwp.refusals import Refusal
from lance_server.lwp.service import Service
from lance_server.lwp.topic_access import permitted_topic
from lance_server.runtime.completion import Completion
from lance_server.runtime.memory_quota import MemoryLevel
from lance_server.security.access import Right
from lance_server.security.authorizer import Authorizer
from lance_spec.checksum import CRC32C, Buffer
from lance_spec.codec.ingest_runs import (
    ANY_TOPIC,
    BatchMeta,
    BatchTable,
    PrecedingBatch,
    count_run,
    describe_run,
    digest_of,
    with_server_time,
)
from lance_spec.dialect import Dialect
from lance_spec.enums import ErrorCode, Flag
from lance_spec.frames import Frame
from lance_spec.messages.engine import EntryFlag
from lance_spec.records import RecordFault, scan_records

# Plain integers: an IntFlag costs a microsecond at each use, and these are used for each frame.
_COMPRESSED: Final = int(Flag.COMPRESSED)
_ENCRYPTED: Final = int(Flag.ENCRYPTED)
_OPAQUE: Final = int(EntryFlag.OPAQUE)
_UNVERIFIED: Final = int(EntryFlag.COUNT_UNVERIFIED)
_NORMAL: Final = MemoryLevel.NORMAL
_REMEMBERED: Final = 4096
"""Batches of one connection whose ids are known to be taken: between one and two times this."""

_LEAST_SPREAD: Final = 2
"""Batches of several topics that are worth parting by topic."""

_REMEMBERED_IN_NEED: Final = 64
"""The same while memory is short."""

_REMEMBERED_COST: Final = 288
"""Bytes of memory for each of them."""

_Sent: TypeAlias = tuple[bytes, Completion[None]]
"""A batch that came on this connection: its digest, and what became of it."""

_Key: TypeAlias = tuple[int, int]
"""A batch's id and its topic's."""


AcceptedRun: TypeAlias = tuple[Completion[None], Sequence[int], int]
"""Batches that were stored together: their outcome, ids, and what they hold of memory."""


class AcceptedSpread(NamedTuple):
    """Batches of several topics: id and outcome of each, and what they hold of memory."""

    ids: Sequence[int]
    outcomes: list[Completion[None]]
    cost: int


class _SentTogether(NamedTuple):
    """Batches with rising ids that were stored together, and what became of each.

    Attributes:
        batches: what is known of them.
        ids: of each.
        topics: the topic of each.
        outcomes: of each.
    """

    batches: BatchTable
    ids: Sequence[int]
    topics: list[int]
    outcomes: list[Completion[None]]

    def find(self, key: _Key) -> _Sent | None:
        """Return what is known of a batch, or None."""
        batch_id, topic_id = key
        place = bisect_right(self.ids, batch_id) - 1
        if place < 0 or self.ids[place] != batch_id or self.topics[place] != topic_id:
            return None
        return self.batches[place].digest, self.outcomes[place]

    def newest(self, most: int) -> "_SentTogether":
        """Return the newest of them."""
        gone = max(0, len(self.ids) - most)
        if not gone:
            return self
        kept = BatchTable.of(self.batches.since(gone))
        return _SentTogether(kept, self.ids[gone:], self.topics[gone:], self.outcomes[gone:])


class _SentBatches:
    """What one connection has sent: each batch by itself, or several together.

    Attributes:
        alone: those that were judged by themselves.
        together: those that were stored together, by rising ids.
        count: how many batches all of them are.
    """

    __slots__ = ("alone", "count", "together")

    def __init__(self) -> None:
        self.alone: dict[_Key, _Sent] = {}
        self.together: list[_SentTogether] = []
        self.count = 0

    def __repr__(self) -> str:
        return f"<_SentBatches {self.count}>"

    def add(self, key: _Key, sent: _Sent) -> None:
        """Note a batch that was judged by itself."""
        self.alone[key] = sent
        self.count += 1

    def add_together(self, sent: _SentTogether) -> None:
        """Note batches whose ids are above all that were noted together before."""
        self.together.append(sent)
        self.count += len(sent.ids)

    def find(self, key: _Key) -> _Sent | None:
        """Return what is known of a batch, or None."""
        if (known := self.alone.get(key)) is not None:
            return known
        place = bisect_right(self.together, key[0], key=_first_id) - 1
        return self.together[place].find(key) if place >= 0 else None

    def newest(self, most: int) -> "_SentBatches":
        """Return the newest of either kind."""
        kept, together, missing = _SentBatches(), list[_SentTogether](), most
        for key in list(self.alone)[-most:]:
            kept.add(key, self.alone[key])
        for sent in reversed(self.together):
            if missing > 0:
                together.append(sent.newest(missing))
                missing -= len(together[-1].ids)
        for sent in reversed(together):
            kept.add_together(sent)
        return kept


def _first_id(sent: _SentTogether) -> int:
    return sent.ids[0]


class Ingest:
    """Takes the batches of one connection."""

    def __init__(self, service: Service, authorizer: Authorizer) -> None:
        self._engine = service.engine
        self._counters = service.counters
        self._disk = service.disk
        self._security = service.security
        self._authorizer = authorizer
        self._looks_back = service.engine.window.entries > 0
        self._validates = service.config.validate_records
        self._memory_level = MemoryLevel.NORMAL
        self._preceding: PrecedingBatch | None = None
        self._highest_id = 0
        self._recent = _SentBatches()
        self._older = _SentBatches()

    def begin(self, memory_level: MemoryLevel) -> None:
        """Take what one read brought.

        Args:
            memory_level: how short memory is.
        """
        self._memory_level = memory_level
        if not self._security.allows_anonymous:
            self._preceding = None  # the client's right to write is checked again

    @property
    def is_short(self) -> bool:
        """Whether memory is short."""
        return self._memory_level is not _NORMAL

    def accept(self, frame: Frame, dialect: Dialect) -> Completion[None] | None:
        """Store a batch, unless it is stored already; the outcome decides its acknowledgement.

        Returns:
            None when the published server would say nothing at all: an empty batch (AMB-27).

        Raises:
            Refusal: nothing of it is stored.
        """
        topic = self._topic(frame.topic_id)
        if dialect.strict:
            _judge_header(frame)
        elif not frame.payload:
            return None
        records, flags, count = self._open(frame, dialect)
        if dialect.checksum is CRC32C and records is frame.payload:
            crc = frame.payload_crc
        else:
            crc = CRC32C.compute(records)
        batch_id, length = frame.batch_id, len(records)
        digest = digest_of(frame.timestamp_ns, length, crc)
        key = batch_id, topic.id
        if batch_id > self._highest_id and not topic.partition.may_know(batch_id):
            self._highest_id = batch_id
        elif self._looks_back:
            known = self._find(topic, frame, key, digest, dialect)
            if known is not None:
                self._counters.duplicates += 1
                return known
        self._judge_capacity()
        now_ns = self._engine.now_ns(topic)
        batch = BatchMeta(length, count, batch_id, frame.timestamp_ns, now_ns, crc, flags)
        outcome = topic.partition.append(records, batch)
        self._preceding = topic.id, batch_id
        self._recent.add(key, (digest, outcome))
        self._forget_some()
        self._count(length, (count,))
        return outcome

    def _topic(self, topic_id: int) -> Topic:
        """Return a topic that the client may write to.

        Raises:
            Refusal: it may not, or there is no such topic.
        """
        if self._security.allows_anonymous:
            return self._engine.topic(topic_id, text="Unknown topic")
        return permitted_topic(
            self._engine, self._authorizer, Right.WRITE, topic_id, text="Unknown topic"
        )

    def accept_run(self, frames: list[Frame], first: int, dialect: Dialect) -> AcceptedRun | None:
        """Store the batches that go the same way as one that was accepted before.

        Only what is certain to be new and in order is taken: the first that might be a
        duplicate, or is to be refused, ends the run, and `accept` judges it.

        Args:
            frames: what one read brought, in order.
            first: where to begin.
            dialect: the peer's.

        Returns:
            None when there is nothing to take.
        """
        preceding = self._preceding
        if preceding is None or self._memory_level or not dialect.strict:
            return None
        topic_id = preceding[0]
        topic = self._engine.find(topic_id)
        if topic is None or dialect.checksum is not CRC32C:
            return None
        most = _REMEMBERED - self._recent.count
        count = count_run(frames, first, most, preceding, validates=self._validates)
        if not count:
            return None
        partition, lowest = topic.partition, frames[first].batch_id
        if lowest <= self._highest_id or partition.may_know(lowest) or self._disk.refusal():
            return None
        run = frames if count == len(frames) else frames[first : first + count]
        flags = 0 if self._validates else _UNVERIFIED
        outcome, batches = partition.append_run(run, self._engine.now_ns(topic), flags)
        ids: Sequence[int]
        counts: Sequence[int]
        if count == 1:
            frame = run[0]
            ids, counts, size = (lowest,), (frame.record_count,), len(frame.payload)
            digest = digest_of(frame.timestamp_ns, size, frame.payload_crc)
            self._recent.add((lowest, topic_id), (digest, outcome))
        else:
            ids, counts, size = batches.ids, batches.counts, sum(batches.lengths)
            topics, outcomes = [topic_id] * count, [outcome] * count
            self._recent.add_together(_SentTogether(batches, ids, topics, outcomes))
        self._highest_id = ids[-1]
        self._preceding = topic_id, ids[-1]
        self._forget_some()
        self._count(size, counts)
        return outcome, ids, size + count * FRAME_COST

    def accept_spread(
        self, frames: list[Frame], first: int, most: int, dialect: Dialect
    ) -> AcceptedSpread | None:
        """Store batches of several topics as `accept_run` does those of one.

        Args:
            frames: what one read brought, in order.
            first: where to begin.
            most: how many are enough.
            dialect: the peer's.

        Returns:
            None when there is nothing to take together.
        """
        preceding = self._preceding
        if preceding is None or self._memory_level or not dialect.strict:
            return None
        if dialect.checksum is not CRC32C or self._disk.refusal():
            return None
        above = ANY_TOPIC, max(preceding[1], self._highest_id)
        most = min(most, _REMEMBERED - self._recent.count)
        count = count_run(frames, first, most, above, validates=self._validates)
        if count < _LEAST_SPREAD:
            return None
        hosts = self._topics_of_new(frames[first : first + count])
        count = len(hosts)
        if not count:
            return None
        run, batches = frames[first : first + count], BatchTable()
        outcomes = self._append_each(run, hosts, batches)
        ids, topics = batches.ids, [frame.topic_id for frame in run]
        self._recent.add_together(_SentTogether(batches, ids, topics, outcomes))
        self._highest_id = ids[-1]
        self._preceding = topics[-1], ids[-1]
        self._forget_some()
        size = sum(batches.lengths)
        self._count(size, batches.counts)
        return AcceptedSpread(ids, outcomes, size + count * FRAME_COST)

    def _topics_of_new(self, frames: list[Frame]) -> list[Topic]:
        """Return the topics of the frames before the first that `accept` must judge.

        The windows of these topics have noted the ids.
        """
        find = self._engine.find if self._security.allows_anonymous else self._permitted
        topics: list[Topic] = []
        for frame in frames:
            topic = find(frame.topic_id)
            if topic is None or not topic.partition.admit(frame.batch_id):
                break
            topics.append(topic)
        return topics

    def _permitted(self, topic_id: int) -> Topic | None:
        """Return a topic that the client may write to; None is for `accept` to judge."""
        try:
            return self._topic(topic_id)
        except Refusal:
            return None

    def _append_each(
        self, frames: list[Frame], topics: list[Topic], table: BatchTable
    ) -> list[Completion[None]]:
        """Store batches, each in its topic, and note them in a table; return their outcomes."""
        engine = self._engine
        now_ns = engine.clock()
        rows = describe_run(frames, now_ns, 0 if self._validates else _UNVERIFIED, table)
        lasting = frames[0].batch_id >= FIRST_LASTING_ID  # as all of them: they have one nonce
        outcomes: list[Completion[None]] = []
        for frame, topic, row in zip(frames, topics, rows, strict=True):
            partition = topic.partition
            if partition.next_time(now_ns) != now_ns:  # seldom: the clock was set back
                row = with_server_time(row, engine.now_ns(topic, now_ns))  # noqa: PLW2901
            outcomes.append(partition.append_row(frame.payload, row, lasting=lasting))
        return outcomes

    def _count(self, size: int, records: Sequence[int]) -> None:
        """Count batches by the records in each."""
        counters = self._counters
        counters.batches_in += len(records)
        counters.records_in += sum(records)
        counters.bytes_in += size
        counters.batch_size.observe_all(records)

    def _forget_some(self) -> None:
        if self._recent.count >= (_REMEMBERED_IN_NEED if self._memory_level else _REMEMBERED):
            self._older, self._recent = self._recent, _SentBatches()

    def give_back(self) -> None:
        """Forget all but the last batches, because memory is short.

        A connection that sends nothing, or is not read from, would keep what it knows otherwise.
        """
        if self._recent.count > _REMEMBERED_IN_NEED:
            self._recent = self._recent.newest(_REMEMBERED_IN_NEED)
        self._older = _SentBatches()

    @property
    def memory(self) -> int:
        """Bytes that knowing the connection's batches costs."""
        return _REMEMBERED_COST * (self._recent.count + self._older.count)

    def _judge_capacity(self) -> None:
        """Refuse what cannot be stored now; nothing of it is."""
        refusal = self._disk.refusal()
        if refusal is None and self._memory_level is MemoryLevel.CRITICAL:
            refusal = Refusal(
                ErrorCode.BACKPRESSURE,
                "Nothing was stored: the server is short of memory; slow down, then retry",
                text="Rate limit exceeded: the server is short of memory",
            )
            self._counters.refused_for_memory += 1
        if refusal is not None:
            raise refusal

    def _open(self, frame: Frame, dialect: Dialect) -> tuple[Buffer, int, int]:
        """Return the records to store, their flags and how many they are."""
        try:
            records: Buffer = frame.payload
            if frame.flags & _COMPRESSED:
                records = decompress(frame.payload, dialect.max_payload)
            if not self._validates:
                return records, _UNVERIFIED, frame.record_count
            scan = scan_records(records)
            if scan.fault is not None:
                raise _broken_chain(scan.fault)
            if dialect.strict and scan.count != frame.record_count:
                raise _wrong_count(frame.record_count, scan.count)
        except Refusal:
            if dialect.strict:
                raise
            self._counters.opaque_batches += 1
            return frame.payload, _OPAQUE, 0
        return records, 0, scan.count

    def _find(
        self, topic: Topic, frame: Frame, key: _Key, digest: bytes, dialect: Dialect
    ) -> Completion[None] | None:
        """Return the outcome of the same batch when it was sent before (AMB-25)."""
        own = self._recent.find(key) or self._older.find(key)
        if own is not None and not own[1].error and frame.batch_id:
            if own[0] != digest:
                self._counters.conflicts += 1
                if dialect.strict:
                    raise _id_taken(frame.batch_id)
                return None
            return own[1] if frame.timestamp_ns else None
        duplicate = topic.partition.find_duplicate(frame.batch_id, digest)
        if duplicate is None:
            return None
        if not duplicate.same:
            self._counters.conflicts += 1
            return None
        return duplicate.outcome or _settled()


def _settled() -> Completion[None]:
    outcome: Completion[None] = Completion()
    outcome.settle(None)
    return outcome


def _judge_header(frame: Frame) -> None:
    """Refuse what LWP section 4.1 rules out (AMB-27, AMB-33)."""
    if frame.flags & _ENCRYPTED:
        raise _invalid("The Encrypted flag is reserved; send the records in the clear")
    if not frame.batch_id:
        raise _invalid("An Ingest frame needs a batch id other than 0")
    if not frame.payload:
        raise _invalid("An Ingest frame carries at least one record; this one is empty")


def _broken_chain(fault: RecordFault) -> Refusal:
    where = {"record": fault.index, "offset": fault.offset}
    message = f"Record {fault.index} at payload byte {fault.offset} is not whole: {fault.reason}"
    code = ErrorCode.INVALID_PAYLOAD if fault.truncated else ErrorCode.PAYLOAD_TOO_LARGE
    return Refusal(code, message, details=where)


def _wrong_count(stated: int, actual: int) -> Refusal:
    return _invalid(f"The header says {stated} records, the payload holds {actual}")


def _id_taken(batch_id: int) -> Refusal:
    return _invalid(f"Batch id {batch_id} stands for another batch on this connection")


def _invalid(message: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_PAYLOAD, message)
