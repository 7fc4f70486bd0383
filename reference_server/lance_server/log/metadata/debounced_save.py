"""Saving a document that changes often: changes that arrive during a save share the next one."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from lance_server.log.metadata.checksummed_file import save_document
from lance_server.runtime.completion import Completion
from lance_server.runtime.scheduling import Scheduler
from lance_server.storage.contract import StorageBackend


class DebouncedSave:
    """Saves one document, durably, never twice at once. Belongs to the event loop's thread.

    Args:
        storage: the backend.
        scheduler: where saves run.
        path: the document.
        body: returns its content as it is now.
        as_error: turns what the disk raised into what whoever waits is to get.
        on_end: called after each save, before anyone is woken, with whether it succeeded.
    """

    def __init__(
        self,
        storage: StorageBackend,
        scheduler: Scheduler,
        path: Path,
        body: Callable[[], Mapping[str, Any]],
        as_error: Callable[[Exception], Exception] = lambda error: error,
        *,
        on_end: Callable[[bool], None] = lambda _: None,
    ) -> None:
        self._storage = storage
        self._scheduler = scheduler
        self._path = path
        self._body = body
        self._as_error = as_error
        self._on_end = on_end
        self._waiting: Completion[None] | None = None
        self._saving = False

    def __repr__(self) -> str:
        return f"<DebouncedSave of {self._path} saving={self._saving}>"

    def save(self) -> Completion[None]:
        """Return an outcome that is settled when what there is now is durable."""
        outcome = self._waiting
        if outcome is None:
            outcome = self._waiting = Completion()
        if not self._saving:
            self._begin()
        return outcome

    def _begin(self) -> None:
        assert self._waiting is not None, "a save has someone waiting for it"
        outcome, self._waiting = self._waiting, None
        self._saving = True
        body = self._body()
        saved = self._scheduler.run("meta", lambda: save_document(self._storage, self._path, body))
        saved.wake(lambda: self._saved(saved, outcome))

    def _saved(self, saved: Completion[None], outcome: Completion[None]) -> None:
        self._saving = False
        self._on_end(saved.error is None)
        if saved.error is not None:
            outcome.fail(self._as_error(saved.error))
        else:
            outcome.settle(None)
        if self._waiting is not None and not self._saving:
            self._begin()
