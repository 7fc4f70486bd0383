"""How a journal is set up."""

import math
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from lance_sdk._api.arguments.unit_parsing import shorten
from lance_sdk.errors import ConfigError
from lance_sdk.journal._slot.layout import FIRST_FRAME, FRAME_HEADER_SIZE, MAX_SEGMENT_BYTES
from lance_spec.disk.segment_names import LWP_SLOT_SUFFIX, QWP_SLOT_SUFFIX

_MEMORY_TOTAL: Final = 128 << 20
_DISK_TOTAL: Final = 10 << 30


class SlotKind(Enum):
    """Whose frames a slot holds; a slot of one kind is never opened as the other (SF-31)."""

    QWP = QWP_SLOT_SUFFIX
    """Complete QWP messages, in the format that other QWP clients read and write."""
    LWP = LWP_SLOT_SUFFIX
    """Batches for LWP (`lance_spec.messages.store_forward.StoredBatch`)."""

    @property
    def suffix(self) -> str:
        """Extension of the segment files, with its dot."""
        return self.value


class Durability(Enum):
    """What a frame survives once the call that stored it has returned.

    Every level of a journal on disk survives the death of the process at any instruction,
    SIGKILL included: frames are in the operating system's page cache when `Journal.append`
    returns. The levels differ in what a crash of the machine or a loss of power takes:

    A journal without a path survives nothing; its level is always `MEMORY`.
    """

    MEMORY = "memory"
    """A machine crash may take whatever the operating system had not written yet, usually the
    last 30 seconds. Sealed segments are synced soon after rotation unless they are acknowledged
    before that. The default for QWP, as its document has it."""
    PERIODIC = "periodic"
    """A machine crash takes at most the frames of the last ``sync_interval``, if the disk keeps
    up; `Journal.durable_fsn` says which are safe. The default for LWP."""
    FLUSH = "flush"
    """Frames before a `Journal.flush` that has returned survive a machine crash."""
    APPEND = "append"
    """Every frame survives a machine crash once `Journal.append` has returned. Appends that run
    at the same time share one sync (group commit)."""


class _Unset(Enum):
    """Stands for a setting that was not given."""

    OF_THE_KIND = "of the kind"


_OF_THE_KIND: Final[Any] = _Unset.OF_THE_KIND


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalConfig:
    """Settings of one journal; see `Journal.open`.

    Attributes:
        kind: whose frames it holds.
        segment_bytes: size of a new segment file, in bytes; segments that exist keep theirs.
        max_total_bytes: most bytes that all segments together may take; None means 128 MiB in
            memory and 10 GiB on disk. At least two segments.
        max_frame_bytes: largest payload that must fit, in bytes; None means what a segment
            holds. Checked against ``segment_bytes`` when the configuration is made (SF-33).
        durability: what a stored frame survives; its name will do, as in ``"flush"``. Unless it is
            given, `Durability.PERIODIC` for LWP and `Durability.MEMORY` for QWP.
        sync_interval: seconds between syncs in `Durability.PERIODIC`.
        append_timeout: seconds that `Journal.append` waits for room unless told otherwise.
        punch_holes: give the space of acknowledged frames inside a segment back to the file
            system (Linux). None means yes for LWP and no for QWP slots, because a QWP client
            that ignores the watermark would send the emptied frame.
        accept_gaps: open a slot of which segment files are missing: the frames that no file holds
            are given up and told, and those before them get their numbers. Segments that hold
            frames of the same numbers get different ones, the older segment's first. Otherwise
            such a slot is refused (SF client section 6.5).
        synced_before_trim: side files of the transport, by name, that must be on disk before
            segments are deleted (SF-04); missing ones are skipped.
        quarantine_bytes: most bytes of damaged data to keep beside the segments.
        background: whether threads reserve segments, trim and sync. Without them `Journal.append`
            reserves by itself and the caller runs `Journal.maintain`.

    Raises:
        ConfigError: a value is out of range, or a frame would not fit in a segment.
    """

    kind: SlotKind = SlotKind.LWP
    segment_bytes: int = 4 << 20
    max_total_bytes: int | None = None
    max_frame_bytes: int | None = None
    durability: Durability = _OF_THE_KIND
    sync_interval: float = 1.0
    append_timeout: float = 30.0
    punch_holes: bool | None = None
    accept_gaps: bool = False
    synced_before_trim: tuple[str, ...] = ()
    quarantine_bytes: int = 64 << 20
    background: bool = True

    def __post_init__(self) -> None:
        if not isinstance(self.kind, SlotKind):
            raise ConfigError(f"kind={shorten(self.kind)}: expected SlotKind.LWP or SlotKind.QWP")
        if self.durability is _OF_THE_KIND:
            lwp = self.kind is SlotKind.LWP
            durability = Durability.PERIODIC if lwp else Durability.MEMORY
        else:
            durability = _durability(self.durability)
        object.__setattr__(self, "durability", durability)
        _within("segment_bytes", self.segment_bytes, 64, MAX_SEGMENT_BYTES)
        _within("quarantine_bytes", self.quarantine_bytes, 0, 2**63)
        _seconds("sync_interval", self.sync_interval, above=0.0)
        _seconds("append_timeout", self.append_timeout)
        total = self.max_total_bytes
        if total is not None and not (_is_a(int, total) and total >= 2 * self.segment_bytes):
            raise ConfigError(
                f"max_total_bytes={shorten(total)}: expected at least two segments, "
                f"{2 * self.segment_bytes} bytes; lower segment_bytes or raise the limit"
            )
        if self.max_frame_bytes is not None:
            _within("max_frame_bytes", self.max_frame_bytes, 1, self.frame_capacity)

    @property
    def frame_capacity(self) -> int:
        """Most payload bytes that fit in a new segment."""
        return self.segment_bytes - FIRST_FRAME - FRAME_HEADER_SIZE

    @property
    def frame_limit(self) -> int:
        """Most payload bytes that `Journal.append` takes."""
        return self.max_frame_bytes or self.frame_capacity

    @property
    def holes(self) -> bool:
        """Whether holes are punched, the default decided."""
        return self.kind is SlotKind.LWP if self.punch_holes is None else self.punch_holes

    def total_bytes(self, *, on_disk: bool) -> int:
        """Return the cap on all segments, the default decided."""
        default = max(_DISK_TOTAL if on_disk else _MEMORY_TOTAL, 2 * self.segment_bytes)
        return default if self.max_total_bytes is None else self.max_total_bytes


def _durability(value: Durability | str) -> Durability:
    """Return a level that may be given by its name, as in connect strings."""
    try:
        return Durability(value)
    except ValueError:
        known = ", ".join(each.value for each in Durability)
        raise ConfigError(f"durability={shorten(value)}: expected one of {known}") from None


def _is_a(kind: type | tuple[type, ...], value: object) -> bool:
    """Whether a value is what its annotation promises; callers need not be type-checked."""
    return isinstance(value, kind)


def _within(name: str, value: int, smallest: int, largest: int) -> None:
    if not (_is_a(int, value) and smallest <= value <= largest):
        hint = "; raise segment_bytes (SF-33)" if name == "max_frame_bytes" else ""
        raise ConfigError(f"{name}={shorten(value)}: expected {smallest} to {largest} bytes{hint}")


def _seconds(name: str, value: float, above: float = -1.0) -> None:
    number = _is_a((int, float), value) and math.isfinite(value)
    if not (number and value > above and value >= 0):
        least = "more than" if above >= 0 else "at least"
        raise ConfigError(f"{name}={shorten(value)}: expected {least} 0 seconds")
