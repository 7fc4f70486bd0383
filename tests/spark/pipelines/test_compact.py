"""Small files of an archive become large ones: every record stays, also where a run is killed."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from click.testing import CliRunner

from lance_sdk.cli import _app
from lance_sdk.errors import ConfigError
from lance_sdk.spark.pipelines import compact as package
from lance_sdk.spark.pipelines.archive_files import METADATA, locked

compacting = pytest.importorskip("lance_sdk.spark.pipelines.compact")
Rows = list[dict[str, Any]]
FOLDERS = ("topic=a b", "topic=c%20d")
FILES = 5


class Archive:
    """An archive as Spark's file sink leaves it, with old-fashioned times."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.rows: dict[str, Rows] = {folder: [] for folder in FOLDERS}
        lines = [self._file(folder, n) for n in range(FILES) for folder in FOLDERS]
        notes = root / METADATA / "9.compact"
        notes.parent.mkdir(parents=True)
        notes.write_text("\n".join(["v1", *map(json.dumps, lines)]))

    def _file(self, folder: str, number: int) -> dict[str, Any]:
        import pyarrow as pa  # noqa: PLC0415 - an extra
        import pyarrow.parquet as pq  # noqa: PLC0415 - likewise

        moment = datetime(9999, 1, 1, number, tzinfo=UTC)  # beyond what nanoseconds can say
        rows = [{"offset": number, "value": b"%d" % number, "timestamp": moment}]
        self.rows[folder] += rows
        path = self.root / folder / f"part-{number}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        times = pa.array([moment.replace(tzinfo=None)], pa.timestamp("us"))
        table = pa.table({"offset": [number], "value": [b"%d" % number], "timestamp": times})
        pq.write_table(table, path, use_deprecated_int96_timestamps=number % 2 == 0)
        path.with_name(f".{path.name}.crc").write_bytes(b"crc")
        noted = f"file://{quote(str(path))}"
        return {"path": noted, "size": path.stat().st_size, "isDir": False, "action": "add"}

    def files(self, folder: str) -> list[str]:
        """Return the names of the files in a folder."""
        return sorted(path.name for path in (self.root / folder).iterdir())

    def has_every_row(self) -> bool:
        """Whether the files that Spark's notes name hold every row once."""
        lines = (self.root / METADATA / "9.compact").read_text().split("\n")[1:]
        found: dict[str, Rows] = {folder: [] for folder in FOLDERS}
        for path in (compacting.inside(json.loads(line)["path"]) for line in lines):
            with compacting._opened(self.root / path) as file:
                schema = compacting._schema(self.root / path)
                found[Path(path).parent.name] += file.read().cast(schema).to_pylist()
        return found == self.rows


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    """An archive with small files in two folders."""
    return Archive(tmp_path / "my archive")


def test_small_files_become_one(archive: Archive) -> None:
    """In each folder; the rows are the same, in their order, and nothing else is left."""
    told: list[tuple[int, int]] = []
    found = package(str(archive.root), tell=lambda *both: told.append(both))
    assert (found.files, found.joined) == (2 * FILES, 2)
    assert told == [(found.bytes, found.bytes)]
    assert archive.has_every_row()
    assert [len(archive.files(folder)) for folder in FOLDERS] == [1, 1]
    assert package(str(archive.root)).files == 0


def test_large_files_stay(archive: Archive) -> None:
    """Those of half the size that is wanted, or each run would copy them."""
    before = [archive.files(folder) for folder in FOLDERS]
    assert package(str(archive.root), file_bytes=100).files == 0
    assert [archive.files(folder) for folder in FOLDERS] == before


def test_a_dry_run_of_compacting_changes_nothing(archive: Archive) -> None:
    """It says how many files there are to join."""
    before = [archive.files(folder) for folder in FOLDERS]
    arguments = ["pipeline", "compact", str(archive.root), "--dry-run", "--json"]
    shown = CliRunner().invoke(_app.lwp, arguments, prog_name="lwp")
    assert json.loads(shown.output)["files"] == 2 * FILES
    assert [archive.files(folder) for folder in FOLDERS] == before


class KilledError(Exception):
    """The process ends here."""


def kill_before(name: str, monkeypatch: pytest.MonkeyPatch, root: str) -> None:
    """Run until a step; the first `finish` only looks for what others have left."""
    passing = iter([None] if name == "finish" else [])

    def reach(*_: Any) -> None:
        if next(passing, KilledError) is KilledError:
            raise KilledError

    with monkeypatch.context() as patched:
        patched.setattr(compacting, name, reach)
        with pytest.raises(KilledError):
            package(root)


@pytest.mark.parametrize("step", ["_joined", "replace_notes", "finish"])
@pytest.mark.parametrize("again", [package, compacting.finish], ids=["compacting", "archiving"])
def test_a_killed_run_leaves_nothing(
    archive: Archive, monkeypatch: pytest.MonkeyPatch, step: str, again: Callable[[str], Any]
) -> None:
    """At each moment every row is there once, and the next run removes what is too many."""
    root = str(archive.root)
    kill_before(step, monkeypatch, root)
    assert archive.has_every_row()
    again(root)
    assert archive.has_every_row()
    is_joined = step == "finish" or again is package
    names = {".part-0.parquet.crc", "part-0.parquet"}
    for folder in FOLDERS:
        assert names.isdisjoint(archive.files(folder)) == is_joined
    assert sorted(path.name for path in archive.root.iterdir()) == ["_lwp_lock", METADATA, *FOLDERS]


def test_two_runs_do_not_work_on_an_archive(archive: Archive) -> None:
    """The second is told so."""
    with locked(str(archive.root)), pytest.raises(ConfigError, match="another run"):
        package(str(archive.root))


@pytest.mark.parametrize(
    ("target", "message"), [("{}", "is not an archive"), ("mock:///archive", "mounted folder")]
)
def test_what_cannot_be_compacted_is_told(tmp_path: Path, target: str, message: str) -> None:
    """A folder without Spark's notes, and one that files cannot be renamed in."""
    with pytest.raises(ConfigError, match=message):
        package(target.format(tmp_path))
