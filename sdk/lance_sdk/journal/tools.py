"""Looking after slots by hand: verify, export, repair, trim, unlock.

What only looks (`kind_of`, `frames_of`, `verify`) takes no lock and changes no byte. What changes
a slot takes its lock first, and keeps a copy of whatever it gives up.
"""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from lance_sdk.journal._ring.journal import Journal
from lance_sdk.journal._slot.layout import (
    CORRUPT,
    FAILED,
    FRAME_HEADER,
    FRAME_HEADER_SIZE,
    LOCK,
    LOCK_HOLDER,
)
from lance_sdk.journal._slot.lock import holder
from lance_sdk.journal._slot.snapshot import read_slot
from lance_sdk.journal._slot.symbol_file import MOST_BYTES, decode_file
from lance_sdk.journal._slot.symbol_file import NAME as DICTIONARY
from lance_sdk.journal.config import JournalConfig, SlotKind
from lance_sdk.journal.dead_letters import DeadLetterFile
from lance_sdk.journal.errors import JournalError, NotRetained, SlotLocked
from lance_sdk.journal.files import Files, RealFiles
from lance_sdk.journal.lwp.frames import read_frame
from lance_sdk.journal.lwp.metadata import NAME, SlotMetadata
from lance_sdk.journal.orphans import inspect
from lance_sdk.journal.rejections import Category, Policy, Rejection
from lance_sdk.journal.transport import Outgoing
from lance_sdk.journal.types import Problem, SlotReport, lost_in
from lance_spec.errors import DecodeError
from lance_spec.messages.qwp import GorillaPayload, Payload, QwpMessage, SymbolColumn
from lance_spec.qwp.upgrade import payload_class
from lance_spec.records import scan_records

Tell = Callable[[int, int], object]
"""Called with frames done and frames in all."""

_KEEP: Final = 1 << 40
"""Bytes of dead letters that trimming may keep: as many as there are."""


class NotASlot(JournalError):  # noqa: N818 - says what happened; "Error" would repeat it
    """There is no slot in this folder."""


def kind_of(slot: str | os.PathLike[str], files: Files | None = None) -> SlotKind:
    """Return whose slot a folder is.

    Raises:
        NotASlot: there is nothing of a slot in it.
        OSError: the folder cannot be read.
    """
    path = Path(slot)
    names = (files or RealFiles()).names(path)
    for kind in SlotKind:
        if any(name.endswith(kind.suffix) for name in names):
            return kind
    if NAME in names:
        return SlotKind.LWP
    if LOCK in names:  # drained by a client that deletes its segments: QWP clients do
        return SlotKind.QWP
    raise NotASlot(
        f"{path} is not a slot: it has no *.sfl or *.sfa file; name the slot's own folder"
    )


def frames_of(
    slot: str | os.PathLike[str], *, acked: bool = False, files: Files | None = None
) -> Iterator[tuple[int, bytes]]:
    """Yield (number, payload) of the frames that can be read, and change nothing.

    Args:
        slot: the folder.
        acked: whether to yield acknowledged frames too, as far as they are still there.
        files: the file system.

    Raises:
        SlotUnreadable: it cannot be read without guessing.
        OSError: it cannot be read.
    """
    files, path = files or RealFiles(), Path(slot)
    snapshot = read_slot(files, path, kind_of(path, files))
    after = -1 if acked else snapshot.acked_fsn
    for (found, _), assignment in zip(snapshot.chain.order, snapshot.assignments, strict=True):
        file = files.open(found.path, writable=False)
        try:
            data = memoryview(file.read(0, file.size))
        finally:
            file.close()
        for run in assignment.runs:
            yield from _frames(data, run.offset, run.fsn, run.count, after)


def _frames(
    view: memoryview, offset: int, fsn: int, count: int, after: int
) -> Iterator[tuple[int, bytes]]:
    for number in range(fsn, fsn + count):
        start = offset + FRAME_HEADER_SIZE
        offset = start + FRAME_HEADER.unpack_from(view, offset)[1]
        if number > after:
            yield number, bytes(view[start:offset])


