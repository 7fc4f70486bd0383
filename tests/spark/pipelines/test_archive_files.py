"""Spark's notes of an archive's files, for archives that were copied or moved."""

import json
from pathlib import Path

import pytest
from pyarrow import fs

from lance_sdk.errors import ConfigError
from lance_sdk.spark.files import storage
from lance_sdk.spark.pipelines import archive_files
from lance_sdk.spark.pipelines.archive_files import METADATA, moved_files, relocate


def note(archive: Path, name: str, *paths: str, action: str = "add") -> Path:
    """Write a file of notes as Spark does."""
    path = archive / METADATA / name
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps({"path": each, "size": 1, "action": action}) for each in paths]
    path.write_text("\n".join(["v1", *lines]))
    return path


def test_an_archive_at_its_place_is_left_to_spark(tmp_path: Path) -> None:
    """Also where names are written with percent signs."""
    home = tmp_path / "my archive"
    path = note(home, "0", f"{(home / 'topic=a%20b' / 'part 0').as_uri()}")
    before = path.read_bytes()
    assert (moved_files(str(home)), relocate(str(home))) == (None, 0)
    assert path.read_bytes() == before


def test_files_of_a_moved_archive_are_those_that_were_committed(tmp_path: Path) -> None:
    """A compact file has all before it; what was removed again is none."""
    old = "file:///old/place"
    note(tmp_path, "0", f"{old}/topic=a/lost")
    note(tmp_path, "1.compact", f"{old}/topic=a/date=2026-01-31/0", f"{old}/topic=a/1")
    note(tmp_path, "2", f"{old}/topic=a%2520b/2")
    note(tmp_path, "3", f"{old}/topic=a/1", action="delete")
    expected = [f"{tmp_path}/topic=a/date=2026-01-31/0", f"{tmp_path}/topic=a%20b/2"]
    assert moved_files(str(tmp_path)) == expected


def test_notes_are_changed_where_they_name_another_place(tmp_path: Path) -> None:
    """With everything else that they say, and without the checksum of what they said before."""
    first = note(tmp_path, "0", "file:///old/place/topic=a/0")
    second = note(tmp_path, "1", f"{tmp_path.as_uri()}/topic=a/1")
    for path in (first, second):
        path.with_name(f".{path.name}.crc").write_bytes(b"crc")
    assert relocate(str(tmp_path)) == 1
    line = json.loads(first.read_text().split("\n")[1])
    assert line == {"path": f"{tmp_path.as_uri()}/topic=a/0", "size": 1, "action": "add"}
    names = sorted(path.name for path in (tmp_path / METADATA).iterdir())
    assert names == [".1.crc", "0", "1"]
    assert moved_files(str(tmp_path)) is None


@pytest.mark.parametrize("content", ["v2\n{}", "v1\n{", 'v1\n{"size": 1}', 'v1\n{"path": 7}'])
def test_notes_that_cannot_be_read_are_told(tmp_path: Path, content: str) -> None:
    """With the file that they are in."""
    path = note(tmp_path, "0")
    path.write_text(content)
    with pytest.raises(ConfigError, match=f"{path}"):
        moved_files(str(tmp_path))


@pytest.fixture
def far(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that stands for the root of every file system that is not this machine's."""
    system = fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())

    def opened(path: str) -> tuple[fs.FileSystem, str]:
        return system, "/" + path.partition("://")[2].partition("/")[2]

    for module in (storage, archive_files):
        monkeypatch.setattr(module, "file_system", opened)
    return tmp_path


def test_an_archive_in_an_object_store_is_moved(far: Path) -> None:
    """A file of the notes is written over there: a store shows the new one when it is whole."""
    path = note(far / "archive", "0", "s3://old/archive/topic=a/0")
    assert relocate("s3://new/archive") == 1
    assert json.loads(path.read_text().split("\n")[1])["path"] == "s3://new/archive/topic=a/0"
    assert moved_files("s3://new/archive") is None


def test_an_archive_on_hdfs_is_not_moved(far: Path) -> None:
    """It is refused before anything is changed, and can be replayed."""
    path = note(far / "archive", "0", "hdfs://old:8020/archive/topic=a/0")
    before = path.read_bytes()
    with pytest.raises(ConfigError, match="begin a new archive"):
        relocate("hdfs://new:8020/archive")
    assert path.read_bytes() == before
    assert moved_files("hdfs://new:8020/archive") == ["hdfs://new:8020/archive/topic=a/0"]


def test_an_archive_on_the_default_hdfs_is_at_its_place(far: Path) -> None:
    """Spark notes the name of the host, also where the archive is named without."""
    note(far / "archive", "0", "hdfs://there:8020/archive/topic=a/0")
    assert relocate("hdfs:///archive") == 0
