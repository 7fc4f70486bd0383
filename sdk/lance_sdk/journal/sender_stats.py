"""Counters of a store-and-forward sender, and its report at closing."""

from dataclasses import dataclass
from typing import Protocol

from lance_sdk.journal.errors import JournalError
from lance_sdk.journal.types import JournalStats


class Drainers(Protocol):
    """The slots that a sender drains beside its own."""

    active: int
    succeeded: int
    failed: int

    def stop(self) -> None:
        """Leave what is being drained to others, and wait for the threads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SenderStats:
    """One consistent look at a sender, possible at any time, also after a failure or `close`.

    Beside these, `journal` has the backlog in frames, bytes and age, the backpressure stalls and
    the state of the disk (SF client section 20).

    Attributes:
        journal: the counters of the ring.
        settled_fsn: every frame up to this one is acknowledged, or given up by policy.
        online: whether a connection may carry frames.
        exactly_once: whether the last server states that it stores a repeated frame once (SF-34);
            None while that is not known. Where it is not True, delivery is at least once.
        connect_attempts: attempts to connect, the first one included.
        connects: connections that could carry frames.
        frames_sent: frames handed to a connection.
        frames_replayed: of these, the ones that an earlier connection had carried.
        frames_in_flight: frames sent and not answered.
        acks: answers that acknowledged something new.
        server_errors: rejections, of any category.
        dead_lettered: frames written to the dead-letter file.
        dropped_frames: frames given up without a copy.
        errors_delivered: rejections that the error handler was called with.
        errors_dropped: rejections dropped because the handler was slow.
        terminal_error: what halted the sender, or None.
        last_error: the latest rejection or failure, as text; "" when there was none.
        drainers_active: orphans being drained now.
        drainers_succeeded: orphans that were drained.
        drainers_failed: orphans that were given up with ``.failed``.
    """

    journal: JournalStats
    settled_fsn: int
    online: bool
    exactly_once: bool | None
    connect_attempts: int
    connects: int
    frames_sent: int
    frames_replayed: int
    frames_in_flight: int
    acks: int
    server_errors: int
    dead_lettered: int
    dropped_frames: int
    errors_delivered: int
    errors_dropped: int
    terminal_error: Exception | None
    last_error: str
    drainers_active: int = 0
    drainers_succeeded: int = 0
    drainers_failed: int = 0

    @property
    def reconnect_attempts(self) -> int:
        """Attempts after the first one."""
        return max(0, self.connect_attempts - 1)

    @property
    def reconnects(self) -> int:
        """Connections after the first one."""
        return max(0, self.connects - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class SenderReport:
    """What `close` found.

    Attributes:
        settled_fsn: every frame up to this one is acknowledged, or given up by policy.
        kept_frames: frames that wait in the slot for the next sender.
        lost_frames: frames in memory that nobody has; 0 with a slot on disk.
        error: what halted the sender, or None.
        stats: the last counters.
    """

    settled_fsn: int
    kept_frames: int
    lost_frames: int
    error: Exception | None
    stats: SenderStats

    @property
    def clean(self) -> bool:
        """Whether everything is acknowledged and nothing went wrong."""
        return not (self.kept_frames or self.lost_frames or self.error)


class FramesLost(JournalError):  # noqa: N818 - says what happened; "Error" would repeat it
    """Leaving a ``with`` block found frames in memory that were not acknowledged.

    Attributes:
        report: what ``close()`` found.
    """

    def __init__(self, report: SenderReport) -> None:
        self.report = report
        super().__init__(
            f"{report.lost_frames} frames in memory were not acknowledged and are lost; give the "
            "sender a path to keep them, or a longer close_timeout"
        )

    def __reduce__(self) -> tuple[type["FramesLost"], tuple[SenderReport]]:
        return type(self), (self.report,)
