"""A topic's `metadata.json`: who it is, and where its segments begin (LWP section 6.2)."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

from lance_server.errors import DataDirError
from lance_server.log.documents import Document, load_document, save_document
from lance_server.storage.contract import StorageBackend
from lance_spec.bodies import take_int, take_str
from lance_spec.errors import DecodeError

FILE_NAME: Final = "metadata.json"


@dataclass(frozen=True, slots=True)
class Identity:
    """What makes a topic that topic (AMB-30).

    Attributes:
        id: its number, never given to another topic.
        name: its name, in Unicode NFC.
        created_at: seconds since the Unix epoch.
        epoch: rises with each creation of the same name, from 1.
    """

    id: int
    name: str
    created_at: int
    epoch: int


@dataclass(frozen=True, slots=True)
class Retention:
    """How much of a topic is kept; 0 means no limit (AMB-08).

    Attributes:
        max_age_secs: by age, in seconds.
        max_bytes: by size, in bytes.
    """

    max_age_secs: int = 0
    max_bytes: int = 0


class TopicFile:
    """The metadata of one topic, in memory and on disk.

    The sidecars say where segments begin, too; what stands here replaces a damaged header, and
    `next_offset` keeps retired offsets retired when no byte is left that shows them (AMB-29).
    """

    def __init__(
        self,
        storage: StorageBackend,
        folder: Path,
        identity: Identity,
        retention: Retention | None = None,
    ) -> None:
        self._storage = storage
        self._lock = threading.Lock()
        self.folder = folder
        self.identity = identity
        self.retention = retention or Retention()
        self.next_offset = 0
        self.bases: dict[str, int] = {}

    def __repr__(self) -> str:
        return f"<TopicFile {self.identity} next_offset={self.next_offset}>"

    @classmethod
    def load(cls, storage: StorageBackend, folder: Path) -> tuple[Self, str | None] | None:
        """Return what is on disk and what was wrong with it; None when there is no such file.

        Raises:
            DataDirError: neither copy can be used.
        """
        document = load_document(storage, folder / FILE_NAME)
        if document is None:
            return None
        try:
            return cls._from_document(storage, folder, document), document.problem
        except DecodeError as error:
            raise DataDirError(f"{folder / FILE_NAME}: {error}") from None

    @classmethod
    def _from_document(cls, storage: StorageBackend, folder: Path, document: Document) -> Self:
        body, kind = document.body, FILE_NAME
        retention, log = _part(body, "retention"), _part(body, "log")
        identity = Identity(
            take_int(body, "id", kind, 2**32),
            take_str(body, "name", kind),
            take_int(body, "created_at", kind),
            take_int(body, "topic_epoch", kind),
        )
        limits = [take_int(retention, name, kind) for name in ("max_age_secs", "max_bytes")]
        found = cls(storage, folder, identity, Retention(*limits))
        found.next_offset = take_int(log, "next_offset", kind)
        bases = _part(log, "bases")
        found.bases = {key: take_int(bases, key, kind) for key in bases}
        return found

    def save(self) -> None:
        """Write it, durably.

        Raises:
            OSError: the disk refused; what was on disk still is.
        """
        with self._lock:
            self._save()

    def set_retention(self, retention: Retention) -> None:
        """Change the retention policy, durably."""
        with self._lock:
            before, self.retention = self.retention, retention
            try:
                self._save()
            except OSError:
                self.retention = before
                raise

    def add_base(self, key: str, base_offset: int) -> None:
        """Note, durably, where a new segment begins."""
        with self._lock:
            self.bases[key] = base_offset
            self._save()

    def drop_bases(self, keep: set[str]) -> None:
        """Forget all segments but those in ``keep``, at the next save."""
        with self._lock:
            self.bases = {key: base for key, base in self.bases.items() if key in keep}

    def _save(self) -> None:
        save_document(self._storage, self.folder / FILE_NAME, self._body())

    def _body(self) -> dict[str, Any]:
        return {
            "id": self.identity.id,
            "name": self.identity.name,
            "created_at": self.identity.created_at,
            "topic_epoch": self.identity.epoch,
            "retention": {
                "max_age_secs": self.retention.max_age_secs,
                "max_bytes": self.retention.max_bytes,
            },
            "log": {"next_offset": self.next_offset, "bases": self.bases},
        }


def _part(body: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = body.get(name)
    if not isinstance(part, dict):
        raise DecodeError(FILE_NAME, name, 0, "an object", repr(part)[:80])
    return part
