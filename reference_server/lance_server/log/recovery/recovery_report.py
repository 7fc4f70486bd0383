"""The findings of a start, and copies of the bytes that were cut away."""

import logging
from collections import Counter
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from lance_server.storage.contract import StorageBackend, opened, read_at

_log = logging.getLogger(__name__)
_COPY_CHUNK: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is not as a clean stop leaves it.

    Attributes:
        kind: ``torn tail``, ``damage``, ``retired hole``, ``lost segment``, ``repaired``,
            ``unavailable topic`` or ``unrepeated write``.
        topic_id: the topic it concerns, or None.
        path: the file it was found in.
        offset: where in the file, in bytes.
        length: how many bytes.
        note: what was done, and where a copy is.
    """

    kind: str
    topic_id: int | None
    path: Path
    offset: int
    length: int
    note: str

    def __str__(self) -> str:
        place = f"{self.path} at byte {self.offset}, {self.length} bytes"
        topic = "" if self.topic_id is None else f"topic {self.topic_id}: "
        return f"{topic}{self.kind} in {place}: {self.note}"


@dataclass(slots=True)
class RecoveryReport:
    """The findings of one start.

    Attributes:
        clean: whether the last stop was a clean one.
        findings: what was found, in the order in which it was.
        batches_checked: batches whose data was compared to its checksum.
    """

    clean: bool = True
    findings: list[Finding] = field(default_factory=list)
    batches_checked: int = 0

    def add(self, finding: Finding) -> None:
        """Keep a finding and log it; one that a repeated attempt finds again is known."""
        if finding in self.findings:
            return
        self.findings.append(finding)
        _log.warning("recovery: %s", finding)

    def __str__(self) -> str:
        stop = "clean stop" if self.clean else "unclean stop"
        kinds = Counter(finding.kind for finding in self.findings)
        found = ", ".join(f"{count} x {kind}" for kind, count in sorted(kinds.items()))
        return f"{stop}, {self.batches_checked} batches checked, findings: {found or 'none'}"


class Quarantine:
    """Keeps a copy of every range before it is cut away.

    Args:
        storage: the backend.
        root: the data directory's ``quarantine`` folder.
    """

    def __init__(self, storage: StorageBackend, root: Path) -> None:
        self._storage = storage
        self._root = root
        self._kept: dict[tuple[Path, int, int], Path] = {}
        """The copies of this run: an attempt that is repeated needs no second one."""

    def keep(self, topic_id: int, source: Path, offset: int, length: int) -> Path:
        """Copy a range of a file, durably, and return where the copy is.

        Raises:
            OSError: the disk refused; nothing of the copy is left.
        """
        folder = self._root / str(topic_id)
        self._storage.make_dir(self._root)
        self._storage.make_dir(folder)
        self._storage.sync_dir(self._root)
        names = set(self._storage.list_dir(folder))
        kept = self._kept.get((source, offset, length))
        if kept is not None and kept.name in names:
            return kept
        target = folder / _free_name(names, f"{source.name}.{offset}-{offset + length}")
        try:
            self._copy(source, offset, length, target)
        except OSError:
            with suppress(OSError):  # or each attempt takes what room there is
                self._storage.remove(target)
            raise
        self._storage.sync_dir(folder)
        self._kept[source, offset, length] = target
        return target

    def _copy(self, source: Path, offset: int, length: int, target: Path) -> None:
        storage = self._storage
        with opened(storage, source) as reading, opened(storage, target, create=True) as writing:
            for done in range(0, length, _COPY_CHUNK):
                chunk = read_at(storage, reading, min(_COPY_CHUNK, length - done), offset + done)
                storage.write(writing, chunk, done)
            storage.sync(writing)


def _free_name(taken: Collection[str], wanted: str) -> str:
    name, number = wanted, 1
    while name in taken:
        name, number = f"{wanted}.{number}", number + 1
    return name
