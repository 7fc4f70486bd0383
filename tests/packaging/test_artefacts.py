"""The test vectors as packages for other languages."""

import importlib.util
import json
import shutil
import tarfile
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
NODE = pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")


def loaded() -> ModuleType:
    """The script that a release runs."""
    spec = importlib.util.spec_from_file_location("artefacts", ROOT / "release" / "artefacts.py")
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    return script


SCRIPT = loaded()


def test_each_package_has_every_family() -> None:
    """The same bytes in all of them."""
    wanted = {path.name: path.read_bytes() for path in (ROOT / "vectors").glob("*.json")}
    found = SCRIPT.packages(ROOT)
    assert wanted.items() <= found.pop("vectors").items()
    for files in found.values():
        assert {f"data/{name}": data for name, data in wanted.items()}.items() <= files.items()


def test_an_archive_is_the_same_bytes_again() -> None:
    """Whoever builds it gets the same digest."""
    files = SCRIPT.packages(ROOT)["npm"]
    assert SCRIPT.archive("package", files) == SCRIPT.archive("package", files)


def test_files_of_two_versions_are_refused(tmp_path: Path) -> None:
    """Files of one release belong together."""
    (tmp_path / "vectors").mkdir()
    for version in ("1.0", "2.0"):
        path = tmp_path / "vectors" / f"{version}.json"
        path.write_text(json.dumps({"corpus": version}), encoding="utf-8")
    with pytest.raises(SCRIPT.ArtefactError, match="several versions"):
        SCRIPT.corpus(tmp_path)


@NODE
def test_the_npm_package_is_read_by_node(tmp_path: Path) -> None:
    """Every family, with as many tests as it says."""
    assert SCRIPT.tried("npm", SCRIPT.written(ROOT, tmp_path)["npm"])


@NODE
def test_a_package_that_lacks_tests_is_noticed(tmp_path: Path) -> None:
    """The trial is one that can fail."""
    files = SCRIPT.packages(ROOT)["npm"]
    crc = json.loads(files["data/crc.json"])
    crc["testGroups"][0]["tests"].pop()
    path = tmp_path / "broken.tgz"
    path.write_bytes(
        SCRIPT.archive("package", {**files, "data/crc.json": json.dumps(crc).encode()})
    )
    with tarfile.open(path) as tar:
        assert "package/index.mjs" in tar.getnames()
    with pytest.raises(SCRIPT.ArtefactError, match="node failed"):
        SCRIPT.tried("npm", path)
