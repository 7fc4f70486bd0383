"""Builds the conformance kit as one file that any Python runs: ``lance-conformance.pyz``.

    python release/single_file.py --output dist/lance-conformance.pyz
    python lance-conformance.pyz --target 127.0.0.1:1992

It has the kit, the vectors that are cases, and click. What is compiled is not in it: checksums are
worked out in Python, and of Fluvio's compressions only gzip is asked about.
"""

import argparse
import shutil
import tempfile
import zipapp
from importlib.metadata import distribution
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
PACKAGE: Final = ROOT / "conformance" / "lance_conformance"
VECTORS: Final = ROOT / "vectors" / "server_case.json"
_NO_CODE: Final = shutil.ignore_patterns("__pycache__")


def gather(folder: Path) -> None:
    """Put everything that belongs into the file under a folder."""
    shutil.copytree(PACKAGE, folder / PACKAGE.name, ignore=_NO_CODE)
    shutil.copy(VECTORS, folder / PACKAGE.name / VECTORS.name)
    shutil.copy(ROOT / "LICENSE", folder)
    click = distribution("click")
    for file in click.files or ():
        if file.parts[0] == "click" or "licenses" in file.parts:
            _copy(Path(str(click.locate_file(file))), folder.joinpath(*file.parts))


def _copy(source: Path, target: Path) -> None:
    if "__pycache__" not in source.parts:
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)


def build(target: Path) -> None:
    """Write the file.

    Args:
        target: Where it goes; what is there is replaced.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        gather(Path(folder))
        zipapp.create_archive(
            folder,
            target,
            interpreter="/usr/bin/env python3",
            main="lance_conformance.cli:main",
            compressed=True,
        )


def main() -> None:
    """Build it where the command line says."""
    parser = argparse.ArgumentParser(description="Build the conformance kit as one file.")
    default = ROOT / "dist" / "lance-conformance.pyz"
    parser.add_argument("--output", type=Path, default=default, help="the file to write")
    build(parser.parse_args().output)


if __name__ == "__main__":
    main()
