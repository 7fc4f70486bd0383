"""Drivers to fill in, in the languages that clients are written in."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path, PurePosixPath


@dataclass(frozen=True, slots=True)
class Skeleton:
    """A driver in one language.

    Attributes:
        edit: The file that is filled in.
        build: The command that builds it, if any.
        run: The command line for ``--exec``.
    """

    edit: str
    build: str
    run: str


SKELETONS: Mapping[str, Skeleton] = {
    "python": Skeleton("driver.py", "", "python driver.py"),
    "go": Skeleton("main.go", "go build -o driver .", "./driver"),
    "rust": Skeleton("src/client.rs", "cargo build", "target/debug/driver"),
    "java": Skeleton("Client.java", "javac *.java", "java -cp . Driver"),
    "node": Skeleton("driver.mjs", "", "node driver.mjs"),
}
"""Skeletons by language."""


def sources(language: str) -> Mapping[PurePosixPath, str]:
    """Return the files of a skeleton by their path."""
    return dict(_texts(files(__package__) / language, PurePosixPath()))


def _texts(folder: Traversable, path: PurePosixPath) -> Iterator[tuple[PurePosixPath, str]]:
    for each in sorted(folder.iterdir(), key=lambda found: found.name):
        if each.is_dir():
            if each.name != "__pycache__":
                yield from _texts(each, path / each.name)
        else:
            yield path / each.name, each.read_text(encoding="utf-8")


def write(language: str, folder: Path) -> list[Path]:
    """Write the files of a skeleton into a folder, which is made if it is missing.

    Raises:
        FileExistsError: one of the files is there already; nothing was written.
        OSError: one cannot be written.
    """
    found = {folder / path: text for path, text in sources(language).items()}
    for path in found:
        if path.exists():
            raise FileExistsError(f"{path} is there already; name an empty folder")
    for path, text in found.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return list(found)
