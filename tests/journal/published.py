"""Published clients as models on a simulated disk: how they open, append, trim and close a slot.

The Go client (afc74c3) is modelled from its source, the Python client (`questdb` 6.0.0, which holds
the Rust one) from what was observed: `tests/interop_questdb` runs both for real.
"""

import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import count, pairwise
from pathlib import Path
from typing import Final, Protocol

from lance_sdk.journal.files import Files, SlotFile
from lance_spec.checksum import CRC32C

_HEADER: Final = struct.Struct("<4sBBHQQ")
_DUAL: Final = 8192
_PLACES: Final = (0, 4096)
_CLOCK: Final = count(1_700_000_000_000_000)


class RefusedError(Exception):
    """A published client does not open the slot, and says why."""


class Server(Protocol):
    """What gets the frames that a client sends; a set will do."""

    def update(self, frames: Iterable[bytes], /) -> None:
        """Take frames."""
        ...


class PublishedClient(Protocol):
    """One client that has the slot."""

    def append(self, payload: bytes) -> None:
        """Store a frame."""
        ...

    def send(self, most: int, server: Server) -> None:
        """Send frames; the server has them, and acknowledges all of them."""
        ...

    def close(self) -> None:
        """Close in order."""
        ...


@dataclass
class Segment:
    """A segment file as a client sees it.

    Attributes:
        path: the file.
        file: its open handle.
        base: number of its first frame.
        flags: the flags in its header.
        end: where the next frame goes.
        payloads: its frames.
        torn: whether something that is not a frame follows them.
        created: when it was created, in microseconds.
    """

    path: Path
    file: SlotFile
    base: int
    flags: int
    end: int = 24
    payloads: list[bytes] = field(default_factory=list)
    torn: bool = False
    created: int = 0

    @property
    def stop(self) -> int:
        """Number after its last frame."""
        return self.base + len(self.payloads)

    def take(self, payload: bytes) -> bool:
        """Append a frame where there is room."""
        body = struct.pack("<I", len(payload)) + payload
        if self.end + 4 + len(body) > self.file.size:
            return False
        self.file.write(self.end + 4, body)
        self.file.write(self.end, struct.pack("<I", CRC32C(body)))
        self.end += 4 + len(body)
        self.payloads.append(payload)
        return True

    def stamp(self, base: int, flags: int) -> None:
        """Write the header."""
        self.base, self.flags = base, flags
        self.file.write(0, _HEADER.pack(b"SF01", 1, flags, 0, base, self.created))


def scan(disk: Files, path: Path) -> Segment | None:
    """Read a segment as the document says (section 6.5); None where its header is not valid."""
    file = disk.open(path, writable=True)
    data = file.read(0, file.size)
    if len(data) < _HEADER.size:
        return None
    magic, version, flags, _, base, created = _HEADER.unpack_from(data)
    if (magic, version) != (b"SF01", 1) or base >= 1 << 63:
        return None
    found = Segment(path, file, base, flags, created=created)
    while found.end + 8 <= len(data):
        crc, length = struct.unpack_from("<II", data, found.end)
        body = data[found.end + 4 : found.end + 8 + length]
        if not length or len(body) != 4 + length or CRC32C(body) != crc:
            break
        found.payloads.append(body[4:])
        found.end += 8 + length
    found.torn = any(data[found.end : found.end + 8])
    return found


class Model:
    """What both clients have in common: a ring of segments on a disk.

    Args:
        disk: the disk.
        slot: the folder.
        size: bytes of a segment.
        clock: microseconds since 1970, each time more.
    """

    def __init__(
        self, disk: Files, slot: Path, size: int, clock: Callable[[], int] = _CLOCK.__next__
    ) -> None:
        self.clock = clock
        self.disk = disk
        self.slot = slot
        self.size = size
        self.lock = disk.lock(slot / ".lock")
        self.ring: list[Segment] = []
        self.acked = -1

    def __repr__(self) -> str:
        return f"<{type(self).__name__} acked={self.acked} of {self.ring}>"

    def found(self) -> list[Segment]:
        """Return the segments with a valid header."""
        paths = [self.slot / name for name in self.disk.names(self.slot) if name.endswith(".sfa")]
        return [each for path in paths if (each := scan(self.disk, path)) is not None]

    def contiguous(self, segments: list[Segment]) -> None:
        """Check that no number is missing between segments."""
        for one, two in pairwise(segments):
            if one.stop != two.base:
                raise RefusedError(f"gap between {one.stop} and {two.base}")

    def create(self, name: str, base: int, flags: int) -> Segment:
        """Create a segment, in the place of any file of that name."""
        path = self.slot / name
        if name in self.disk.names(self.slot):
            self.disk.remove(path)
        segment = Segment(
            path, self.disk.create(path, self.size), base, flags, created=self.clock()
        )
        segment.stamp(base, flags)
        return segment

    def next_name(self) -> str:
        """Return the name of the next segment: one more than the highest number."""
        names = [name for name in self.disk.names(self.slot) if name.startswith("sf-0")]
        numbers = [int(name[3:19], 16) for name in names]
        return f"sf-{max(numbers, default=-1) + 1:016x}.sfa"

    def sendable(self, most: int) -> list[tuple[int, bytes]]:
        """Return the next frames that are not acknowledged."""
        frames = [
            (segment.base + place, payload)
            for segment in self.ring
            for place, payload in enumerate(segment.payloads)
        ]
        return [each for each in frames if each[0] > self.acked][:most]

    def stated(self) -> int:
        """Return what the watermark on disk says, believed or not; -1 where there is none."""
        return -1

    def drained(self) -> bool:
        """Whether everything is acknowledged."""
        return not self.ring or self.acked >= self.ring[-1].stop - 1

    def trimmed(self) -> list[Segment]:
        """Take full segments out of the ring whose frames are all acknowledged."""
        gone = []
        while len(self.ring) > 1 and self.ring[0].stop - 1 <= self.acked:
            gone.append(self.ring.pop(0))
        return gone


