"""The files of an archive, as Spark's file sink has committed them.

Spark notes each file under its whole path in the folder ``_spark_metadata``, and reads what stands
there. So an archive that was copied or moved would be read at its old place, or not at all: what
counts here is the part of the path that lies in the archive.
"""

import json
import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, unquote, urlsplit

from pyarrow import fs

from lance_sdk._io import platform
from lance_sdk.errors import ConfigError
from lance_sdk.spark.files.storage import Entry, entries, file_system, read_file

METADATA: Final = "_spark_metadata"
_COMPACT: Final = ".compact"
_VERSION: Final = "v1"
_PLAIN: Final = "/=:@!$&'()*+,;~-._"
"""What Java's URIs leave as it is in a path."""
_log = logging.getLogger(__name__)
_LOCK: Final = "_lwp_lock"
_WITHOUT_REPLACING: Final = frozenset({"hdfs", "viewfs"})
"""Where Arrow renames a file to a new name only."""
_MOST: Final = 1 << 30
"""Bytes of one file of the metadata."""


@contextmanager
def locked(archive: str) -> Iterator[None]:
    """Keep other runs out of an archive on a mounted folder; a lock goes with its process.

    Raises:
        ConfigError: another run works on it.
        OSError: the folder cannot be made or written to.
    """
    system, root = file_system(archive)
    if not isinstance(system, fs.LocalFileSystem):
        yield
        return
    Path(root).mkdir(parents=True, exist_ok=True)
    with Path(root, _LOCK).open("wb") as file:
        try:
            platform.lock(file.fileno())
        except BlockingIOError:
            raise ConfigError(
                f"{archive}: another run archives into it or compacts it; wait for its end"
            ) from None
        except OSError as error:
            _log.warning("%s has no locks (%s): let one run at a time work on it", archive, error)
        yield


def moved_files(archive: str) -> list[str] | None:
    """Return the files of an archive that was copied or moved, where it is now.

    Args:
        archive: folder of the archive.

    Returns:
        Their paths; None where Spark finds them itself.

    Raises:
        ConfigError: the notes cannot be read.
        OSError: likewise.
    """
    lines = _noted_lines(archive)
    if all(_is_here(line["path"], archive) for line in lines):
        return None
    return _files_there(lines, archive)


def committed_files(archive: str) -> list[str]:
    """Return the files of an archive that Spark has committed, where they are now.

    Args:
        archive: folder of the archive.

    Raises:
        ConfigError: the notes cannot be read.
        OSError: likewise.
    """
    return _files_there(_noted_lines(archive), archive)


def committed_bytes(archive: str) -> int:
    """Return how large the files of an archive are that Spark has committed, by its notes.

    Args:
        archive: folder of the archive.

    Raises:
        ConfigError: the notes cannot be read.
        OSError: likewise.
    """
    return sum(int(line.get("size", 0)) for line in _noted_lines(archive))


def _noted_lines(archive: str) -> list[dict[str, Any]]:
    return [line for entry in notes_of(archive) for line in noted_files(entry)]


def _files_there(lines: Iterable[Mapping[str, Any]], archive: str) -> list[str]:
    there = {inside(line["path"]): line.get("action") != "delete" for line in lines}
    return [f"{archive.rstrip('/')}/{name}" for name, is_there in there.items() if is_there]


def relocate(archive: str) -> int:
    """Make the notes of an archive that was copied or moved name its files where they are now.

    Args:
        archive: folder of the archive.

    Returns:
        How many files of the notes were changed.

    Raises:
        ConfigError: the notes cannot be read.
        OSError: they cannot be read or written.
    """
    changed = 0
    for entry in notes_of(archive):
        lines = noted_files(entry)
        if not all(_is_here(line["path"], archive) for line in lines):
            moved = [line | {"path": path_in(line["path"], archive)} for line in lines]
            replace_notes(entry, moved)
            changed += 1
    return changed


