"""Whether the tree may be released: run by the release workflow, and by a maintainer before it.

    python release/check.py [--tag vX.Y.Z]

Exit code 0 when nothing is missing, else 1 with one line for each thing that is.
"""

import argparse
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]


def missing(root: Path, tag: str | None) -> list[str]:
    """Return what keeps the tree from being released, a sentence each.

    Args:
        root: the checkout.
        tag: that the release will have; None leaves out what only a tagged tree can answer.
    """
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    version = project["project"]["version"]
    wrong = [
        f"[tool.lance.addresses] {name} in pyproject.toml is empty: say where it will be"
        for name, address in project["tool"]["lance"]["addresses"].items()
        if not address
    ]
    readme = (root / "README.md").read_text(encoding="utf-8")
    if project["tool"]["lance"]["addresses"]["site"] and "](docs/" in readme:
        wrong.append("README.md links to sources of pages: run python release/readme.py")
    changelog = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    heading = f"## [{version}] - "
    if not any(line.startswith(heading) for line in changelog.splitlines()):
        wrong.append(f"CHANGELOG.md has no heading '{heading}YYYY-MM-DD'")
    if "## [Unreleased]\n\n##" not in changelog:
        wrong.append("CHANGELOG.md has entries under [Unreleased]: move them under the version")
    if tag is not None:
        if tag != f"v{version}":
            wrong.append(f"the tag is {tag}, and the version in pyproject.toml {version}")
        if changed := _changed(root):
            wrong.append(f"the tree has changes that are not committed: {', '.join(changed)}")
    return wrong


def _changed(root: Path) -> list[str]:
    command = ["git", "status", "--porcelain"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    return [line[3:] for line in done.stdout.splitlines()]


def main() -> int:
    """Print what is missing, and return the exit code."""
    parser = argparse.ArgumentParser(description="Say what keeps this tree from being released.")
    parser.add_argument("--tag", help="the release's tag, for example v0.2.0")
    wrong = missing(ROOT, parser.parse_args().tag)
    for sentence in wrong:
        print(f"not ready: {sentence}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
