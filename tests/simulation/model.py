"""What was promised, kept by someone who shares no code with the store.

Each batch is sent, acknowledged, refused or unknown. A batch that was acknowledged or seen by a
reader is *owed*: it must be there, at its offset, for as long as retention does not drop it. A
refused one must never appear. What became of an unknown one is learned from the first reading
after it was decided, and stays so.
"""

from dataclasses import dataclass, field
from enum import Enum
from struct import Struct
from typing import Final

_RECORD: Final = Struct("<BL")
RAW_DATA: Final = 0x01
_NONCE: Final = 7 << 40


class ViolationError(Exception):
    """A promise was broken."""


class State(Enum):
    """What a client knows of a batch."""

    SENT = "sent"
    ACKED = "acknowledged"
    REFUSED = "refused"
    UNKNOWN = "unknown"
    ABSENT = "found to be absent"


@dataclass(slots=True, eq=False)
class Batch:
    """A batch that was sent.

    Attributes:
        number: counts batches of the run.
        raw: its bytes as they are stored.
        records: how many records they are.
        state: what its client knows.
        stamp_ns: the server's time when it was stored last.
        sent_at: the world's time when it was sent first.
        place: the offset at which it was seen.
        seen: whether a reader saw it.
        resent: whether it was sent more than once.
        waits: how many requests wait for it.
        dropped: whether retention dropped it, perhaps, before anyone saw it.
    """

    number: int
    raw: bytes
    records: int
    sent_at: float
    state: State = State.SENT
    stamp_ns: int = 0
    place: int | None = None
    seen: bool = False
    resent: bool = False
    waits: int = 0
    dropped: bool = False

    @property
    def id(self) -> int:
        """The id of it that every connection understands."""
        return _NONCE | self.number

    @property
    def owed(self) -> bool:
        """Whether it must be there."""
        return self.state is State.ACKED or self.seen

    def __str__(self) -> str:
        return f"batch {self.number} ({self.state.value}, seen={self.seen}, at {self.place})"


def make_batch(number: int, records: int, size: int, now: float) -> Batch:
    """Return a batch whose records nobody else ever sends."""
    parts: list[bytes] = []
    for index in range(records):
        value = b"%d.%d|" % (number, index)
        value += bytes([65 + number % 26]) * max(0, size - len(value))
        parts.append(_RECORD.pack(RAW_DATA, len(value)) + value)
    return Batch(number, b"".join(parts), records, now)


def number_at(data: bytes, position: int) -> int | None:
    """Return the number of the batch that begins at a position, or None where none does."""
    if position + _RECORD.size > len(data):
        return None
    kind, length = _RECORD.unpack_from(data, position)
    value = data[position + _RECORD.size : position + _RECORD.size + length]
    number, dot, rest = value.partition(b".")
    if kind != RAW_DATA or not dot or not number.isdigit() or not rest.startswith(b"0|"):
        return None
    return int(number)


@dataclass(slots=True)
class Reading:
    """What a reader found who went through a topic.

    Attributes:
        start: where the topic begins.
        end: where it ends.
        pieces: data by the offset at which it stands, back to back where nothing is between.
        damage: ranges that could not be read.
    """

    start: int
    end: int
    pieces: dict[int, bytes] = field(default_factory=dict)
    damage: list[tuple[int, int]] = field(default_factory=list)

    def add(self, offset: int, data: bytes) -> None:
        """Add data; what goes on at the end of another piece belongs to it."""
        for start, piece in self.pieces.items():
            if start + len(piece) == offset:
                self.pieces[start] = piece + data
                return
        self.pieces[offset] = data

    def is_damaged(self, offset: int) -> bool:
        """Whether an offset lies in a range that could not be read."""
        return any(low <= offset < high for low, high in self.damage)


