"""Committed consumer offsets of one topic, durable (LWP section 5.14, AMB-36, AMB-55).

They are a log of their own: a header, then one entry of 32 bytes for each commit or deletion,
written and synced for all commits that arrived together. The last valid entry of a consumer
counts. The file is written again as a whole when most of its entries are out of date, and after
anything that leaves its content in doubt. Memory changes when the entries are durable, never
before. A commit fails alone: batches do not wait for it.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from struct import Struct
from typing import Final, NamedTuple

from lance_server.errors import DataDirError
from lance_server.log.clock import Clock
from lance_server.log.metadata.checksummed_file import backup_of, load_document
from lance_server.lwp.refusals import Refusal, storage_refusal
from lance_server.runtime.completion import Completion
from lance_server.runtime.scheduling import Scheduler
from lance_server.storage.contract import (
    StorageBackend,
    UndecidedError,
    read_file,
    replace_file,
)
from lance_spec.bodies import take_int
from lance_spec.checksum import CRC32C
from lance_spec.enums import ErrorCode
from lance_spec.errors import DecodeError

FILE_NAME: Final = "consumers.log"
FIRST_FILE_NAME: Final = "consumers.json"
"""Where the first release kept them: read when there is no log, removed once there is."""

_ENTRY: Final = Struct("<QQQL")  # consumer, offset, server time in ns, kind; its checksum follows
_CHECKSUM: Final = Struct("<L")
_SLOT: Final = _ENTRY.size + _CHECKSUM.size
_MAGIC: Final = b"LNCOFFS1".ljust(_ENTRY.size, b"\0")
_COMMIT: Final = 1
_DELETED: Final = 2
_DAY_NS: Final = 24 * 3600 * 1_000_000_000
_SLACK: Final = 1024
"""Entries out of date that are kept beside as many as are in use."""
_MAX_SIZE: Final = 64 * 1024 * 1024


class Commit(NamedTuple):
    """What a consumer committed last.

    Attributes:
        offset: how far it is.
        time_ns: the server's time of the commit, in nanoseconds.
    """

    offset: int
    time_ns: int


class ConsumerOffsets:
    """What each consumer has committed. Commits that arrive during a write share the next one.

    Args:
        storage: the backend.
        scheduler: where writes run.
        folder: the topic's folder.
        limit: most consumers that may commit.
        clock: the server's wall clock in nanoseconds.

    Attributes:
        closed: why they can be neither read nor changed now, or None.
    """

    def __init__(
        self,
        storage: StorageBackend,
        scheduler: Scheduler,
        folder: Path,
        *,
        limit: int = 10_000,
        clock: Clock = time.time_ns,
    ) -> None:
        self._storage = storage
        self._scheduler = scheduler
        self._folder = folder
        self._path = folder / FILE_NAME
        self._limit = limit
        self._clock = clock
        self._committed: dict[int, Commit] = {}
        self._connected: Counter[int] = Counter()
        self._slots = 0
        self._is_sound = False
        """Whether the file holds exactly what memory has, so that it may be appended to."""
        self._next: dict[int, Commit | None] = {}
        self._under_way: Mapping[int, Commit | None] = {}
        self._waiting: Completion[None] | None = None
        self._writing = False
        self.closed: str | None = None

    def __repr__(self) -> str:
        return f"<ConsumerOffsets {len(self._committed)} of at most {self._limit} consumers>"

    # Reading -----------------------------------------------------------------------------------

    def load(self) -> str | None:
        """Read the file; return what was wrong with it.

        Raises:
            DataDirError: it cannot be used.
            DecodeError: a field is not what it should be.
        """
        try:
            data = read_file(self._storage, self._path, _MAX_SIZE)
        except FileNotFoundError:
            return self._load_first()
        except ValueError as error:
            raise DataDirError(f"{self._path}: {error}") from error
        found = _decode(data)
        if found is None:
            raise DataDirError(f"{self._path} does not begin as a log of commits")
        self._committed, self._slots, problem = found
        self._is_sound = self._slots * _SLOT + _SLOT == len(data) and self._is_durable()
        return None if problem is None else f"{self._path}: {problem}"

    def _is_durable(self) -> bool:
        """Make durable what is about to be believed: a kill may have left it in memory only."""
        try:
            fd = self._storage.open(self._path)
            try:
                self._storage.sync(fd)
            finally:
                self._storage.close(fd)
        except OSError:
            return False  # the next commit writes it again
        return True

    def _load_first(self) -> str | None:
        """Read what the first release wrote."""
        path = self._folder / FIRST_FILE_NAME
        document = load_document(self._storage, path)
        if document is None:
            return None
        offsets = document.body.get("offsets")
        if not isinstance(offsets, dict) or not all(key.isdecimal() for key in offsets):
            shown = repr(offsets)[:80]
            raise DecodeError(FIRST_FILE_NAME, "offsets", 0, "offsets by consumer id", shown)
        now = self._clock()
        self._committed = {
            int(key): Commit(take_int(offsets, key, FIRST_FILE_NAME), now) for key in offsets
        }
        return document.problem

    def committed(self, consumer_id: int) -> int | None:
        """Return what a consumer committed last, or None.

        Raises:
            Refusal: it cannot be known now.
        """
        self._check_open()
        found = self._committed.get(consumer_id)
        return None if found is None else found.offset

    def offsets(self) -> dict[int, int]:
        """Return what each consumer committed last."""
        return {key: commit.offset for key, commit in self._committed.items()}

    def commits(self) -> dict[int, Commit]:
        """Return what each consumer committed last, and when."""
        return dict(self._committed)

    # Who is there ------------------------------------------------------------------------------

    def connect(self, consumer_id: int) -> None:
        """Note that a consumer uses a connection: its commit does not expire."""
        self._connected[consumer_id] += 1

    def is_connected(self, consumer_id: int) -> bool:
        """Return whether a consumer uses a connection now."""
        return consumer_id in self._connected

    def disconnect(self, consumer_id: int) -> None:
        """Note that it left; its commit is kept for the full time from now on."""
        self._connected[consumer_id] -= 1
        if self._connected[consumer_id] <= 0:
            del self._connected[consumer_id]
            if self.closed is None:
                self._renew([consumer_id])

    def _renew(self, consumers: Iterable[int]) -> None:
        """Record that commits are of today, durably, where they are not."""
        now = self._clock()
        for key in consumers:
            commit = self._committed.get(key)
            known = key in self._next or key in self._under_way
            if commit is not None and commit.time_ns < now - _DAY_NS and not known:
                self._change(key, Commit(commit.offset, now))

    # Changing ----------------------------------------------------------------------------------

    def commit(self, consumer_id: int, offset: int) -> Completion[None]:
        """Note an offset; the outcome is settled when it is durable.

        Raises:
            Refusal: too many consumers have committed, or nothing can be committed now.
        """
        self._check_open()
        if consumer_id not in self._committed and self._is_full(consumer_id):
            raise Refusal(
                ErrorCode.UNKNOWN_ERROR,
                f"{self._limit} consumers have committed offsets to this topic, which is the "
                "limit; delete some that are no longer used",
            )
        return self._change(consumer_id, Commit(offset, self._clock()))

    def _check_open(self) -> None:
        if self.closed is not None:
            raise Refusal(
                ErrorCode.BACKPRESSURE,
                "Nothing was stored: what consumers committed to this topic cannot be read or "
                f"changed: {self.closed}. This is tried again until the disk allows it.",
                text=f"I/O error: {self.closed}",
            )

    def _is_full(self, consumer_id: int) -> bool:
        """Whether a consumer that has no commit may not have one, counting what is under way."""
        known = self._committed.keys() | self._next.keys() | self._under_way.keys()
        return len(known) >= self._limit and consumer_id not in known

    def delete(self, consumer_id: int) -> Completion[None]:
        """Forget a consumer's commit; the outcome is settled when that is durable.

        Raises:
            KeyError: it has committed nothing.
            Refusal: nothing can be deleted now.
        """
        self._check_open()
        if consumer_id not in self._committed:
            raise KeyError(consumer_id)
        return self._change(consumer_id, None)

    def expire(self, before_ns: int) -> int:
        """Delete commits that are older than a time; return how many.

        A consumer that is connected keeps its commit, however old it is. That it is connected is
        recorded once a day, so that it outlives a crash.
        """
        if self.closed is not None:
            return 0
        self._renew(list(self._connected))
        kept = self._connected.keys() | self._next.keys() | self._under_way.keys()
        old = [
            key
            for key, commit in self._committed.items()
            if commit.time_ns < before_ns and key not in kept
        ]
        for key in old:
            self._change(key, None)
        return len(old)

    def _change(self, consumer_id: int, commit: Commit | None) -> Completion[None]:
        outcome = self._waiting
        if outcome is None:
            outcome = self._waiting = Completion()
        self._next[consumer_id] = commit
        if not self._writing:
            self._writing = True
            self._scheduler.call_soon(self._begin)  # after all that has arrived by now
        return outcome

    def _begin(self) -> None:
        assert self._waiting is not None, "a write has someone waiting for it"
        changes = self._under_way = self._next
        self._next = {}
        outcome, self._waiting = self._waiting, None
        written = self._scheduler.run("meta", lambda: self._write(changes))
        written.wake(lambda: self._written(changes, written, outcome))

    def _written(
        self,
        changes: Mapping[int, Commit | None],
        written: Completion[None],
        outcome: Completion[None],
    ) -> None:
        self._writing, self._under_way = False, {}
        if written.error is None:
            self._committed = _changed(self._committed, changes)
        if self._waiting is not None:
            self._writing = True
            self._begin()
        if written.error is None:
            outcome.settle(None)
        else:
            outcome.fail(_as_refusal(written.error))

    # On a worker: one write at a time, and memory does not change meanwhile ----------------------

    def _write(self, changes: Mapping[int, Commit | None]) -> None:
        out_of_date = self._slots - len(self._committed)
        if not self._is_sound or out_of_date > len(self._committed) + _SLACK:
            self._replace(_changed(self._committed, changes))
            return
        data = b"".join(_encode(key, commit) for key, commit in changes.items())
        fd = self._storage.open(self._path)
        try:
            self._append(fd, data)
        finally:
            self._storage.close(fd)
        self._slots += len(changes)

    def _append(self, fd: int, data: bytes) -> None:
        """Write entries after the others, or take them back.

        Raises:
            UndecidedError: it could not be taken back either.
            OSError: nothing was committed.
        """
        size = _SLOT + self._slots * _SLOT
        try:
            self._storage.write(fd, data, size)
            self._storage.sync(fd)
        except OSError as error:
            self._is_sound = False  # a failed sync may have lost pages: all is written again
            try:
                self._storage.truncate(fd, size)
                self._storage.sync(fd)
            except OSError:
                raise UndecidedError.after(error) from error
            raise

    def _replace(self, committed: Mapping[int, Commit]) -> None:
        """Write everything again; the first time the first release's files go."""
        self._is_sound = False
        replace_file(self._storage, self._path, encode_commits(committed))
        self._slots, self._is_sound = len(committed), True
        first = self._folder / FIRST_FILE_NAME
        for old in (first, backup_of(first)):
            _remove(self._storage.remove, old)


