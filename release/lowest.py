"""Writes the lowest versions that pyproject.toml allows, as requirements for pip.

python release/lowest.py --output lowest.txt EXTRA [EXTRA ...]
"""

import argparse
import re
import tomllib
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
_REQUIREMENT: Final = re.compile(r"([\w.-]+)(\[[\w,-]+\])?(?:>=|==)([\w.]+)([^;]*)(;.*)?$")
_OWN: Final = re.compile(r"lance-sdk\[([\w,-]+)\]$")


def lowest(project: dict[str, object], extras: list[str]) -> list[str]:
    """Return ``name==version`` for each dependency of the project and of some of its extras.

    Args:
        project: the table ``[project]``.
        extras: names of optional dependencies; those that they name in turn are included.

    Raises:
        ValueError: a requirement has no lower bound.
    """
    optional = project["optional-dependencies"]
    wanted = list(project["dependencies"])  # type: ignore[call-overload]
    queue, seen = list(extras), set[str]()
    while queue:
        extra = queue.pop()
        if extra in seen:
            continue
        seen.add(extra)
        for requirement in optional[extra]:  # type: ignore[index]
            if own := _OWN.match(requirement):
                queue += own[1].split(",")
            else:
                wanted.append(requirement)
    return sorted({_pinned(each) for each in wanted})


def _pinned(requirement: str) -> str:
    found = _REQUIREMENT.match(requirement)
    if found is None:
        raise ValueError(f"{requirement!r} has no lower bound")
    name, extra, version, _, marker = found.groups(default="")
    return f"{name}{extra}=={version}{marker}"


def main() -> None:
    """Write the requirements."""
    parser = argparse.ArgumentParser(description="Write the lowest versions that are allowed.")
    parser.add_argument("extras", nargs="*", help="optional dependencies to include")
    parser.add_argument("--output", type=Path, required=True, help="the file to write")
    arguments = parser.parse_args()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    arguments.output.write_text("\n".join(lowest(project, arguments.extras)) + "\n")


if __name__ == "__main__":
    main()
