"""The slot lock: flock(2) on ``.lock``, and who holds it in ``.lock.pid`` (SF-07)."""

import os
from pathlib import Path

from lance_sdk.journal._slot.layout import LOCK, LOCK_HOLDER
from lance_sdk.journal.errors import SlotLocked
from lance_sdk.journal.files import Files, Lock
from lance_spec.messages.store_forward import LockHolder

_LONGEST_PID = 32


def acquire(files: Files, slot: Path) -> Lock:
    """Lock a slot for this object; the kernel lets go when the process ends, however it ends.

    Raises:
        SlotLocked: somebody holds it.
        OSError: the lock file cannot be created.
    """
    try:
        lock = files.lock(slot / LOCK)
    except BlockingIOError:
        raise SlotLocked(slot, holder(files, slot)) from None
    try:
        files.replace(slot / LOCK_HOLDER, LockHolder(f"{os.getpid()}\n".encode()).encode())
    except OSError:
        # The pid only makes another process's error more helpful; a full disk must not keep a
        # slot from being drained.
        return lock
    return lock


def holder(files: Files, slot: Path) -> int | None:
    """Return the process id that locked the slot last, or None when none is known."""
    try:
        said = LockHolder.decode(files.read(slot / LOCK_HOLDER, _LONGEST_PID)).text
        return int(said)
    except (OSError, ValueError):
        return None
