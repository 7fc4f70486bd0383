"""Manifest, floor and state: two records in turn, so that one is always whole. The watermark."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Generic, Protocol, Self, TypeAlias, TypeVar

from lance_sdk.journal._slot.layout import DUAL_SIZE, RECORD_PLACES, RECORD_SIZE
from lance_sdk.journal.files import SlotFile
from lance_spec.checksum import Buffer
from lance_spec.errors import DecodeError
from lance_spec.messages.store_forward import WatermarkRecord, WatermarkSimple


class DualRecord(Protocol):
    """A record that stands twice in its file."""

    generation: int

    @classmethod
    def decode(cls, data: Buffer, /) -> Self:
        """Return the record that ``data`` is."""
        ...

    def crc_ok(self) -> bool:
        """Whether its checksum fits."""
        ...


class Encoded(Protocol):
    """A record of the generated codec."""

    def with_crc(self) -> Self:
        """Return a copy with the right checksum."""
        ...

    def encode(self) -> bytes:
        """Return its bytes."""
        ...


RecordMaker: TypeAlias = Callable[..., Encoded]
"""The class of a record: called with a generation and the record's own values."""

NO_FSN: Final = 2**64 - 1
"""How -1, nothing acknowledged, reads as an unsigned number."""

RecordT = TypeVar("RecordT", bound=DualRecord)


@dataclass(frozen=True, slots=True)
class Selected(Generic[RecordT]):
    """What a side file says.

    Attributes:
        record: the valid record with the highest generation, or None.
        damage: what is wrong with the file; "" when nothing is.
        offset: where that is.
    """

    record: RecordT | None
    damage: str = ""
    offset: int = 0


def select(data: bytes, kind: type[RecordT]) -> Selected[RecordT]:
    """Return what a side file of 8192 or 128 bytes says."""
    places = RECORD_PLACES.get(len(data))
    if places is None:
        return Selected(None, f"{len(data)} bytes where {DUAL_SIZE} are expected")
    best: RecordT | None = None
    damage, offset = "", 0
    for place in places:
        raw = data[place : place + RECORD_SIZE]
        if not any(raw):
            continue
        try:
            record = kind.decode(raw)
        except DecodeError as error:
            damage, offset = str(error), place
            continue
        if not record.crc_ok():
            damage, offset = f"the {kind.__name__} does not match its checksum", place
        elif best is None or record.generation > best.generation:
            best = record
    return Selected(best, damage, offset)


def select_watermark(data: bytes) -> Selected[WatermarkRecord]:
    """Return what a watermark file of any form says; the first form had no checksum."""
    if len(data) != WatermarkSimple.SIZE:
        return select(data, WatermarkRecord)
    try:
        simple = WatermarkSimple.decode(data)
    except DecodeError as error:
        return Selected(None, str(error) if any(data) else "")
    return Selected(WatermarkRecord(1, simple.fsn))


def signed(fsn: int) -> int:
    """Return a number of the watermark file as what it means: -1 for none."""
    return -1 if fsn == NO_FSN else fsn


class _Synced:
    """Remembers whether what was written to a file is on disk; several threads may write it."""

    def __init__(self, file: SlotFile) -> None:
        self.file = file
        self._lock = threading.Lock()
        self._written = 0
        self._synced = 0
        self._lost = False

    def write_again(self) -> None:
        """Write the newest record again."""
        raise NotImplementedError

    def sync(self) -> None:
        """Wait until what was stored is on disk.

        After a write or a sync that failed the kernel may hold bytes for clean that never
        reached the disk: they are written again before the next one.
        """
        if self._lost:
            self.write_again()
        written = self._written
        if self._synced != written:
            try:
                self.file.sync()
            except OSError:
                self._lost = True
                raise
            self._lost = False
            self._synced = written

    def _put(self, place: int, record: bytes) -> None:
        """Write a record; the lock is held."""
        self._written += 1
        try:
            self.file.write(place, record)
        except OSError:
            self._lost = True
            raise


class SideFile(_Synced):
    """A side file that is being written: two records, in turn.

    Args:
        file: the open file.
        kind: makes a record of a generation and the values of `store`.
        generation: of the newest record that is there.

    Attributes:
        file: the open file; a store survives this process, `sync` makes it survive the machine.
    """

    def __init__(self, file: SlotFile, kind: RecordMaker, generation: int) -> None:
        super().__init__(file)
        self._kind = kind
        self._generation = generation
        self._values: tuple[int, ...] = ()

    def __repr__(self) -> str:
        return f"<SideFile {self._kind!r}, generation {self._generation}>"

    @staticmethod
    def fresh(kind: RecordMaker, generation: int, *values: int) -> bytes:
        """Return the content of a new side file with one record."""
        content = bytearray(DUAL_SIZE)
        place = _place(generation)
        content[place : place + RECORD_SIZE] = kind(generation, *values).with_crc().encode()
        return bytes(content)

    def store(self, *values: int) -> None:
        """Write the next record over the older one; the newer one stays whole meanwhile."""
        with self._lock:
            self._values = values
            generation = self._generation + 1
            record = self._kind(generation, *values).with_crc().encode()
            self._put(_place(generation), record)
            self._generation = generation

    def write_again(self) -> None:
        """Write the newest record again, as the next one."""
        self.store(*self._values)


def _place(generation: int) -> int:
    return (generation & 1) * (DUAL_SIZE // 2)


class WatermarkFile(_Synced):
    """The acknowledgement watermark in the document's form (SF client section 5.4).

    Args:
        file: the open file of 16 bytes.

    Attributes:
        file: the open file.
    """

    def __init__(self, file: SlotFile) -> None:
        super().__init__(file)
        self._fsn = NO_FSN

    def __repr__(self) -> str:
        return f"<WatermarkFile {signed(self._fsn)}>"

    def store(self, fsn: int) -> None:
        """Say that every frame up to ``fsn`` is acknowledged; -1 means none is."""
        with self._lock:
            self._fsn = NO_FSN if fsn < 0 else fsn
            self._put(0, WatermarkSimple(self._fsn).encode())

    def write_again(self) -> None:
        """Write the watermark again."""
        self.store(signed(self._fsn))
