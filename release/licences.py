"""The licence of each package that an installation may bring, as a table.

    python release/licences.py [--extra all] [--output FILE]

It reads what is installed, so install `lance-sdk[all]` first. Exit code 1 when a package is not
there, or does not say its licence: a release is not made over either.
"""

import argparse
import re
import sys
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PROJECT = "lance-sdk"


def needed(project: str, extra: str) -> dict[str, Distribution | None]:
    """Return the packages that a project needs with an extra, and those that they need.

    Args:
        project: name of an installed package.
        extra: one of its extras, or an empty text.
    """
    found: dict[str, Distribution | None] = {}
    seen: set[tuple[str, str]] = set()
    open_ends = [(canonicalize_name(project), extra)]
    while open_ends:
        name, wanted = end = open_ends.pop()
        if end in seen:
            continue
        seen.add(end)
        try:
            package = distribution(name)
        except PackageNotFoundError:
            found[name] = None
            continue
        found[name] = package
        for text in package.requires or ():
            requirement = Requirement(text)
            if requirement.marker is None or requirement.marker.evaluate({"extra": wanted}):
                other = canonicalize_name(requirement.name)
                open_ends += [(other, each) for each in {"", *requirement.extras}]
    del found[canonicalize_name(project)]
    return found


def licence(package: Distribution) -> str | None:
    """Return what a package says of its licence: an expression, classifiers, or the old field."""
    told = package.metadata
    if expression := told.get("License-Expression"):
        return str(expression)
    marks = [each for each in told.get_all("Classifier") or () if each.startswith("License ::")]
    if names := [each.rpartition(" :: ")[2] for each in marks if each != "License :: OSI Approved"]:
        return ", ".join(names)
    first = (told.get("License") or "").strip().splitlines()[:1]
    return first[0] if first else None


def table(found: dict[str, Distribution | None]) -> tuple[str, list[str]]:
    """Return the table in Markdown, and a sentence for each row that is not known."""
    lines = ["| Package | Version | Licence |", "| --- | --- | --- |"]
    wrong = []
    for name, package in sorted(found.items()):
        if package is None:
            wrong.append(f"{name} is not installed")
        elif (said := licence(package)) is None:
            wrong.append(f"{name} {package.version} does not say its licence")
        else:
            told = re.sub(r"\s*\|\s*", " or ", said)
            lines.append(f"| {name} | {package.version} | {told} |")
    return "\n".join(lines) + "\n", wrong


def main() -> int:
    """Print or write the table, and return the exit code."""
    parser = argparse.ArgumentParser(description="List the licences of what is depended on.")
    parser.add_argument("--extra", default="all", help="which extra of the project is meant")
    parser.add_argument("--output", type=Path, help="where the table goes; stdout by default")
    arguments = parser.parse_args()
    text, wrong = table(needed(PROJECT, arguments.extra))
    if arguments.output is None:
        print(text, end="")
    else:
        arguments.output.write_text(text, encoding="utf-8")
    for sentence in wrong:
        print(f"licence not known: {sentence}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
