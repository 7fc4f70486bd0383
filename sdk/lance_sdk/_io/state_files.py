"""Small files that are replaced as a whole: what a bridge, a replay or a consumer has done."""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from lance_sdk._io import platform


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
