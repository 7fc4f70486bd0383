"""Judging and storing Ingest frames (LWP section 4.1, AMB-20, 25, 27, 33)."""

from typing import Final, TypeAlias

from lance_server.compression import decompress
from lance_server.log.engine import Engine, Topic
from lance_server.log.sidecar import BatchMeta, content_of
from lance_server.outcome import Outcome
from lance_server.refusals import Refusal
from lance_server.stats import Counters
from lance_spec.checksum import CRC32C, Buffer
from lance_spec.dialect import Dialect
from lance_spec.enums import ErrorCode, Flag
from lance_spec.frames import Frame
from lance_spec.messages.engine import EntryFlag
from lance_spec.records import RecordFault, scan_records

# Plain integers: an IntFlag costs a microsecond at each use, and these are used for each frame.
_COMPRESSED: Final = int(Flag.COMPRESSED)
_ENCRYPTED: Final = int(Flag.ENCRYPTED)
_OPAQUE: Final = int(EntryFlag.OPAQUE)
_REMEMBERED: Final = 4096
"""Batches of one connection whose ids are known to be taken: between one and two times this."""

_Sent: TypeAlias = tuple[int, Outcome[None]]
"""A batch that came on this connection: its content, and what became of it."""


class Ingest:
    """Takes the batches of one connection."""

    def __init__(self, engine: Engine, counters: Counters) -> None:
        self._engine = engine
        self._counters = counters
        self._looks_back = engine.window.entries > 0
        self._highest_id = 0
        self._recent: dict[int, _Sent] = {}
        self._older: dict[int, _Sent] = {}

    def accept(self, frame: Frame, dialect: Dialect) -> Outcome[None] | None:
        """Store a batch, unless it is stored already; the outcome decides its acknowledgement.

        Returns:
            None when the published server would say nothing at all: an empty batch (AMB-27).

        Raises:
            Refusal: nothing of it is stored.
        """
        topic = self._engine.topic(frame.topic_id, text="Unknown topic")
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
        content = content_of(frame.timestamp_ns, length, crc)
        key = batch_id << 32 | topic.id
        if batch_id > self._highest_id and not topic.partition.may_know(batch_id):
            self._highest_id = batch_id
        elif self._looks_back:
            known = self._find(topic, frame, key, content, dialect)
            if known is not None:
                self._counters.duplicates += 1
                return known
        now_ns = self._engine.now_ns(topic)
        batch = BatchMeta(length, count, batch_id, frame.timestamp_ns, now_ns, crc, flags)
        outcome = topic.partition.append(records, batch, content)
        self._recent[key] = (content, outcome)
        if len(self._recent) >= _REMEMBERED:
            self._older, self._recent = self._recent, {}
        self._counters.batches_in += 1
        self._counters.bytes_in += length
        return outcome

    def _open(self, frame: Frame, dialect: Dialect) -> tuple[Buffer, int, int]:
        """Return the records to store, their flags and how many they are."""
        try:
            records: Buffer = frame.payload
            if frame.flags & _COMPRESSED:
                records = decompress(frame.payload, dialect.max_payload)
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
        self, topic: Topic, frame: Frame, key: int, content: int, dialect: Dialect
    ) -> Outcome[None] | None:
        """Return the outcome of the same batch when it was sent before (AMB-25)."""
        own = self._recent.get(key) or self._older.get(key)
        if own is not None and not own[1].error and frame.batch_id:
            if own[0] != content:
                self._counters.conflicts += 1
                if dialect.strict:
                    raise _id_taken(frame.batch_id)
                return None
            return own[1] if frame.timestamp_ns else None
        duplicate = topic.partition.find_duplicate(frame.batch_id, content)
        if duplicate is None:
            return None
        if not duplicate.same:
            self._counters.conflicts += 1
            return None
        return duplicate.outcome or _settled()


def _settled() -> Outcome[None]:
    outcome: Outcome[None] = Outcome()
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
