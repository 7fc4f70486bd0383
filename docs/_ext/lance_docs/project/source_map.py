"""The source as a reader meets it: what to read first, and what there is, with its lines."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from sphinx.application import Sphinx

from lance_docs._base import Generated, list_table, literal

_ROOT: Final = Path(__file__).parents[4]
_PACKAGES: Final = (
    "spec/lance_spec",
    "sdk/lance_sdk",
    "reference_server/lance_server",
    "conformance/lance_conformance",
)
_GENERATED: Final = _ROOT / "spec/lance_spec/messages"
_PROTOCOLS: Final = ("fluvio", "qwp", "rustlog", "spark")
_CORE: Final = (
    ("spec/lance_spec/grammar/lwp", "what a frame and each command of LWP are"),
    ("spec/lance_spec/frames.py", "a stream of bytes as frames, and back"),
    ("spec/lance_spec/records.py", "a payload as records, and back"),
    ("sdk/lance_sdk/_protocol", "the client without threads, sockets and clocks"),
    ("sdk/lance_sdk/_io", "what runs it: a thread, or tasks"),
    ("sdk/lance_sdk/_api", "what its sync and async classes share"),
    ("reference_server/lance_server/lwp", "one connection: requests and responses"),
    ("reference_server/lance_server/log", "the log: partitions, segments, recovery"),
    ("reference_server/lance_server/storage", "what the log asks of a disk"),
    ("conformance/lance_conformance/engine", "how the kit asks, judges and reports"),
    ("conformance/lance_conformance/server/cases", "what it asks a server"),
)
"""The core of LWP, in the order in which to read it."""


class ReadingOrder(Generated):
    """What a reviewer of the core reads, first things first."""

    def text(self) -> str:
        """Return a table with one row for each part."""
        rows = [
            (str(place), literal(path), what, f"{lines(_ROOT / path):,}")
            for place, (path, what) in enumerate(_CORE, 1)
        ]
        rows.append(("", "together", "", f"{sum(lines(_ROOT / path) for path, _ in _CORE):,}"))
        return list_table(("", "Part", "What it is", "Lines"), rows, widths="6 40 42 12")


class SourceMap(Generated):
    """Every package with its folders."""

    def text(self) -> str:
        """Return a table with one row for each folder that is a package's own."""
        rows = [
            (literal(str(folder.relative_to(_ROOT))), purpose(folder), f"{lines(folder):,}")
            for package in _PACKAGES
            for folder in _folders(_ROOT / package)
        ]
        return list_table(("Folder", "What it is", "Lines"), rows, widths="40 48 12")


class Proportion(Generated):
    """How much of each package is written by hand, and how much of that is LWP."""

    def text(self) -> str:
        """Return a table with one row for each package."""
        rows = [_proportion(_ROOT / package) for package in _PACKAGES]
        header = ("Package", "Modules", "Lines", "Other protocols and Spark", "Generated")
        return list_table(header, rows)


def _proportion(package: Path) -> tuple[str, str, str, str, str]:
    files = list(modules(package))
    written = [path for path in files if path.parent != _GENERATED]
    others = [path for path in written if _is_of_another_protocol(path.relative_to(package))]
    return (
        literal(package.name),
        f"{len(written):,}",
        f"{_count(written):,}",
        f"{_count(others):,}",
        f"{_count(files) - _count(written):,}",
    )


def _is_of_another_protocol(path: Path) -> bool:
    return any(part.partition(".")[0].strip("_") in _PROTOCOLS for part in path.parts)


def _folders(package: Path) -> Iterator[Path]:
    yield from (path for path in sorted(package.iterdir()) if (path / "__init__.py").is_file())


def purpose(folder: Path) -> str:
    """Return the first sentence of a package's docstring."""
    text = ast.get_docstring(ast.parse((folder / "__init__.py").read_text())) or ""
    return text.partition("\n\n")[0].replace("\n", " ")


def modules(path: Path) -> Iterator[Path]:
    """Yield the Python files at or below a path."""
    yield from [path] if path.is_file() else sorted(path.rglob("*.py"))


def lines(path: Path) -> int:
    """Return how many lines the Python files at or below a path have."""
    return _count(modules(path))


def _count(files: Iterator[Path] | list[Path]) -> int:
    return sum(path.read_text().count("\n") for path in files)


def setup(app: Sphinx) -> None:
    """Register the directives."""
    app.add_directive("lance-reading-order", ReadingOrder)
    app.add_directive("lance-source-map", SourceMap)
    app.add_directive("lance-proportion", Proportion)
