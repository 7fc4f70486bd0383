"""Errors of a journal, under `lance_sdk.errors.LanceError`.

::

    JournalError
    ├─ SlotLocked          another process or object holds the slot; names the holder's pid
    ├─ SlotUnusable        the folder cannot be made or written to (also an OSError)
    ├─ SlotUnreadable      the slot cannot be read without guessing; names file and offset
    ├─ FrameTooLarge       the frame does not fit in a segment; it was not accepted
    ├─ JournalFull         no room came free in time (also a TimeoutError); not accepted
    ├─ NotYetDurable       accepted, but the disk did not confirm in time (also a TimeoutError)
    ├─ JournalFailed       the disk refused to store what was accepted; reading still works
    ├─ FrameDamaged        a stored frame changed on disk after the slot was opened
    └─ NotRetained         the frame was acknowledged and given up
    AckOutOfRange          the peer acknowledged what it was never sent (a RemoteProtocolError)
"""
# ruff: noqa: N818 - these names say what happened; "Error" would repeat the module's name

from pathlib import Path
from typing import Any, Literal, TypeAlias

from lance_sdk._errors.base import LanceError
from lance_sdk.errors import RemoteProtocolError

FullReason: TypeAlias = Literal["backlog", "disk", "reserving"]


class JournalError(LanceError):
    """Base of what a journal raises, except for `AckOutOfRange` and misuse."""


class SlotLocked(JournalError):
    """Somebody holds the slot.

    Attributes:
        slot: the slot's folder.
        holder: process id that the holder left in ``.lock.pid``; None when it left none.
    """

    retryable = True

    def __init__(self, slot: Path, holder: int | None) -> None:
        self.slot = slot
        self.holder = holder
        pid = "unknown" if holder is None else f"pid={holder}"
        super().__init__(
            f"store-and-forward slot is already in use [slot={slot}, holder={pid}]; "
            "end that process, or give this one a slot of its own"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.slot, self.holder)


class SlotUnusable(JournalError, OSError):
    """The slot's folder cannot be made, or not be written to (also an OSError).

    Attributes:
        slot: the slot's folder.
    """

    def __init__(self, slot: Path, error: OSError) -> None:
        self.slot = slot
        self._error = error
        super().__init__(
            f"cannot use {slot} as a slot: {error.strerror or error}; choose a folder in which "
            "this process may write"
        )
        self.errno = error.errno

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.slot, self._error)


class SlotUnreadable(JournalError):
    """The slot holds something that cannot be read without guessing; nothing was changed.

    Attributes:
        path: the file at fault.
        offset: the byte at fault within it.
        problem: what is wrong and what to do.
    """

    def __init__(self, path: Path, offset: int, problem: str) -> None:
        self.path = path
        self.offset = offset
        self.problem = problem
        super().__init__(f"{path} at byte {offset}: {problem}")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.path, self.offset, self.problem)


class SlotForOthers(SlotUnreadable):
    """The slot belongs to another protocol, or to a newer release; whoever wrote it can read it."""


class SegmentsOverlap(SlotUnreadable):
    """Two segment files hold frames of the same numbers; nothing was changed.

    A loss of power can bring files back that a client had deleted before another one began again
    with number 0. `lance_sdk.journal.tools.repair` keeps the frames of both.
    """


class SlotHasGap(SlotUnreadable):
    """Frames are missing between or beside those that are there (SF client section 6.5).

    Nothing was changed. `lance_sdk.journal.tools.repair` gives the missing frames up.

    Attributes:
        lost: first and last number of each range that no file holds.
    """

    def __init__(self, path: Path, lost: tuple[tuple[int, int], ...]) -> None:
        self.lost = lost
        which = ", ".join(f"{first} to {last}" for first, last in lost)
        super().__init__(
            path,
            0,
            f"no file holds the frames {which}, which are not acknowledged; bring the missing "
            "segment files back, or give these frames up with `lwp sf repair`",
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.path, self.lost)


class FrameTooLarge(JournalError, ValueError):
    """The frame is empty or does not fit in a segment; it was not accepted.

    Attributes:
        size: bytes of the payload.
        limit: most bytes a payload may have in this journal.
    """

    def __init__(self, size: int, limit: int) -> None:
        self.size = size
        self.limit = limit
        super().__init__(
            f"a frame of {size} bytes: this journal takes 1 to {limit} (SF-21, SF-33); "
            "open it with larger segment_bytes (sf_max_segment_bytes) for larger frames"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.size, self.limit)


_ADVICE: dict[FullReason, str] = {
    "backlog": "the backlog is at max_total_bytes={limit}: {backlog} bytes wait for "
    "acknowledgements{link}. Check that the server is reachable and acknowledges, or raise the "
    "limit (sf_max_total_bytes in a connect string)",
    "disk": "no space for the next segment: {cause}. Free space on the volume of {where}; "
    "what was accepted is safe and can still be sent",
    "reserving": "the next segment is not ready: the volume of {where} is slow to reserve it. "
    "Try again, or use a larger append_timeout (sf_append_deadline_millis)",
}