@dataclass(frozen=True, slots=True)
class Verified:
    """What `verify` found.

    Attributes:
        report: what the slot holds.
        checked: frames whose content was read.
        unfit: each frame whose content is not what its slot should hold, and why.
    """

    report: SlotReport
    checked: int
    unfit: tuple[tuple[int, str], ...]

    @property
    def clean(self) -> bool:
        """Whether nothing at all is wrong."""
        return not (self.report.problems or self.unfit)


def verify(
    slot: str | os.PathLike[str], tell: Tell | None = None, *, files: Files | None = None
) -> Verified:
    """Check every frame that waits: its checksum, and what it holds.

    Args:
        slot: the folder.
        tell: is told how far it is.
        files: the file system.

    Raises:
        SlotUnreadable: it cannot be read without guessing.
        OSError: it cannot be read.
    """
    files, path = files or RealFiles(), Path(slot)
    kind = kind_of(path, files)
    report = inspect(path, kind, files=files)
    metadata = SlotMetadata(path, files) if kind is SlotKind.LWP else None
    checks = _QwpChecks(path, files)
    unfit, checked = [], 0
    for fsn, payload in frames_of(path, files=files):
        problem = checks.problem(payload) if metadata is None else _lwp_problem(payload, metadata)
        if problem:
            unfit.append((fsn, problem))
        checked += 1
        if tell is not None:
            tell(checked, report.frames)
    if metadata is not None and metadata.damage and report.frames:
        damage = Problem("damaged_side_file", path / NAME, 0, metadata.damage)
        report = replace(report, problems=(*report.problems, damage))
    return Verified(report, checked, tuple(unfit))


def _lwp_problem(payload: bytes, metadata: SlotMetadata) -> str:
    try:
        stored = read_frame(Outgoing(0, payload, False)).stored
    except ValueError as error:
        return str(error)
    if metadata.topic(stored.topic_number) is None:
        return f"topic {stored.topic_number} is not in {NAME}"
    found = scan_records(stored.records)
    if found.fault is not None:
        return f"record {found.fault.index}: {found.fault.reason}"
    if found.count != stored.record_count:
        return f"{found.count} records where {stored.record_count} are stated"
    return ""


class _QwpChecks:
    """Reads the frames of a QWP slot as a host does that gets them in order."""

    def __init__(self, path: Path, files: Files) -> None:
        try:
            self._known = len(decode_file(files.read(path / DICTIONARY, 2 * MOST_BYTES)).symbols)
        except FileNotFoundError:
            self._known = 0

    def problem(self, payload: bytes) -> str:
        """Return what is wrong with a frame, or ""."""
        try:
            message = QwpMessage.decode(payload)
            body = payload_class(message.flags).decode(message.payload)
        except DecodeError as error:
            return str(error)
        if len(body.tables) != message.table_count:
            return f"{len(body.tables)} tables where {message.table_count} are stated"
        if not isinstance(body, Payload | GorillaPayload):
            return ""
        start, brings = body.dictionary.start_id, len(body.dictionary.symbols)
        if start > self._known:
            return f"it needs the symbols below id {start}, and {self._known} are known"
        self._known = max(self._known, start + brings)
        sections = (each for table in body.tables for each in table.sections)
        ids = [max(each.ids, default=-1) for each in sections if isinstance(each, SymbolColumn)]
        if max(ids, default=-1) >= start + brings:
            return f"it uses symbol {max(ids)}, and {start + brings} are defined"
        return ""


@dataclass(frozen=True, slots=True)
class Repaired:
    """What `repair` found and did.

    Attributes:
        problems: what was damaged or missing, and what was done about it.
        copies: files that hold a copy of what was damaged.
        report: what the slot holds now.
    """

    problems: tuple[Problem, ...]
    copies: tuple[Path, ...]
    report: SlotReport

    @property
    def lost_frames(self) -> int:
        """The most frames that cannot be delivered any more."""
        return lost_in(self.problems)


def repair(slot: str | os.PathLike[str], *, files: Files | None = None) -> Repaired:
    """Bring a slot in order, as opening it does, and keep a copy of everything damaged.

    Raises:
        SlotLocked: somebody holds the slot.
        SlotUnreadable: it cannot be repaired without guessing; nothing was changed.
        OSError: the disk refuses.
    """
    files, path = files or RealFiles(), Path(slot)
    kind = kind_of(path, files)
    before = set(files.names(path))
    config = replace(_quiet(kind), accept_gaps=True)
    with Journal.open(path, config, files=files) as journal:
        _copy_holes(files, path, kind)
        problems = journal.problems
    fresh = [name for name in files.names(path) if name.endswith(CORRUPT) and name not in before]
    copies = tuple(path / name for name in fresh)
    return Repaired(problems, copies, inspect(path, kind, files=files))


