"""Opening a data directory: the clean marker, the catalog, and each topic's recovery."""

import contextlib
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from lance_server.errors import DataDirError
from lance_server.log.dedup import DuplicateWindow, WindowLimits, is_lasting
from lance_server.log.disk_reserve import DiskReserve
from lance_server.log.metadata.catalog import DELETED_PREFIX, TopicIdAllocator
from lance_server.log.metadata.checksummed_file import backup_of, load_document, save_document
from lance_server.log.metadata.topic_file import FILE_NAME, StoredIdentity, TopicFile
from lance_server.log.recovery.recovery_report import Finding, Quarantine, RecoveryReport
from lance_server.log.recovery.topic_recovery import TopicLog, TopicRecovery
from lance_server.log.retention.expiry_clock import FILE_NAME as CLOCK_FILE
from lance_server.log.retention.expiry_clock import ExpiryClock
from lance_server.log.retention.rules import window_files
from lance_server.log.segments.segment_files import DATA_SUFFIX, Segment
from lance_server.log.segments.sidecar import meta_of
from lance_server.log.segments.sidecar_scan import count_entries, read_entries
from lance_server.storage.contract import StorageBackend, remove_folder
from lance_spec.codec.ingest_runs import BatchTable
from lance_spec.errors import DecodeError
from lance_spec.limits import DEFAULT_TOPIC_ID
from lance_spec.messages.engine import SidecarEntry

_log = logging.getLogger(__name__)
CLUSTER_FOLDER: Final = "cluster"
"""A folder that only the directory of a cluster's node has."""
CLEAN_MARKER: Final = "clean.json"
"""The file that a clean stop of a single server leaves."""
_NANOSECONDS: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Opened:
    """A topic as it was found.

    Attributes:
        file: its metadata.
        log: its segments.
        window: its duplicate window.
        problem: why it could not be settled, and cannot be written to; None when it could.
    """

    file: TopicFile
    log: TopicLog
    window: DuplicateWindow
    problem: str | None = None

    @classmethod
    def empty(cls, file: TopicFile, limits: WindowLimits) -> Self:
        """Return a topic that was just created."""
        return cls(file, TopicLog([], 0, 0), DuplicateWindow(limits))


def save_clean_marker(storage: StorageBackend, data_dir: Path, ends: dict[str, int]) -> None:
    """Record that everything was closed, and where each topic's last segment ends."""
    save_document(storage, data_dir / CLEAN_MARKER, {"ends": ends})