class GoClient(Model):
    """The Go client: 16 bytes of watermark, no manifest, nothing synced."""

    def __init__(
        self, disk: Files, slot: Path, size: int, clock: Callable[[], int] = _CLOCK.__next__
    ) -> None:
        super().__init__(disk, slot, size, clock)
        self._watermark_path = slot / ".ack-watermark"
        opened = sorted(self._with_frames(), key=lambda each: each.base)
        self.contiguous(opened)
        if opened:
            self.ring = opened
            self._watermark = self._open_watermark()
            self.acked = opened[0].base - 1
            if self.acked < self.stated() < opened[-1].stop:
                self.acked = self.stated()
            return
        if ".ack-watermark" in disk.names(slot):
            disk.remove(self._watermark_path)
        self._watermark = self._open_watermark()
        self.ring = [self.create("sf-initial.sfa", 0, 0)]

    def _with_frames(self) -> list[Segment]:
        kept = []
        for each in self.found():
            if each.payloads:
                kept.append(each)
            elif each.torn:
                self.disk.rename(each.path, each.path.with_name(f"{each.path.name}.corrupt"))
            else:
                self.disk.remove(each.path)
        return kept

    def stated(self) -> int:
        """Return what the watermark on disk says, believed or not; -1 where there is none."""
        data = self._watermark.read(0, 16)
        fsn: int = struct.unpack_from("<q", data, 8)[0] if data[:4] == b"AKW1" else -1
        return fsn

    def _open_watermark(self) -> SlotFile:
        if self._watermark_path.name in self.disk.names(self.slot):
            file = self.disk.open(self._watermark_path, writable=True)
            if file.size == 16:
                return file
            self.disk.remove(self._watermark_path)
        return self.disk.create(self._watermark_path, 16)

    def append(self, payload: bytes) -> None:
        """Store a frame."""
        if not self.ring[-1].take(payload):
            self.ring.append(self.create(self.next_name(), self.ring[-1].stop, 0))
            assert self.ring[-1].take(payload)

    def send(self, most: int, server: Server) -> None:
        """Send frames, then write the watermark, then delete segments."""
        frames = self.sendable(most)
        server.update([payload for _, payload in frames])
        if frames:
            self.acked = frames[-1][0]
            self._watermark.write(0, b"AKW1" + bytes(4) + struct.pack("<q", self.acked))
        for each in self.trimmed():
            self.disk.remove(each.path)

    def close(self) -> None:
        """Delete every segment and the watermark of a drained slot; leave everything else."""
        if self.drained():
            for name in self.disk.names(self.slot):
                if name.endswith(".sfa") or name == ".ack-watermark":
                    self.disk.remove(self.slot / name)
        self.lock.close()


@dataclass
class Records:
    """A side file with two records that are written in turns.

    Attributes:
        file: the file.
        magic: what its records begin with.
        generation: that of the last record.
    """

    file: SlotFile
    magic: bytes
    generation: int = 0

    def put(self, first: int, second: int = 0) -> None:
        """Write the next record."""
        self.generation += 1
        body = struct.pack("<4sIQqq28x", self.magic, 1, self.generation, first, second)
        place = _PLACES[self.generation & 1]
        self.file.write(place, body + struct.pack("<I", CRC32C(body)))

    def last(self) -> tuple[int, int] | None:
        """Return what the valid record with the higher generation says."""
        best = None
        for place in _PLACES:
            record = self.file.read(place, 64)
            body, crc = record[:60], record[60:]
            if record[:4] == self.magic and struct.pack("<I", CRC32C(body)) == crc:
                _, _, generation, first, second = struct.unpack("<4sIQqq28x", body)
                if generation > self.generation:
                    self.generation, best = generation, (first, second)
        return best