def notes_of(archive: str) -> list[Entry]:
    """Return the files of the notes that count, in their order: a compact one has all before it."""
    try:
        found = [e for e in entries(f"{archive.rstrip('/')}/{METADATA}") if _number(e) is not None]
    except FileNotFoundError:
        return []
    found.sort(key=lambda entry: (_number(entry), not entry.name.endswith(_COMPACT)))
    compact = [index for index, e in enumerate(found) if e.name.endswith(_COMPACT)]
    return found[compact[-1] :] if compact else found


def _number(entry: Entry) -> int | None:
    name = entry.name.removesuffix(_COMPACT)
    return int(name) if name.isdigit() and not entry.is_folder else None


def noted_files(entry: Entry) -> list[dict[str, Any]]:
    """Return what Spark has noted of each file, in a file of its notes.

    Raises:
        ConfigError: it cannot be read.
    """
    version, *lines = read_file(entry.path, _MOST).decode().split("\n")
    if version != _VERSION:
        raise ConfigError(
            f"{entry.path}: Spark has noted the archive's files in form {version!r} and this "
            f"package reads {_VERSION!r}; use the version of lance-sdk that goes with that Spark"
        )
    try:
        return [
            line | {"path": _text(line["path"])} for line in map(json.loads, filter(None, lines))
        ]
    except (ValueError, KeyError, TypeError) as error:
        raise ConfigError(f"{entry.path} is damaged: {error!r}; restore it from a copy") from None


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    raise TypeError(f"{value!r} is not text")


def _encoded(line: Mapping[str, Any]) -> str:
    return json.dumps(line, separators=(",", ":"))


def inside(path: str) -> str:
    """Return the part of a file's path that lies in the archive.

    That is its name, and the folders of its partitions, ``name=value``, before it.
    """
    names = unquote(urlsplit(path).path).split("/")
    first = len(names) - 1
    while first and "=" in names[first - 1]:
        first -= 1
    return "/".join(names[first:])


def _is_here(path: str, archive: str) -> bool:
    """Whether a noted path lies where the archive is now."""
    noted, now = urlsplit(path), urlsplit(path_in(path, archive))
    is_same_host = not now.netloc or noted.netloc == now.netloc  # hdfs:/// is the default one
    return is_same_host and unquote(noted.path) == unquote(now.path)


def path_in(path: str, archive: str) -> str:
    """Return a noted path as Spark would write it for the archive's place."""
    system, root = file_system(archive.rstrip("/"))
    name = quote(inside(path), safe=_PLAIN)
    if isinstance(system, fs.LocalFileSystem):
        return f"file://{quote(str(Path(root).absolute()), safe=_PLAIN)}/{name}"
    return f"{archive.rstrip('/')}/{name}"


def replace_notes(entry: Entry, files: Iterable[Mapping[str, Any]]) -> None:
    """Write a file of the notes so that there is the old one or the new one.

    Args:
        entry: the file.
        files: what it is to say of each file of the archive.

    Raises:
        ConfigError: it lies where no file can be replaced at once.
        OSError: it cannot be written.
    """
    content = "\n".join([_VERSION, *map(_encoded, files)]).encode()
    system, place = file_system(entry.path)
    if isinstance(system, fs.LocalFileSystem):
        path = Path(place)
        # The checksum is of the old content, and Spark reads without one.
        path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
        write_whole(path, content)
        return
    if urlsplit(entry.path).scheme in _WITHOUT_REPLACING:
        raise ConfigError(
            f"{entry.path}: the archive was copied or moved, and Arrow cannot replace a file of "
            "Spark's notes on hdfs://; begin a new archive, replay reads this one where it is"
        )
    with system.open_output_stream(place) as file:  # an object is replaced when it is whole
        file.write(content)


def write_whole(path: Path, data: bytes) -> None:
    """Write a file on this machine, so that it is there whole and durably, or not.

    Raises:
        OSError: it cannot be written.
    """
    fresh = path.with_name(f".{path.name}.new")
    with fresh.open("wb") as file:
        file.write(data)
        file.flush()
        platform.sync(file.fileno())
    fresh.replace(path)
    platform.sync_folder(path.parent)