def _copy_holes(files: Files, path: Path, kind: SlotKind) -> None:
    """Copy damaged bytes that stay in their segments until these are given up."""
    snapshot = read_slot(files, path, kind)
    for (found, _), assignment in zip(snapshot.chain.order, snapshot.assignments, strict=True):
        holes = [hole for hole, _, _ in assignment.lost if hole.end > hole.offset]
        if not holes:
            continue
        file = files.open(found.path, writable=False)
        for hole in holes:
            copy = found.path.with_name(f"{found.path.name}.{hole.offset}{CORRUPT}")
            if copy.name not in files.names(path):
                files.replace(copy, file.read(hole.offset, hole.end - hole.offset))
        file.close()


def _quiet(kind: SlotKind) -> JournalConfig:
    return JournalConfig(kind=kind, background=False)


@dataclass(frozen=True, slots=True)
class Trimmed:
    """What `trim` gave up.

    Attributes:
        frames: how many frames.
        kept_in: the file that holds copies of them, or None.
        report: what the slot holds now.
        problems: what was damaged or missing before.
    """

    frames: int
    kept_in: Path | None
    report: SlotReport
    problems: tuple[Problem, ...] = ()

    @property
    def lost_frames(self) -> int:
        """The most frames that cannot be delivered, and of which there is no whole copy."""
        return lost_in(self.problems)


def trim(
    slot: str | os.PathLike[str],
    upto: int,
    *,
    keep: bool = True,
    tell: Tell | None = None,
) -> Trimmed:
    """Give up the frames up to a number, for example one that every server rejects.

    Args:
        slot: the folder.
        upto: the last frame to give up.
        keep: whether they are written to the dead-letter file first.
        tell: is told how far it is.

    Raises:
        SlotLocked: somebody holds the slot.
        NotRetained: there is no such frame, or it is acknowledged.
        OSError: the disk refuses; nothing is given up that is not kept.
    """
    path = Path(slot)
    kind = kind_of(path)
    with Journal.open(path, _quiet(kind)) as journal:
        if not journal.acked_fsn < upto < journal.next_fsn:
            raise NotRetained(upto, journal.acked_fsn + 1, journal.next_fsn)
        letters = DeadLetterFile(path, _KEEP) if keep else None
        first = last = journal.acked_fsn + 1
        done = 0
        for fsn, payload in journal.read_from(first):
            if fsn > upto:
                break
            if letters is not None:
                letters.write(_trimmed(fsn), payload)
            last, done = fsn, done + 1
            if tell is not None:
                tell(done, upto - first + 1)
        if done:
            journal.ack(last)
        problems = journal.problems
    kept_in = letters.path if letters and done else None
    return Trimmed(done, kept_in, inspect(path, kind), problems)


def _trimmed(fsn: int) -> Rejection:
    return Rejection(
        category=Category.UNKNOWN,
        message="trimmed by hand",
        first_fsn=fsn,
        last_fsn=fsn,
        policy=Policy.DEAD_LETTER,
    )


def unlock(slot: str | os.PathLike[str], *, files: Files | None = None) -> str | None:
    """Let drainers take a slot again; return why one had given up, or None.

    A lock needs no breaking: the kernel releases it with its holder. So this refuses while
    somebody holds it, and removes ``.failed`` and a stale ``.lock.pid``.

    Raises:
        SlotLocked: somebody holds the slot.
        OSError: the files cannot be removed.
    """
    files, path = files or RealFiles(), Path(slot)
    kind = kind_of(path, files)
    report = inspect(path, kind, files=files)
    try:
        lock = files.lock(path / LOCK)
    except BlockingIOError:
        raise SlotLocked(path, holder(files, path)) from None
    try:
        for name in (FAILED, LOCK_HOLDER):
            if name in files.names(path):
                files.remove(path / name)
        files.sync_folder(path)
    finally:
        lock.close()
    return report.failed