class PythonClient(Model):
    """The Python client: a manifest, and a watermark of two records; frames are not synced."""

    def __init__(
        self, disk: Files, slot: Path, size: int, clock: Callable[[], int] = _CLOCK.__next__
    ) -> None:
        super().__init__(disk, slot, size, clock)
        found = self.found()
        full = sorted((each for each in found if each.payloads), key=lambda each: each.base)
        self._manifest = self._records("sf-manifest.bin", b"SFM1", keep=True)
        said = self._manifest.last() if self._manifest else None
        if said is None and any(each.flags for each in found):
            raise RefusedError("segments without a manifest")
        if said is not None:
            full = self._checked(full, found, said)
        self.contiguous(full)
        self._drop_empty(found, full, said)
        self._clear_torn(full)
        self.ring = full
        if self._manifest is None or said is None:
            self._manifest = self._records("sf-manifest.bin", b"SFM1")
        assert self._manifest is not None
        if not full:
            base = said[1] if said is not None else 0
            self.ring = [self.create(self.next_name(), base, 1)]
            self.ring[0].file.sync()
        for each in self.ring:
            if not each.flags:
                each.stamp(each.base, 1)
                each.file.sync()
        watermark = self._records(".ack-watermark", b"AKW1")
        assert watermark is not None
        self._watermark = watermark
        self._reached = (self._watermark.last() or (-1, 0))[0]
        self.acked = self.ring[0].base - 1
        if self.acked < self._reached < self.ring[-1].stop:
            self.acked = self._reached
        self._commit()
        disk.sync_folder(slot)

    def stated(self) -> int:
        """Return what the watermark on disk said at the opening, believed or not."""
        return self._reached

    def _records(self, name: str, magic: bytes, *, keep: bool = False) -> Records | None:
        """Open a side file; one of another size is made blank, unless it is only looked at."""
        if name in self.disk.names(self.slot):
            file = self.disk.open(self.slot / name, writable=True)
            if file.size == _DUAL:
                return Records(file, magic)
            if keep:
                return None
            self.disk.remove(self.slot / name)
        return None if keep else Records(self.disk.create(self.slot / name, _DUAL), magic)

    def _checked(
        self, full: list[Segment], found: list[Segment], said: tuple[int, int]
    ) -> list[Segment]:
        """Hold segments against the manifest, as was observed."""
        head, active = said
        for each in full:
            if each.base < head < each.stop:
                raise RefusedError("segment overlaps committed SFA head boundary")
            if each.base > active:
                raise RefusedError("segment exists beyond committed SFA active boundary")
        left = [each for each in full if each.base >= head]
        if active not in {each.base for each in found}:
            if head == active and not full:
                return []
            raise RefusedError("missing expected SFA active segment at the committed boundary")
        if left and left[0].base != head:
            raise RefusedError("the chain does not start at the head")
        if any(each.flags == 0 for each in full if each not in left):
            # It ignores what the Go client wrote below the head of its own old manifest. No slot
            # of ours is needed for that, so the model leaves such a slot alone.
            raise RefusedError("segments of another client before the head")
        return left

    def _drop_empty(
        self, found: list[Segment], full: list[Segment], said: tuple[int, int] | None
    ) -> None:
        for each in found:
            if each in full:
                continue
            active = said is not None and each.base == said[1]
            if active and not any(other.base == each.base for other in full):
                full.append(each)  # a segment without frames that the manifest calls active
            elif each.torn:
                self.disk.rename(each.path, each.path.with_name(f"{each.path.name}.corrupt"))
            else:
                self.disk.remove(each.path)

    def _clear_torn(self, full: list[Segment]) -> None:
        """Clear what is torn; where that was not in the last segment, refuse the slot once."""
        for each in full:
            if each.torn:
                each.file.write(each.end, bytes(each.file.size - each.end))
                each.torn = False
                if each is not full[-1]:
                    raise RefusedError("a sealed segment was torn")

    def _commit(self) -> None:
        assert self._manifest is not None
        self._manifest.put(self.ring[0].base, self.ring[-1].base)
        self._manifest.file.sync()

    def append(self, payload: bytes) -> None:
        """Store a frame; the header of a new segment is synced, then the manifest."""
        if self.ring[-1].take(payload):
            return
        self.ring.append(self.create(self.next_name(), self.ring[-1].stop, 1))
        self.ring[-1].file.sync()
        self.disk.sync_folder(self.slot)
        self._commit()
        assert self.ring[-1].take(payload)

    def send(self, most: int, server: Server) -> None:
        """Send frames, then sync the watermark, then the manifest, then delete segments."""
        frames = self.sendable(most)
        server.update([payload for _, payload in frames])
        if frames:
            self.acked = frames[-1][0]
            self._watermark.put(self.acked)
        gone = self.trimmed()
        if gone:
            self._watermark.file.sync()
            self.disk.sync_folder(self.slot)
            self._commit()
            for each in gone:
                self.disk.remove(each.path)
            self.disk.sync_folder(self.slot)

    def close(self) -> None:
        """Delete segments, manifest, watermark and dictionary of a drained slot."""
        if self.drained():
            for name in self.disk.names(self.slot):
                mine = (".ack-watermark", ".symbol-dict", "sf-manifest.bin")
                if name.endswith(".sfa") or name in mine:
                    self.disk.remove(self.slot / name)
        self.lock.close()
