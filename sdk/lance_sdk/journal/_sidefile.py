"""Manifest, watermark and floor: two records in turn, so that one is always whole."""

from dataclasses import dataclass
from typing import Final, Generic, Protocol, Self, TypeVar

from lance_sdk.journal._layout import DUAL_SIZE, RECORD_PLACES, RECORD_SIZE, encode_record
from lance_sdk.journal.files import MappedFile
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


class SideFile:
    """A side file that is being written.

    Attributes:
        file: the mapping; a store survives this process, `sync` makes it survive the machine.
        unsynced: whether something was stored since the last sync began.
    """

    def __init__(self, file: MappedFile, magic: bytes, generation: int) -> None:
        self.file = file
        self.unsynced = True
        self._magic = magic
        self._generation = generation

    def __repr__(self) -> str:
        return f"<SideFile {self._magic!r}, generation {self._generation}>"

    @staticmethod
    def fresh(magic: bytes, generation: int, first: int, second: int) -> bytes:
        """Return the content of a new side file with one record."""
        content = bytearray(DUAL_SIZE)
        place = (generation & 1) * (DUAL_SIZE // 2)
        content[place : place + RECORD_SIZE] = encode_record(magic, generation, first, second)
        return bytes(content)

    def store(self, first: int, second: int = 0) -> None:
        """Write the next record over the older one; the newer one stays whole meanwhile."""
        self._generation += 1
        place = (self._generation & 1) * (DUAL_SIZE // 2)
        record = encode_record(self._magic, self._generation, first, second)
        self.file.view[place : place + RECORD_SIZE] = record
        self.unsynced = True

    def sync(self) -> None:
        """Wait until what was stored is on disk."""
        if self.unsynced:
            self.unsynced = False
            try:
                self.file.sync()
            except OSError:
                self.unsynced = True
                raise
