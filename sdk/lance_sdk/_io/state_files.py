"""Small files that are replaced as a whole: what a bridge, a replay or a consumer has done."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from lance_sdk._io import platform
from lance_sdk.errors import ConfigError


@contextmanager
def held(path: Path, user: str) -> Iterator[None]:
    """Hold the lock beside a state file, ``FILE.lock``; it ends with the process at the latest.

    Args:
        path: the state file; it need not exist.
        user: what uses it, for the error.

    Raises:
        ConfigError: another process holds it, or it cannot be written.
    """
    lock = path.with_name(f"{path.name}.lock")
    try:
        file = lock.open("a", encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot write {lock}: {error.strerror}") from error
    with file:
        try:
            platform.lock(file.fileno())
        except BlockingIOError:
            raise ConfigError(f"another {user} uses {path}; end it, or name another file") from None
        yield


def replace_files(contents: Mapping[Path, bytes]) -> None:
    """Replace files of one folder so that a reader finds the old content or the new, durably.

    All are written under other names and synced first; then they get their names, in the order
    of the mapping. After a crash the first ones may be new and the others old.

    Args:
        contents: what each file is to hold; at least one.

    Raises:
        OSError: a file cannot be written; those that have no new content yet keep the old one.
    """
    drafts = {path: path.with_name(f"{path.name}.tmp") for path in contents}
    try:
        for path, data in contents.items():
            with drafts[path].open("wb") as file:
                file.write(data)
                file.flush()
                platform.sync(file.fileno())
        for path, draft in drafts.items():
            draft.replace(path)
    except OSError:
        for draft in drafts.values():
            with suppress(OSError):
                draft.unlink()
        raise
    platform.sync_folder(next(iter(contents)).parent)
