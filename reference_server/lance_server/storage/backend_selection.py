"""Which storage backend to use: what is there, and which of it this disk likes better."""

import logging
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from lance_server.errors import ConfigError
from lance_server.storage.contract import StorageBackend, Write, remove_folder
from lance_server.storage.pwritev import PageCacheStorage, PwritevStorage
from lance_server.storage.wal import WalStorage
from lance_server.storage.wal_replay import WalDamage, repeat, with_held
from lance_server.storage.ways import MeasuredWays

_log = logging.getLogger(__name__)
DURABILITIES: Final = ("auto", "fsync", "os", "wal")
"""When a batch counts as durable: on the disk, wherever that is quicker; on the disk where it
belongs; in the system's memory; on the disk, in a write-ahead log if it is small."""
_ROUNDS: Final = 12
_FILES: Final = 4
_TRIAL: Final = ".trial"
_PIECE: Final = 64 * 1024
_TIME: Final = 1.0
"""Seconds after which a trial ends, however few rounds it took."""


def _uring() -> StorageBackend:
    from lance_server.storage.uring.backend import UringStorage  # noqa: PLC0415 - Linux only

    return UringStorage()


_MAKERS: Final[dict[str, Callable[[], StorageBackend]]] = {
    "io_uring": _uring,
    "pwritev2": PwritevStorage,
}
BACKENDS: Final = (*_MAKERS, "auto")
"""What can be asked for."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The backend that is used, and why.

    Attributes:
        storage: the backend.
        rates: bytes a second that each candidate made durable in its trial, by name.
        reason: why, in words.
        repeated: writes that an earlier run left in a write-ahead log, and that were repeated.
        damage: what of an earlier run's write-ahead log is lost.
    """

    storage: StorageBackend
    rates: dict[str, float]
    reason: str
    repeated: int = 0
    damage: tuple[WalDamage, ...] = ()


def open_storage(wanted: str, durability: str, data_dir: Path) -> Choice:
    """Return the backend for a way of being durable.

    Args:
        wanted: one of `BACKENDS`.
        durability: one of `DURABILITIES`.
        data_dir: the data directory; it exists, and nobody else uses it.

    Raises:
        ConfigError: there is no such backend or durability, or this system does not offer it.
        DataDirError: the write-ahead log cannot be trusted.
        OSError: the disk refused.
    """
    if durability not in DURABILITIES:
        known = ", ".join(DURABILITIES)
        raise ConfigError(f"there is no durability '{durability}'; choose one of {known}")
    if durability == "os":
        choice = Choice(PageCacheStorage(), {}, "durability 'os' syncs nothing")
    else:
        choice = choose(wanted, data_dir)
    if durability in ("auto", "wal"):
        measured = durability == "auto"
        ways = MeasuredWays() if measured else None
        log = WalStorage(choice.storage, data_dir, ways=ways, lazy=measured)
        writes, damage, _ = log.replayed
        return replace(choice, storage=log, repeated=writes, damage=damage)
    # An earlier run may have had a write-ahead log.
    replayed = repeat(choice.storage, data_dir)
    storage = with_held(choice.storage, data_dir, replayed)
    return replace(choice, storage=storage, repeated=replayed.writes, damage=replayed.damage)


def choose(wanted: str, data_dir: Path) -> Choice:
    """Return the backend that was asked for, or the faster one on this disk.

    Args:
        wanted: one of `BACKENDS`.
        data_dir: where to try them; it exists.

    Raises:
        ConfigError: there is no such backend, or this system does not offer it.
    """
    if wanted not in BACKENDS:
        raise ConfigError(f"there is no storage '{wanted}'; choose one of {', '.join(BACKENDS)}")
    if wanted != "auto":
        try:
            return Choice(_MAKERS[wanted](), {}, "it was asked for")
        except OSError as error:
            raise ConfigError(
                f"storage '{wanted}' is not available here: {error.strerror}; use 'auto'"
            ) from error
    return _faster(data_dir)


def _faster(data_dir: Path) -> Choice:
    candidates: list[StorageBackend] = []
    missing = ""
    for name, make in _MAKERS.items():
        try:
            candidates.append(make())
        except OSError as error:
            missing = f"{name} is not to be had here ({error.strerror})"
    if len(candidates) == 1:
        return Choice(candidates[0], {}, missing)
    try:
        rates = try_out(candidates, data_dir)
    except OSError as error:  # a full disk, say: it decides about a start no more than a slow one
        used = candidates[-1]
        return Choice(used, {}, f"{used.name}, because the trial failed: {error}")
    best = max(candidates, key=lambda each: rates[each.name])
    figures = ", ".join(f"{name} {rate / 1e6:.0f} MB/s" for name, rate in rates.items())
    return Choice(best, rates, f"the faster one in a trial: {figures}")


def try_out(
    candidates: Sequence[StorageBackend],
    data_dir: Path,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, float]:
    """Commit to a few files with each candidate in turn; return bytes a second by name."""
    folder, storage = data_dir / _TRIAL, candidates[0]
    if _TRIAL in storage.list_dir(data_dir):  # a crash left it
        remove_folder(storage, folder)
    storage.make_dir(folder)
    fds: list[int] = []
    try:
        fds.extend(storage.open(folder / str(number), create=True) for number in range(_FILES))
        return _rates(candidates, fds, clock)
    finally:
        for fd in fds:
            storage.close(fd)
        remove_folder(storage, folder)


def _rates(
    candidates: Sequence[StorageBackend], fds: Sequence[int], clock: Callable[[], float]
) -> dict[str, float]:
    took: dict[str, list[float]] = {each.name: [] for each in candidates}
    data, begun = bytearray(_PIECE), clock()
    for number in range(_ROUNDS):
        if number > 1 and clock() - begun > _TIME:
            break
        for storage in candidates:
            start = clock()
            errors = storage.commit([Write(fd, data, number * _PIECE) for fd in fds])
            took[storage.name].append(clock() - start)
            if error := next(filter(None, errors), None):
                raise error
    total = _PIECE * len(fds)
    return {name: total / max(statistics.median(times), 1e-9) for name, times in took.items()}
