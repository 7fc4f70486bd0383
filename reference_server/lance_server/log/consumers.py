"""Committed consumer offsets of one topic, durable (LWP section 5.14, AMB-36)."""

from pathlib import Path
from typing import Any, Final

from lance_server.log.documents import load_document
from lance_server.log.saving import Saver
from lance_server.outcome import Outcome
from lance_server.refusals import Refusal, storage_refusal
from lance_server.scheduling import Scheduler
from lance_server.storage.contract import StorageBackend
from lance_spec.bodies import take_int
from lance_spec.enums import ErrorCode
from lance_spec.errors import DecodeError

FILE_NAME: Final = "consumers.json"


class ConsumerOffsets:
    """What each consumer has committed. Commits that arrive during a save share the next one.

    Args:
        storage: the backend.
        scheduler: where saves run.
        folder: the topic's folder.
        limit: most consumers that may commit.
    """

    def __init__(
        self, storage: StorageBackend, scheduler: Scheduler, folder: Path, *, limit: int = 10_000
    ) -> None:
        self._storage = storage
        self._path = folder / FILE_NAME
        self._limit = limit
        self._committed: dict[int, int] = {}
        self._wanted: dict[int, int] = {}
        """What waits for a save to begin."""
        self._saving: dict[int, int] = {}
        """What the save that runs makes durable."""
        self._saver = Saver(
            storage, scheduler, self._path, self._body, _as_refusal, on_end=self._saved
        )

    def __repr__(self) -> str:
        return f"<ConsumerOffsets {len(self._committed)} of at most {self._limit} consumers>"

    def load(self) -> str | None:
        """Read the file; return what was wrong with one of its copies.

        Raises:
            DataDirError: neither copy can be used.
            DecodeError: a field is not what it should be.
        """
        document = load_document(self._storage, self._path)
        if document is None:
            return None
        offsets = document.body.get("offsets")
        if not isinstance(offsets, dict) or not all(key.isdecimal() for key in offsets):
            raise DecodeError(FILE_NAME, "offsets", 0, "offsets by consumer id", repr(offsets)[:80])
        self._committed = {int(key): take_int(offsets, key, FILE_NAME) for key in offsets}
        return document.problem

    def committed(self, consumer_id: int) -> int | None:
        """Return what a consumer committed last, or None."""
        return self._committed.get(consumer_id)

    def offsets(self) -> dict[int, int]:
        """Return what each consumer committed last."""
        return dict(self._committed)

    def commit(self, consumer_id: int, offset: int) -> Outcome[None]:
        """Note an offset; the outcome is settled when it is durable.

        Raises:
            Refusal: too many consumers have committed.
        """
        known = self._committed.keys() | self._wanted.keys() | self._saving.keys()
        if consumer_id not in known and len(known) >= self._limit:
            raise Refusal(
                ErrorCode.UNKNOWN_ERROR,
                f"{self._limit} consumers have committed offsets to this topic; that is the limit",
            )
        self._wanted[consumer_id] = offset
        return self._saver.save()

    def _body(self) -> dict[str, Any]:
        """Return what the save that begins now is to write."""
        self._saving, self._wanted = self._wanted, {}
        offsets = {**self._committed, **self._saving}
        return {"offsets": {str(key): value for key, value in offsets.items()}}

    def _saved(self, succeeded: bool) -> None:
        if succeeded:
            self._committed.update(self._saving)
        self._saving = {}


def _as_refusal(error: Exception) -> Exception:
    return storage_refusal(error) if isinstance(error, OSError) else error
