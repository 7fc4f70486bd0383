"""The catalog: which topic ids and names were ever given away (AMB-30, AMB-34)."""

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from lance_server.log.documents import load_document, save_document
from lance_server.runtime.sync import new_lock
from lance_server.storage.contract import StorageBackend
from lance_spec.bodies import take_int
from lance_spec.errors import DecodeError

_log = logging.getLogger(__name__)
FILE_NAME: Final = "catalog.json"
DELETED_PREFIX: Final = ".deleted-"
_MAX_RETIRED_NAMES: Final = 10_000


class Catalog:
    """Hands out topic ids and epochs that were never used before.

    Changes are made and saved by one worker thread at a time.
    """

    def __init__(self, storage: StorageBackend, folder: Path) -> None:
        self._storage = storage
        self._path = folder / FILE_NAME
        self._lock = new_lock()
        self._next_id = 1
        self._epoch_floor = 0
        self._retired: dict[str, int] = {}

    def __repr__(self) -> str:
        return f"<Catalog next_id={self._next_id} retired names={len(self._retired)}>"

    @property
    def next_id(self) -> int:
        """The id that the next topic gets."""
        return self._next_id

    def load(self) -> str | None:
        """Read the file; return what was wrong with one of its copies.

        Raises:
            DataDirError: neither copy can be used.
            DecodeError: a field is missing.
        """
        document = load_document(self._storage, self._path)
        if document is None:
            return None
        body = document.body
        self._next_id = take_int(body, "next_id", FILE_NAME, 2**32)
        self._epoch_floor = take_int(body, "epoch_floor", FILE_NAME)
        retired = body.get("retired_names")
        if not isinstance(retired, dict):
            raise DecodeError(FILE_NAME, "retired_names", 0, "an object", repr(retired)[:80])
        self._retired = {name: take_int(retired, name, FILE_NAME) for name in retired}
        return document.problem

    def reserve_above(self, used: Iterator[int]) -> None:
        """Never hand out an id up to those in use."""
        self._next_id = max([self._next_id, *(topic_id + 1 for topic_id in used)])

    def save(self) -> None:
        """Write it, durably."""
        with self._lock:
            self._save()

    def claim(self, name: str) -> tuple[int, int]:
        """Return a new id and the epoch of a new topic, after both are durable.

        An id is spent even if the topic is never finished.
        """
        with self._lock:
            topic_id, epoch = self._next_id, self._epoch_of(name) + 1
            self._next_id += 1
            self._save()
        return topic_id, epoch

    def retire(self, name: str, epoch: int) -> None:
        """Remember the epoch of a topic that is deleted, durably."""
        with self._lock:
            self._retired.pop(name, None)
            self._retired[name] = epoch
            if len(self._retired) > _MAX_RETIRED_NAMES:
                oldest = next(iter(self._retired))
                self._epoch_floor = max(self._epoch_floor, self._retired.pop(oldest))
            self._save()

    def _epoch_of(self, name: str) -> int:
        return max(self._retired.get(name, 0), self._epoch_floor)

    def _save(self) -> None:
        body: dict[str, Any] = {
            "next_id": self._next_id,
            "epoch_floor": self._epoch_floor,
            "retired_names": self._retired,
        }
        save_document(self._storage, self._path, body)
