"""Which generated files there are, and whether what is committed is what would be written."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import lance_spec
from lance_spec.emit.c import header, nested_header
from lance_spec.emit.docs import json_description
from lance_spec.emit.kaitai import description, nested_description
from lance_spec.emit.python import modules
from lance_spec.emit.wireshark import dissector, nested_dissector
from lance_spec.ir.families import composed, families

_GENERATED: Final = Path("generated")
"""Where files for other languages go."""


@dataclass(frozen=True, slots=True)
class Target:
    """One generated file.

    Attributes:
        path: where it belongs, relative to the folder that holds ``lance_spec``.
        text: what belongs there.
    """

    path: Path
    text: str


def source_root() -> Path:
    """Return the folder that holds ``lance_spec`` in a checkout: ``spec/``.

    Raises:
        FileNotFoundError: this is an installed package, whose files are nobody's to change.
    """
    folder = Path(lance_spec.__file__).resolve().parent.parent
    if (folder.parent / "pyproject.toml").is_file():
        return folder
    raise FileNotFoundError(f"{folder} is not a checkout; generate in one, with `pip install -e .`")


def targets() -> list[Target]:
    """Render every generated file."""
    found = [
        Target(_GENERATED / "lance_bytes.h", header.runtime()),
        Target(_GENERATED / "lance_nested.h", nested_header.runtime()),
    ]
    for name, family in families().items():
        found += [
            Target(Path("lance_spec", "messages", f"{name}.py"), modules.render(family)),
            Target(_GENERATED / f"lance_{name}.h", header.render(family)),
            Target(_GENERATED / f"lance_{name}.json", json_description.render(family)),
            Target(_GENERATED / f"lance_{name}.ksy", description.render(family)),
            Target(_GENERATED / f"lance_{name}.lua", dissector.render(family)),
        ]
    for name, family in composed().items():
        found += [
            Target(Path("lance_spec", "messages", f"{name}.py"), modules.render(family)),
            Target(_GENERATED / f"lance_{name}.json", json_description.render(family)),
            Target(_GENERATED / f"lance_{name}.lua", nested_dissector.render(family)),
        ]
        if name in nested_header.FAMILIES:
            found.append(Target(_GENERATED / f"lance_{name}.h", nested_header.render(family)))
        if name in nested_description.FAMILIES:
            found.append(
                Target(_GENERATED / f"lance_{name}.ksy", nested_description.render(family))
            )
    return found


def stale(root: Path, wanted: Iterable[Target]) -> list[Path]:
    """Return the files under ``root`` that are missing or differ from what is wanted."""
    return [each.path for each in wanted if _content(root / each.path) != each.text]


def write(root: Path, wanted: Iterable[Target]) -> list[Path]:
    """Write what is missing or differs; return the files that changed."""
    wanted = list(wanted)
    changed = stale(root, wanted)
    for each in wanted:
        if each.path in changed:
            (root / each.path).parent.mkdir(parents=True, exist_ok=True)
            (root / each.path).write_text(each.text, encoding="utf-8")
    return changed


def _content(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.is_file() else None
