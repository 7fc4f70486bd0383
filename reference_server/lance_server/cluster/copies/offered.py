"""Copies that a node offers to others: a snapshot within its directory, handed out in pieces.

One copy is offered at a time. While it is, the node tells the others that it has made no more
durable than the copy holds, so that the log keeps what a node needs that starts on it.
"""

import os
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from lance_server.cluster.applying.mark import FOLDER
from lance_server.cluster.copies.snapshot import NodeSnapshotWriter
from lance_server.cluster.node import ClusterNode
from lance_server.errors import ConfigError
from lance_server.log.copies import CopyGoneError, CopyOffers, Offer
from lance_server.log.snapshot import LinkFile
from lance_server.runtime.completion import Completion
from lance_server.runtime.scheduling import Scheduler
from lance_server.storage.contract import StorageBackend, opened, read_at
from lance_server.storage.pwritev import PwritevStorage

COPIES_FOLDER: Final = "copies"
"""The folder of copies that are offered, within the data directory."""
SEGMENTS: Final = "segments"
MAX_PIECE: Final = 1024 * 1024
"""Bytes of the largest piece."""
_KEPT_SECONDS: Final = 60.0
"""Seconds for which a copy is kept after it was last asked for."""


class OfferedCopies(CopyOffers):
    """Offers copies of a node. Belongs to the event loop's thread.

    Args:
        node: the node.
        data_dir: its data directory.
        storage: its backend.
        scheduler: where work runs.
        now: the loop's time in seconds.
        copies: the backend for the copies; None for the system's files.
        link: gives a file a second name.
    """

    def __init__(
        self,
        node: ClusterNode,
        data_dir: Path,
        storage: StorageBackend,
        scheduler: Scheduler,
        *,
        now: Callable[[], float],
        copies: StorageBackend | None = None,
        link: LinkFile = os.link,
    ) -> None:
        self._node = node
        self._data_dir = data_dir
        self._folder = data_dir / COPIES_FOLDER
        self._source = storage
        self._copies = copies or PwritevStorage()
        self._link = link
        self._scheduler = scheduler
        self._now = now
        self._offer: Offer | None = None
        self._making: Completion[Offer] | None = None
        self._used = 0.0

    def __repr__(self) -> str:
        return f"<OfferedCopies of {self._data_dir}: {self._offer and self._offer.id}>"

    def take(self) -> Completion[Offer]:
        """Make a copy and offer it; the outcome fails where the node or its disk refuses.

        Raises:
            ConfigError: another one is offered, and was asked for lately.
        """
        if self._making is not None or (self._offer is not None and not self._is_idle()):
            raise ConfigError(
                "this node hands out a copy already; repeat the command when that is done, or "
                f"{_KEPT_SECONDS:g} s after it was given up"
            )
        self._used = self._now()
        self._offer = None
        self._node.hold_durable()
        outcome = self._making = Completion()
        outcome.wake(self._note_made)
        cleared = self._scheduler.run("meta", self._prepare)
        cleared.wake(lambda: self._hold(cleared, outcome))
        return outcome

    def _is_idle(self) -> bool:
        return self._now() - self._used >= _KEPT_SECONDS

    def _clear(self) -> None:
        """Remove copies that were given up."""
        remove_copies(self._copies, self._data_dir)

    def _prepare(self) -> None:
        self._clear()
        self._copies.make_dir(self._folder)

    def _hold(self, cleared: Completion[None], outcome: Completion[Offer]) -> None:
        if cleared.error is not None:
            outcome.fail(cleared.error)
            return
        target = self._folder / secrets.token_hex(8)
        writer = NodeSnapshotWriter(self._source, self._data_dir, self._copies, target, self._link)
        held = self._node.at_mark(writer.hold)
        held.wake(lambda: self._copy(writer, target, held.error, outcome))

    def _copy(
        self,
        writer: NodeSnapshotWriter,
        target: Path,
        error: Exception | None,
        outcome: Completion[Offer],
    ) -> None:
        def work() -> Offer:
            try:
                writer.finish()
            except OSError:
                writer.give_up()
                raise
            files = dict(_files_of(self._copies, target, ""))
            return Offer(target.name, self._node.replica.identity, files)

        if error is not None:
            self._give_up(writer, error, outcome)
            return
        done = self._scheduler.run("meta", work)
        done.wake(lambda: outcome.fail(done.error) if done.error else outcome.settle(done.result()))

    def _give_up(
        self, writer: NodeSnapshotWriter, error: Exception, outcome: Completion[Offer]
    ) -> None:
        """Close what is held of a copy that cannot be made."""
        removed = self._scheduler.run("meta", writer.give_up if writer.begun else lambda: None)
        removed.wake(lambda: outcome.fail(error))

    def _note_made(self) -> None:
        made, self._making = self._making, None
        assert made is not None, "it was being made"
        self._used = self._now()
        if made.error is None:
            self._offer = made.result()
        self._scheduler.call_later(_KEPT_SECONDS, self._expire)

    def _expire(self) -> None:
        """Remove the copy, and let the log drop what it needs, once nobody asks any more."""
        if self._making is not None:
            return
        if not self._is_idle():
            self._scheduler.call_later(_KEPT_SECONDS, self._expire)
            return
        self._node.release_durable()
        self._offer = None
        self._scheduler.run("meta", self._clear)

    def piece(self, copy: str, name: str, start: int, size: int) -> Completion[bytes]:
        """Read a piece of a file; fewer bytes come at its end.

        Raises:
            CopyGoneError: there is no such copy any more, or no such file.
        """
        offer = self._offer
        if offer is None or offer.id != copy or name not in offer.files:
            raise CopyGoneError("the copy is not offered any more; repeat the command")
        self._used = self._now()
        path, most = self._folder / copy / name, min(size, MAX_PIECE)

        def work() -> bytes:
            with opened(self._copies, path) as fd:
                return bytes(read_at(self._copies, fd, most, start))

        return self._scheduler.run("meta", work)

    def end(self, copy: str) -> None:
        """Remove a copy that nobody needs any more; the log keeps for a while what follows it."""
        if self._offer is not None and self._offer.id == copy:
            self._used = self._now()
            self._offer = None
            self._scheduler.run("meta", self._clear)


def is_folder(name: str) -> bool:
    """Whether a name in a copy is that of a folder."""
    return name in {SEGMENTS, FOLDER} or name.isdecimal()


def _files_of(storage: StorageBackend, folder: Path, prefix: str) -> Iterator[tuple[str, int]]:
    """Yield path and size of the files below a folder."""
    for name in sorted(storage.list_dir(folder)):
        if is_folder(name):
            yield from _files_of(storage, folder / name, f"{prefix}{name}/")
            continue
        with opened(storage, folder / name) as fd:
            yield prefix + name, storage.size(fd)


def remove_copies(storage: StorageBackend, data_dir: Path) -> None:
    """Remove the copies in a data directory, those that an earlier process left among them.

    Raises:
        OSError: the disk refused.
    """
    if COPIES_FOLDER in storage.list_dir(data_dir):
        _remove_copy(storage, data_dir / COPIES_FOLDER)


def _remove_copy(storage: StorageBackend, folder: Path) -> None:
    for name in storage.list_dir(folder):
        if is_folder(name) or folder.name == COPIES_FOLDER:
            _remove_copy(storage, folder / name)
        else:
            storage.remove(folder / name)
    storage.remove(folder)