def encode_commits(committed: Mapping[int, Commit]) -> bytes:
    """Return a file with what consumers have committed, by their ids."""
    entries = [_encode(key, commit) for key, commit in committed.items()]
    return _sealed(_MAGIC) + b"".join(entries)


def _changed(
    committed: Mapping[int, Commit], changes: Mapping[int, Commit | None]
) -> dict[int, Commit]:
    merged = {**committed, **changes}
    return {key: commit for key, commit in merged.items() if commit is not None}


def _sealed(entry: bytes) -> bytes:
    return entry + _CHECKSUM.pack(CRC32C(entry))


def _encode(consumer_id: int, commit: Commit | None) -> bytes:
    if commit is None:
        return _sealed(_ENTRY.pack(consumer_id, 0, 0, _DELETED))
    return _sealed(_ENTRY.pack(consumer_id, commit.offset, commit.time_ns, _COMMIT))


def _decode(data: bytes) -> tuple[dict[int, Commit], int, str | None] | None:
    """Return commits, entries up to the last valid one, and what is wrong among those."""
    if data[:_SLOT] != _sealed(_MAGIC):
        return None
    committed: dict[int, Commit] = {}
    slots = damaged = bad = 0
    for number, start in enumerate(range(_SLOT, len(data) - _SLOT + 1, _SLOT), 1):
        entry = data[start : start + _ENTRY.size]
        if data[start : start + _SLOT] != _sealed(entry):
            bad += 1
            continue
        slots, damaged = number, bad
        consumer_id, offset, time_ns, kind = _ENTRY.unpack(entry)
        if kind == _COMMIT:
            committed[consumer_id] = Commit(offset, time_ns)
        else:
            committed.pop(consumer_id, None)
    problem = f"{damaged} commits are damaged; earlier ones count" if damaged else None
    return committed, slots, problem


def _remove(remove: Callable[[Path], None], path: Path) -> None:
    """Remove what the log stands for now; what stays is never read while there is a log."""
    try:
        remove(path)
    except OSError:
        return


def _as_refusal(error: Exception) -> Exception:
    if isinstance(error, UndecidedError):
        reason = error.strerror or str(error)
        return Refusal(
            ErrorCode.STORAGE_ERROR,
            f"The server's disk failed: {reason}. Whether the offset is committed is not known.",
            text=f"I/O error: {reason}",
        )
    return storage_refusal(error) if isinstance(error, OSError) else error