@dataclass(slots=True, eq=False)
class TopicModel:
    """A topic, as its clients know it.

    Attributes:
        name: its name.
        id: its id, once its creation was acknowledged.
        present: True, False, or None while unknown.
        batches: by number.
        limits: the limits in bytes and seconds that it ever may have had.
        start: where it began when it was last read.
        rotten: whether something of it was changed on the disk.
        unclean_rot: whether that was after an unclean stop: what it hit may look like a torn tail.
        policies: the retention that it may have now.
        commits: by consumer what it may have committed.
        taken: which batch was seen at an offset, for ever.
    """

    name: str
    id: int | None = None
    present: bool | None = None
    batches: dict[int, Batch] = field(default_factory=dict)
    limits: list[tuple[int, int]] = field(default_factory=lambda: [(0, 0)])
    start: int = 0
    rotten: bool = False
    unclean_rot: bool = False
    policies: list[tuple[int, int]] = field(default_factory=lambda: [(0, 0)])
    commits: dict[int, list[int | None]] = field(default_factory=dict)
    taken: dict[int, int] = field(default_factory=dict)

    def settle(self, batch: Batch, state: State) -> None:
        """Note what the answer to a request said; an earlier promise stands."""
        batch.waits -= 1
        if batch.state in {State.SENT, State.UNKNOWN, State.ABSENT, State.REFUSED}:
            if state is State.REFUSED and (batch.state is State.UNKNOWN or batch.waits):
                state = State.UNKNOWN
            batch.state = state

    def lose_track(self) -> None:
        """Note that the server stopped: what was not answered is unknown."""
        for batch in self.batches.values():
            batch.waits = 0
            if batch.state is State.SENT:
                batch.state = State.UNKNOWN

    def doubt(self) -> None:
        """Note that memory was lost in a mode that promises nothing then."""
        for batch in self.batches.values():
            if batch.owed:
                batch.dropped = batch.place is not None and batch.place < self.start
                batch.state, batch.seen, batch.place = State.UNKNOWN, False, None

    # Judging ---------------------------------------------------------------------------------

    def judge(self, reading: Reading, *, settled: bool) -> None:
        """Compare what a reader found with what was promised.

        Args:
            reading: of the whole topic.
            settled: whether nothing is on its way any more: what is not there never comes.

        Raises:
            ViolationError: a promise was broken.
        """
        found = self._batches_in(reading)
        self._note_dropped(found, reading)
        for batch in self.batches.values():
            if batch.number in found:
                self._judge_present(batch, found[batch.number])
            elif not self._may_be_missing(batch, reading):
                raise ViolationError(
                    f"{self.name}: {batch} is lost; found {reading.start}"
                    f"..{reading.end}, damage {reading.damage}"
                )
            elif settled and not batch.waits and batch.state in {State.UNKNOWN, State.SENT}:
                batch.state = State.ABSENT
        self._judge_order(found)
        self.start = reading.start

    def _batches_in(self, reading: Reading) -> dict[int, int]:
        """Return where each batch stands."""
        found: dict[int, int] = {}
        for offset, data in sorted(reading.pieces.items()):
            position = 0
            while position < len(data):
                number = number_at(data, position)
                batch = None if number is None else self.batches.get(number)
                where = f"{self.name}: at offset {offset + position}"
                if batch is None:
                    shown = data[position : position + 24]
                    raise ViolationError(f"{where} stands what nobody sent here: {shown!r}")
                if data[position : position + len(batch.raw)] != batch.raw:
                    raise ViolationError(f"{where} {batch} has other bytes than were sent")
                if batch.number in found:
                    raise ViolationError(f"{where} {batch} stands twice")
                found[batch.number] = offset + position
                position += len(batch.raw)
        return found

    def _judge_present(self, batch: Batch, place: int) -> None:
        if batch.state in {State.REFUSED, State.ABSENT} and not batch.seen:
            raise ViolationError(f"{self.name}: {batch} appeared at offset {place}")
        known = self.taken.setdefault(place, batch.number)
        if known != batch.number:
            raise ViolationError(f"{self.name}: {batch} stands at {place}, as batch {known} did")
        moved = batch.place not in {None, place}
        if moved and not (self.rotten and batch.resent):  # what rotted may be sent again
            raise ViolationError(f"{self.name}: {batch} moved to offset {place}")
        batch.place, batch.seen, batch.dropped = place, True, False
        if not batch.waits:
            batch.state = State.ACKED

    def _may_be_missing(self, batch: Batch, reading: Reading) -> bool:
        if not batch.owed or batch.dropped:
            return True
        if batch.place is None:
            return self.rotten
        if batch.place < reading.start:
            return True
        return self.rotten and (self.unclean_rot or reading.is_damaged(batch.place))

    def _note_dropped(self, found: dict[int, int], reading: Reading) -> None:
        """Note which batches went before anyone saw them: no more than the floor rose by.

        One that is in doubt may have gone, too: when it is sent again, it is a duplicate of what
        nobody can read any more.
        """
        room = reading.start - self.start
        for batch in self.batches.values():
            unseen = batch.owed or batch.state is State.UNKNOWN
            if not unseen or batch.place is not None or batch.dropped or batch.number in found:
                continue
            if len(batch.raw) <= room:
                room -= len(batch.raw) if batch.owed else 0
                batch.dropped = True

    def _judge_order(self, found: dict[int, int]) -> None:
        places = [
            place for number, place in sorted(found.items()) if not self.batches[number].resent
        ]
        if places != sorted(places):
            raise ViolationError(f"{self.name}: batches stand in another order than they were sent")

    def judge_floor(self, reading: Reading, now: float, stored: int) -> None:
        """Judge where the topic begins: what is gone was due.

        Args:
            reading: what a reader found.
            now: the time in seconds.
            stored: bytes of the topic's data on the disk; holes that a crash tore are among them.

        Raises:
            ViolationError: it was not.
        """
        start = reading.start
        if start < self.start:
            raise ViolationError(f"{self.name}: it begins at {start}, after {self.start}")
        gone = [b for b in self.batches.values() if b.place is not None and b.place < start]
        readable = sum(map(len, reading.pieces.values())) + sum(b - a for a, b in reading.damage)
        kept = max(readable, stored)
        sizes = [limit for limit, _ in self.limits if limit]
        ages = [age for _, age in self.limits if age]
        if any(kept >= size // 2 for size in sizes):
            return
        youngest = max((b.sent_at for b in gone), default=float("-inf"))
        if start > 0 and gone and not (ages and youngest < now - min(ages)):
            raise ViolationError(
                f"{self.name}: it begins at {start}; {kept} bytes are kept and "
                f"{gone[-1]} is gone under the limits {self.limits}"
            )
