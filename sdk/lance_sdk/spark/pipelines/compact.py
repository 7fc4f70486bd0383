"""Compacting: the many small Parquet files of an archive into few large ones.

The files of a folder are joined as far as one file of Spark's notes names them: so its rename is
the moment from which the large file counts and the small ones do not. A journal beside the notes
says what is under way; the next run removes what a killed one left.
"""

import json
import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from lance_sdk._io import platform
from lance_sdk.errors import ConfigError
from lance_sdk.spark.files.storage import Entry, file_system
from lance_sdk.spark.pipelines.archive_files import (
    METADATA,
    inside,
    locked,
    noted_files,
    notes_of,
    path_in,
    relocate,
    replace_notes,
    write_whole,
)

FILE_BYTES: Final = 128 << 20
"""Size of a file from which Spark reads it as several."""
_JOURNAL: Final = "_lwp_compaction"
_ROW_GROUP_BYTES: Final = 64 << 20
_SHARE: Final = 2
"""Files from this part of the wanted size on stay as they are, or each run would copy them."""
Line = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Compacted:
    """What one run joined, or would join.

    Attributes:
        target: folder of the archive.
        files: how many small files there were.
        joined: how many files hold their records instead.
        bytes: of the small files.
    """

    target: str
    files: int
    joined: int
    bytes: int


def compact(
    target: str,
    *,
    file_bytes: int = FILE_BYTES,
    dry_run: bool = False,
    tell: Callable[[int, int], object] | None = None,
) -> Compacted:
    """Join the small files of an archive; no record changes, and Spark is not needed.

    Repeat it as often as you like, also after a run that was killed; not while the archive is read.

    Args:
        target: folder of the archive, on this machine or mounted.
        file_bytes: how large files are to become, at most; those of half that size stay.
        dry_run: only say how much there would be to do.
        tell: called with bytes done and bytes in all.

    Raises:
        ConfigError: there is no archive, it is not on a mounted folder, or another run is at it.
        OSError: a file cannot be read or written.
    """
    root = _root(target)
    if dry_run:
        groups = [group for entry in notes_of(root) for group in _groups(entry, root, file_bytes)]
        return _told(target, groups)
    with locked(root):
        relocate(root)
        finish(root)
        planned = [(entry, _groups(entry, root, file_bytes)) for entry in notes_of(root)]
        every = [group for _, groups in planned for group in groups]
        done, total = 0, _size(every)
        for entry, groups in planned:
            if groups:
                _join(entry, groups, root)
                done += _size(groups)
                if tell is not None:
                    tell(done, total)
    return _told(target, every)


def finish(target: str) -> None:
    """Remove what a run has left that was killed; does nothing where none was.

    Args:
        target: folder of the archive.

    Raises:
        OSError: a file cannot be removed.
    """
    system, root = file_system(target)
    if not isinstance(system, fs.LocalFileSystem):
        return
    journal = Path(root, _JOURNAL)
    try:
        begun = json.loads(journal.read_bytes())
    except FileNotFoundError:
        return
    named = {inside(line["path"]) for entry in notes_of(root) for line in noted_files(entry)}
    for name in {*begun["old"], *begun["new"]} - named:
        path = Path(root, name)
        path.unlink(missing_ok=True)
        path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
    journal.unlink()


def _root(target: str) -> str:
    system, root = file_system(target)
    if not isinstance(system, fs.LocalFileSystem):
        raise ConfigError(
            f"{target}: compacting replaces a file of Spark's notes by a rename, which needs a "
            "mounted folder"
        )
    if not Path(root, METADATA).is_dir():
        raise ConfigError(
            f"{target} is not an archive: it has no {METADATA}; name the folder of one"
        )
    return str(Path(root).absolute())


def _told(target: str, groups: Sequence[Sequence[Line]]) -> Compacted:
    return Compacted(target, sum(map(len, groups)), len(groups), _size(groups))


def _size(groups: Sequence[Sequence[Line]]) -> int:
    return sum(int(line["size"]) for group in groups for line in group)


def _groups(entry: Entry, root: str, file_bytes: int) -> list[list[Line]]:
    """Return which files are joined: each time some of one folder, with the same columns."""
    found: list[list[Line]] = []
    open_groups: dict[tuple[str, pa.Schema], list[Line]] = {}
    lines = noted_files(entry)
    if any(line.get("action") == "delete" for line in lines):  # by Sparks before 3.1
        return []
    for line in lines:
        if int(line["size"]) * _SHARE >= file_bytes:
            continue
        name = inside(line["path"])
        key = name.rpartition("/")[0], _schema(Path(root, name)).to_string()
        group = open_groups.get(key)
        if group is None or _size([group]) + int(line["size"]) > file_bytes:
            group = open_groups[key] = []
            found.append(group)
        group.append(line)
    return [group for group in found if len(group) > 1]


def _join(entry: Entry, groups: Sequence[Sequence[Line]], root: str) -> None:
    """Put groups into a file each, and have one file of the notes name those."""
    names = [_name_beside(inside(group[0]["path"])) for group in groups]
    old = [inside(line["path"]) for group in groups for line in group]
    write_whole(Path(root, _JOURNAL), json.dumps({"old": old, "new": names}).encode())
    instead: dict[str, Line | None] = {}
    for group, name in zip(groups, names, strict=True):
        sources = [Path(root, inside(line["path"])) for line in group]
        joined = _joined(sources, Path(root, name))
        instead.update(dict.fromkeys((line["path"] for line in group), None))
        instead[group[0]["path"]] = group[0] | joined | {"path": path_in(quote(name), root)}
    lines = [instead.get(line["path"], line) for line in noted_files(entry)]
    replace_notes(entry, [line for line in lines if line is not None])
    finish(root)


def _name_beside(name: str) -> str:
    """Return the name of a new file in the folder of another."""
    folder, mark, _ = name.rpartition("/")
    return f"{folder}{mark}part-{secrets.token_hex(8)}-compacted.snappy.parquet"


def _joined(sources: Sequence[Path], target: Path) -> Line:
    """Write the rows of some files to a new one, durably; return what is noted of it."""
    schema = _schema(sources[0])
    with pq.ParquetWriter(target, schema, store_schema=False) as writer:
        for batches in _row_groups(sources):
            writer.write_table(pa.Table.from_batches(batches).cast(schema))
    with target.open("r+b") as file:
        platform.sync(file.fileno())
    platform.sync_folder(target.parent)
    status = target.stat()
    return {"size": status.st_size, "modificationTime": status.st_mtime_ns // 10**6}


def _row_groups(sources: Sequence[Path]) -> Iterator[list[pa.RecordBatch]]:
    """Yield what is in some files in parts that are large enough for a row group."""
    held: list[pa.RecordBatch] = []
    for path in sources:
        with _opened(path) as file:
            for batch in file.iter_batches():
                held.append(batch)
                if sum(each.nbytes for each in held) >= _ROW_GROUP_BYTES:
                    yield held
                    held = []
    if held:
        yield held


def _schema(path: Path) -> pa.Schema:
    """Return a file's columns as they are written: times as instants, as Spark's type is."""
    with _opened(path) as file:
        schema = file.schema_arrow
    fields = [
        field.with_type(pa.timestamp("us", "UTC")) if pa.types.is_timestamp(field.type) else field
        for field in schema
    ]
    return pa.schema(fields, schema.metadata)


def _opened(path: Path) -> pq.ParquetFile:
    return pq.ParquetFile(path, coerce_int96_timestamp_unit="us")
