"""Slots that nobody drains: finding them, looking into them, taking them over."""

import time
from collections.abc import Callable, Iterator
from os import PathLike
from pathlib import Path

from lance_sdk.journal._ring.journal import Journal
from lance_sdk.journal._slot.layout import FAILED, SET_ASIDE
from lance_sdk.journal._slot.snapshot import SlotSnapshot, read_slot
from lance_sdk.journal.config import JournalConfig, SlotKind
from lance_sdk.journal.errors import SlotUnreadable
from lance_sdk.journal.files import Files, RealFiles
from lance_sdk.journal.types import SlotReport, lost_in
from lance_spec.messages.store_forward import FailedSentinel

_LONGEST_REASON = 64 << 10


def orphans(
    root: str | PathLike[str],
    kind: SlotKind = SlotKind.LWP,
    *,
    exclude: frozenset[str] = frozenset(),
    files: Files | None = None,
) -> Iterator[Path]:
    """Yield the slots under ``root`` that a drainer may try to `adopt`.

    A candidate is a folder with segment files of this kind and without ``.failed``, whose name does
    not say that it was set aside (SF-30). Whether somebody holds its lock is not asked, because
    the answer could be old by the time it is used: `adopt` finds out. A slot with nothing left
    to send may be among them.

    Args:
        root: the folder that holds the slots.
        kind: whose slots; slots of another protocol are never yielded (SF-31).
        exclude: names to leave out, such as the caller's own slot.
        files: the file system; tests put others there.

    Raises:
        OSError: the root cannot be listed.
    """
    files = files or RealFiles()
    for name in files.names(Path(root)):
        if name not in exclude and SET_ASIDE not in name and not name.startswith("."):
            slot = Path(root) / name
            if _is_candidate(files, slot, kind):
                yield slot


def _is_candidate(files: Files, slot: Path, kind: SlotKind) -> bool:
    try:
        names = files.names(slot)
    except OSError:
        return False
    return FAILED not in names and any(name.endswith(kind.suffix) for name in names)


def adopt(
    slot: str | PathLike[str],
    config: JournalConfig | None = None,
    *,
    files: Files | None = None,
    clock: Callable[[], float] = time.monotonic,
    wall_clock: Callable[[], float] = time.time,
) -> Journal:
    """Open somebody else's slot to drain it.

    Read from `Journal.acked_fsn` + 1, acknowledge, close. When the drainer gives up, it calls
    `Journal.mark_failed` before it closes.

    Raises:
        SlotLocked: somebody holds it; try later, or leave it.
        SlotUnreadable: it has ``.failed``, does not exist, or cannot be read without guessing.
    """
    files, path = files or RealFiles(), Path(slot)
    config = config or JournalConfig()
    if not _is_candidate(files, path, config.kind):
        raise SlotUnreadable(
            path,
            0,
            f"not a slot that may be adopted: it has no *{config.kind.suffix} file, or it has "
            f"{FAILED}, which says why a drainer gave up; remove that file to try again",
        )
    return Journal.open(path, config, files=files, clock=clock, wall_clock=wall_clock)


def inspect(
    slot: str | PathLike[str], kind: SlotKind = SlotKind.LWP, *, files: Files | None = None
) -> SlotReport:
    """Read a slot without its lock and without changing a byte.

    A slot that is in use may be seen in the middle of a write.

    Raises:
        SlotUnreadable: it cannot be read without guessing.
        OSError: it cannot be read.
    """
    files, path = files or RealFiles(), Path(slot)
    snapshot = read_slot(files, path, kind)
    first, frames = _backlog(snapshot)
    return SlotReport(
        path=path,
        frames=frames,
        first_fsn=first,
        last_fsn=snapshot.next_fsn - 1,
        acked_fsn=snapshot.acked_fsn,
        segments=tuple(each.path.name for each, _ in snapshot.chain.order),
        problems=tuple(snapshot.problems),
        failed=_failed(files, path),
        **_counts(snapshot, frames),
        notes=tuple(snapshot.notes),
    )


def _counts(snapshot: SlotSnapshot, waiting: int) -> dict[str, int]:
    """Return how many frames there are, by what becomes of them."""
    pairs = zip(snapshot.chain.order, snapshot.assignments, strict=True)
    by_file = {found.path: sum(run.count for run in each.runs) for (found, _), each in pairs}
    return {
        "on_disk": sum(by_file.values()),
        "acknowledged": sum(by_file.values()) - waiting,
        "damaged": lost_in(snapshot.problems),
        "foreign": sum(by_file.get(path, 0) for path in snapshot.foreign),
    }


def _backlog(snapshot: SlotSnapshot) -> tuple[int, int]:
    """Return the first number that can be delivered, and how many can."""
    after, frames, first = snapshot.acked_fsn, 0, snapshot.next_fsn
    for assignment in snapshot.assignments:
        for run in assignment.runs:
            start = max(run.fsn, after + 1)
            if start < run.fsn + run.count:
                frames += run.fsn + run.count - start
                first = min(first, start)
    return first, frames


def _failed(files: Files, path: Path) -> str | None:
    try:
        data = files.read(path / FAILED, _LONGEST_REASON)
    except FileNotFoundError:
        return None
    return FailedSentinel.decode(data).reason.decode(errors="replace")