class LogOpener:
    """Opens everything in a data directory.

    Args:
        data_dir: the directory; created when it is not there.
        storage: the backend.
        catalog: filled from its file.
        limits: the size of the duplicate windows.
        report: takes the findings.
        reserve: given up where a topic cannot be settled without room.
        clock: the server's time in nanoseconds.
        expiry: whether that may be believed when something is to expire.

    Attributes:
        unavailable: why topics that are there cannot be served, by id.
        refused: why the disk let others not even be looked at, by id; `open_topic` tries again.
    """

    def __init__(
        self,
        data_dir: Path,
        storage: StorageBackend,
        catalog: TopicIdAllocator,
        *,
        limits: WindowLimits,
        report: RecoveryReport,
        reserve: DiskReserve,
        clock: Callable[[], int],
        expiry: ExpiryClock,
    ) -> None:
        self._data_dir = data_dir
        self._folder = data_dir / "segments"
        self._storage = storage
        self._catalog = catalog
        self._limits = limits
        self._report = report
        self._reserve = reserve
        self._clock = clock
        self._expiry = expiry
        self._quarantine = Quarantine(storage, data_dir / "quarantine")
        self._ends: dict[str, int] = {}
        self.unavailable: dict[int, str] = {}
        self.refused: dict[int, str] = {}

    def open(self) -> Iterator[Opened]:
        """Yield every topic that can be served, the default topic among them.

        A topic that the disk refuses to settle is yielded with its problem: it can be read.

        Raises:
            DataDirError: the catalog cannot be used, or a cluster's node has the directory.
            OSError: the disk refused what all topics need.
        """
        self._storage.make_dir(self._data_dir)
        if CLUSTER_FOLDER in self._storage.list_dir(self._data_dir):
            raise DataDirError(
                f"{self._data_dir} is the directory of a node of a cluster: what a single server "
                "writes to it would be lost"
            )
        self._storage.make_dir(self._folder)
        self._ends = self._take_clean_marker()
        self._storage.sync_dir(self._folder)  # names that are adopted must last
        if problem := self._expiry.load():
            self._note("repaired", None, self._data_dir / CLOCK_FILE, problem)
        self._load_catalog()
        folders = self._topic_folders()
        self._catalog.reserve_above(iter(folders))
        for topic_id, folder in folders.items():
            opened = self._open_or_look(topic_id, folder)
            if opened is not None:
                yield opened
        if DEFAULT_TOPIC_ID not in folders:
            yield self._make_default_topic()

    def _open_or_look(self, topic_id: int, folder: Path) -> Opened | None:
        """Open a topic; where the disk refuses, return what can be read of it."""
        problem = ""
        try:
            try:
                return self._reserve.with_room(lambda: self.open_topic(topic_id))
            except OSError as error:
                problem = str(error)
                self._note("unsettled topic", topic_id, folder, f"it is tried again: {problem}")
                return self._look(folder, problem)
        except DataDirError as error:
            self.unavailable[topic_id] = str(error)
            self._note("unavailable topic", topic_id, folder / FILE_NAME, str(error))
        except OSError as error:
            self.refused[topic_id] = f"{problem}; and it cannot be read: {error}"
        return None

    def _look(self, folder: Path, problem: str) -> Opened:
        """Return what can be read of a topic that could not be settled; nothing is written."""
        self._storage.settle_folder(folder)  # acknowledged batches may be only there
        loaded = TopicFile.load(self._storage, folder)
        if loaded is None:
            raise OSError(problem)
        file, _ = loaded
        log = TopicRecovery(self._storage, file, self._report, self._quarantine).look()
        return Opened(file, log, DuplicateWindow(self._limits), problem)

    def _take_clean_marker(self) -> dict[str, int]:
        """Return what the last clean stop recorded, and remove the record, durably."""
        path = self._data_dir / CLEAN_MARKER
        copies = {path.name, backup_of(path).name}
        present = copies.intersection(self._storage.list_dir(self._data_dir))
        try:
            document = load_document(self._storage, path) if present else None
        except (DataDirError, OSError) as error:
            document = None
            self._note("ignored file", None, path, str(error))
        for name in sorted(present):
            self._storage.remove(self._data_dir / name)
        self._storage.sync_dir(self._data_dir)
        known = self._storage.list_dir(self._folder) != []
        self._report.clean = document is not None or not known
        ends = document.body.get("ends") if document else {}
        return ends if isinstance(ends, dict) else {}

    def _load_catalog(self) -> None:
        try:
            problem = self._catalog.load()
        except DecodeError as error:
            raise DataDirError(f"{self._folder}: {error}") from None
        if problem:
            self._note("repaired", None, self._folder, problem)
        if problem or self._catalog.has_partitioned:
            with contextlib.suppress(OSError):  # the next change writes it
                self._catalog.save()  # both copies: an older one knows topics as unfinished

    def _remove_unfinished(self, present: Sequence[str]) -> set[str]:
        """Remove what is left of partitioned topics that are not there (AMB-59).

        Returns:
            The folders that could not be removed yet.
        """
        catalog = self._catalog
        kept = [each for each in catalog.creating if str(each) in present and self._keep(each)]
        catalog.delete_unfinished(kept)
        if not catalog.deleting:
            return set()
        going = {str(topic_id) for topic_id in catalog.deleting}.intersection(present)
        try:
            for name in going:
                self._storage.rename(self._folder / name, self._folder / f"{DELETED_PREFIX}{name}")
            self._storage.sync_dir(self._folder)
            catalog.dropped(catalog.deleting)
        except OSError as error:
            self._note("ignored file", None, self._folder, f"removed at the next start: {error}")
        return going

    def _keep(self, topic_id: int) -> bool:
        """Whether a topic that was never finished holds records all the same."""
        folder = self._folder / str(topic_id)
        if self._has_data(folder):
            note = "its partitioned topic was never finished, but it holds records: it is kept"
            self._note("damage", topic_id, folder, note)
            return True
        return False

    def _has_data(self, folder: Path) -> bool:
        return any(name.endswith(DATA_SUFFIX) for name in self._storage.list_dir(folder))

    def _topic_folders(self) -> dict[int, Path]:
        """Return the topics' folders by id; remove what is left of deleted topics."""
        folders: dict[int, Path] = {}
        present = self._storage.list_dir(self._folder)
        left_out = self._remove_unfinished(present)
        for name in self._storage.list_dir(self._folder):
            if name in left_out:
                continue
            if name.startswith(DELETED_PREFIX):
                with contextlib.suppress(OSError):  # the next start goes on
                    remove_folder(self._storage, self._folder / name)
            elif name.isdecimal() and str(int(name)) == name and int(name) < 2**32:
                folders[int(name)] = self._folder / name
        return dict(sorted(folders.items()))

    def open_topic(self, topic_id: int, file: TopicFile | None = None) -> Opened | None:
        """Settle a topic and return it; None for one whose creation was never finished.

        It may be called again until it succeeds (any thread).

        Args:
            topic_id: its number.
            file: its metadata, where that was loaded before; by default it is read.

        Raises:
            DataDirError: its metadata cannot be used.
            OSError: the disk refused.
        """
        folder = self._folder / str(topic_id)
        self._storage.settle_folder(folder)
        if file is None:
            file = self._load_file(topic_id, folder)
        else:
            file.settle()
        if file is None:
            return None
        recovery = TopicRecovery(self._storage, file, self._report, self._quarantine)
        log = recovery.recover(self._ends.get(str(topic_id)))
        return Opened(file, log, self._window(folder, log.segments))

    def _load_file(self, topic_id: int, folder: Path) -> TopicFile | None:
        """Return a topic's metadata; None for a topic whose creation was never finished."""
        loaded = TopicFile.load(self._storage, folder)
        if loaded is None:
            if self._has_data(folder):
                raise DataDirError(f"{folder} holds segments but no {FILE_NAME}; restore it")
            remove_folder(self._storage, folder)
            return None if topic_id != DEFAULT_TOPIC_ID else self._make_default_topic().file
        file, problem = loaded
        if file.identity.id != topic_id:
            raise DataDirError(f"{folder / FILE_NAME} belongs to topic {file.identity.id}")
        if problem:
            self._note("repaired", topic_id, folder / FILE_NAME, problem)
            file.save()
        return file

    def _make_default_topic(self) -> Opened:
        """Create topic 0, which exists without being asked for (LWP section 6.1)."""
        folder = self._folder / str(DEFAULT_TOPIC_ID)
        self._storage.make_dir(folder)
        created_at = self._clock() // _NANOSECONDS
        identity = StoredIdentity(DEFAULT_TOPIC_ID, "default", created_at, 1)
        file = TopicFile(self._storage, folder, identity)
        file.save()
        self._storage.sync_dir(self._folder)
        return Opened.empty(file, self._limits)

    def _window(self, folder: Path, segments: list[Segment]) -> DuplicateWindow:
        """Fill a duplicate window from the newest entries of the sidecars."""
        window = DuplicateWindow(self._limits)
        oldest_ns = 0
        if self._expiry.trusted:
            oldest_ns = self._clock() - self._limits.max_age_secs * _NANOSECONDS
        parts: list[list[SidecarEntry]] = []
        missing = self._limits.entries
        for segment in reversed(segments):
            if missing <= 0 or segment.last_ns < oldest_ns:
                break
            parts.append(self._newest(segment.sidecar_path, missing))
            missing -= len(parts[-1])
        parts += self._older(folder, missing, oldest_ns)
        for part in reversed(parts):
            for entry in part:
                batch = meta_of(entry)
                if is_lasting(batch):
                    window.announce(batch.batch_id)
                    window.update(BatchTable.of((batch,)), entry.server_time_ns)
        return window

    def _older(self, folder: Path, missing: int, oldest_ns: int) -> Iterator[list[SidecarEntry]]:
        """Yield the newest entries of segments that retention dropped."""
        for path in window_files(self._storage, folder):
            entries = self._newest(path, missing)
            if missing <= 0 or not entries or entries[-1].server_time_ns < oldest_ns:
                return
            yield entries
            missing -= len(entries)

    def _newest(self, sidecar: Path, count: int) -> list[SidecarEntry]:
        fd = self._storage.open(sidecar)
        try:
            first = max(0, count_entries(self._storage, fd) - count)
            entries = read_entries(self._storage, fd, first)
            return [entry for entry in entries if entry is not None]
        finally:
            self._storage.close(fd)

    def _note(self, kind: str, topic_id: int | None, path: Path, note: str) -> None:
        self._report.add(Finding(kind, topic_id, path, 0, 0, note))