class JournalFull(JournalError, TimeoutError):
    """No room came free before the deadline; the frame was not accepted.

    Attributes:
        reason: ``backlog`` (the cap is reached and acknowledgements are awaited), ``disk`` (the
            volume has no space) or ``reserving`` (the volume is slow).
        waited: seconds that were waited.
        cause: the volume's error, for ``disk``.
        link: how the sender's connection stands, for ``backlog``; "" where there is no sender.
    """

    retryable = True

    def __init__(
        self,
        reason: FullReason,
        waited: float,
        *,
        where: str = "",
        limit: int = 0,
        backlog: int = 0,
        cause: OSError | None = None,
        link: str = "",
    ) -> None:
        self.reason: FullReason = reason
        self.waited = waited
        self.cause = cause
        self.link = link
        self._room = {"where": where, "limit": limit, "backlog": backlog}
        told = _ADVICE[reason].format(**self._room, cause=cause, link=f" ({link})" if link else "")
        super().__init__(f"journal full after {waited:.1f} s: {told}")
        self.__cause__ = cause

    def with_link(self, link: str) -> "JournalFull":
        """Return the same error, saying how the connection stands (SF client section 16)."""
        room: dict[str, Any] = self._room
        return JournalFull(self.reason, self.waited, **room, cause=self.cause, link=link)

    def __reduce__(self) -> tuple[Any, ...]:
        return _full, (self.reason, self.waited, self._room, self.cause, self.link)


def _full(
    reason: FullReason, waited: float, room: dict[str, Any], cause: OSError | None, link: str
) -> JournalFull:
    return JournalFull(reason, waited, **room, cause=cause, link=link)


class NotYetDurable(JournalError, TimeoutError):
    """The frame is in the journal, but the disk did not confirm it before the deadline.

    It survives the death of this process and will be sent; appending it again would make it two.

    Attributes:
        fsn: its number.
    """

    maybe_applied = True

    def __init__(self, fsn: int) -> None:
        self.fsn = fsn
        super().__init__(
            f"frame {fsn} is stored but not yet synced to disk; do not append it again, "
            "call sync() to wait for it"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.fsn,)


class JournalFailed(JournalError):
    """The disk refused to keep what was accepted; the journal takes no more frames.

    Frames can still be read and acknowledged, and every counter stays readable.

    Attributes:
        cause: the first error, usually an OSError that names the file.
        durable_fsn: the last frame that is known to be on disk.
    """

    def __init__(self, cause: BaseException, durable_fsn: int) -> None:
        self.cause = cause
        self.durable_fsn = durable_fsn
        super().__init__(
            f"the journal's disk failed: {cause!r}. Frames up to {durable_fsn} are on disk; later "
            "ones may be lost if this machine stops. Send what is there, then repair the volume"
        )
        self.__cause__ = cause

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.cause, self.durable_fsn)


class FrameDamaged(JournalError):
    """A stored frame no longer matches its checksum.

    Attributes:
        fsn: its number; reading can go on at the next.
        path: the segment, or None in memory.
        offset: where the frame starts in it.
    """

    def __init__(self, fsn: int, path: Path | None, offset: int) -> None:
        self.fsn = fsn
        self.path = path
        self.offset = offset
        super().__init__(
            f"{path or 'memory'} at byte {offset}: frame {fsn} does not match its checksum; "
            f"set the file aside, then go on with read_from({fsn + 1})"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.fsn, self.path, self.offset)


class NotRetained(JournalError):
    """The frame is not in the journal: it was acknowledged and given up, or never existed.

    Attributes:
        fsn: the number that was asked for.
        first: the lowest number that can be read.
        next_fsn: the number that the next frame will get.
    """

    def __init__(self, fsn: int, first: int, next_fsn: int) -> None:
        self.fsn = fsn
        self.first = first
        self.next_fsn = next_fsn
        super().__init__(f"frame {fsn} is not in the journal; it holds {first} to {next_fsn - 1}")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.fsn, self.first, self.next_fsn)


class AckOutOfRange(RemoteProtocolError):
    """The peer acknowledged a frame that it was never sent (SF-35); the watermark did not move.

    Attributes:
        fsn: what it acknowledged.
        sent: the last frame that was sent; -1 when none was.
    """

    def __init__(self, fsn: int, sent: int) -> None:
        self.fsn = fsn
        self.sent = sent
        known = f"only 0 to {sent} were sent" if sent >= 0 else "none was sent"
        super().__init__(
            f"acknowledgement of frame {fsn}, but {known} (SF-35); close the connection and send "
            "again from acked_fsn + 1"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.fsn, self.sent)
