"""The test vectors as packages for other languages, made of the same files and tried there.

    python release/artefacts.py [--directory dist/vectors]

Writes `vectors-VERSION.tar.gz`, an npm package, a Go module and a crate, and runs a program against
what each of them holds with node, go and cargo, where they are installed.
"""

import argparse
import gzip
import io
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
LOADERS: Final = Path(__file__).parent / "loaders"
NAME: Final = "lance-vectors"
TRIALS: Final[Mapping[str, tuple[str, ...]]] = {
    "npm": ("node", "test.mjs"),
    "go": ("go", "test", "./..."),
    "crate": ("cargo", "test", "--quiet", "--offline"),
}
"""What tries each package, in its folder."""


class ArtefactError(Exception):
    """The packages cannot be made, or do not work."""


def corpus(root: Path) -> tuple[str, dict[str, bytes]]:
    """Return the version of the vectors, and their files by name.

    Args:
        root: the checkout.

    Raises:
        ArtefactError: Files are of different versions.
    """
    files = {path.name: path.read_bytes() for path in sorted((root / "vectors").glob("*.json"))}
    versions = {json.loads(data)["corpus"] for data in files.values()}
    if len(versions) != 1:
        raise ArtefactError(f"the files are of several versions: {sorted(versions)}")
    return versions.pop(), files


def packages(root: Path) -> dict[str, dict[str, bytes]]:
    """Return the content of each archive: bytes by path, by the name of the archive's kind.

    Args:
        root: the checkout.
    """
    version, files = corpus(root)
    texts = {
        "LICENSE": (root / "LICENSE").read_bytes(),
        "README.md": (root / "vectors" / "README.md").read_bytes(),
    }
    folder = root / "vectors"
    schemas = {
        f"schema/{path.name}": path.read_bytes() for path in (folder / "schema").glob("*.json")
    }
    ids = {"ids.lock": (folder / "ids.lock").read_bytes()}
    found = {"vectors": {**texts, **files, **schemas, **ids}}
    data = {f"data/{name}": content for name, content in files.items()}
    for kind in TRIALS:
        found[kind] = {**texts, **data, **_loader(kind, version, files)}
    return found


def _loader(kind: str, version: str, files: Mapping[str, bytes]) -> dict[str, bytes]:
    """The files of a loader, with the version and the list of families filled in."""
    folder = LOADERS / kind
    families = "".join(
        f'    ("{name[:-5]}", include_str!("../data/{name}")),\n' for name in sorted(files)
    )
    return {
        path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8")
        .replace("@VERSION@", version)
        .replace("    // @FAMILIES@\n", families)
        .encode()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def archive(prefix: str, files: Mapping[str, bytes]) -> bytes:
    """Return a compressed archive that is the same bytes whenever it is made.

    Args:
        prefix: the folder in which everything stands.
        files: content by path.
    """
    packed = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=packed, mode="wb", filename="", mtime=0) as compressed,
        tarfile.open(fileobj=compressed, mode="w", format=tarfile.USTAR_FORMAT) as tar,
    ):
        for name, content in sorted(files.items()):
            entry = tarfile.TarInfo(f"{prefix}/{name}")
            entry.size, entry.mode = len(content), 0o644
            tar.addfile(entry, io.BytesIO(content))
    return packed.getvalue()


def written(root: Path, directory: Path) -> dict[str, Path]:
    """Write all archives; return where each kind is.

    Args:
        root: the checkout.
        directory: where they go; it is made.
    """
    version, _ = corpus(root)
    places = {
        "vectors": (f"vectors-{version}", f"vectors-{version}.tar.gz"),
        "npm": ("package", f"{NAME}-{version}.tgz"),
        "go": (f"{NAME}-go-{version}", f"{NAME}-go-{version}.tar.gz"),
        "crate": (f"{NAME}-{version}", f"{NAME}-{version}.crate"),
    }
    directory.mkdir(parents=True, exist_ok=True)
    found = {}
    for kind, files in packages(root).items():
        prefix, name = places[kind]
        found[kind] = directory / name
        found[kind].write_bytes(archive(prefix, files))
    return found


def tried(kind: str, path: Path) -> bool:
    """Unpack an archive and run its test; return False where its language is not installed.

    Args:
        kind: which package.
        path: the archive.

    Raises:
        ArtefactError: The test does not pass.
    """
    program, *arguments = TRIALS[kind]
    found = shutil.which(program)
    if found is None:
        return False
    with tempfile.TemporaryDirectory() as scratch:
        with tarfile.open(path) as tar:
            tar.extractall(scratch, filter="data")
        (folder,) = Path(scratch).iterdir()
        ended = subprocess.run(
            [found, *arguments], cwd=folder, capture_output=True, text=True, check=False
        )
    if ended.returncode != 0:
        raise ArtefactError(f"{path.name}: {program} failed:\n{ended.stdout}{ended.stderr}")
    return True


def main(arguments: list[str]) -> int:
    """Make and try them; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--directory", type=Path, default=ROOT / "dist" / "vectors")
    directory = parser.parse_args(arguments).directory
    try:
        for kind, path in written(ROOT, directory).items():
            words = ""
            if kind in TRIALS:
                program = TRIALS[kind][0]
                words = f", tried with {program}" if tried(kind, path) else f", no {program} here"
            print(f"{path.name}: {path.stat().st_size:,} bytes{words}")
    except ArtefactError as problem:
        print(problem, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
