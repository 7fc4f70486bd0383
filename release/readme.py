"""Lets the links of README.md lead to the site, for those who read it on a forge.

    python release/readme.py

Run it once after setting ``[tool.lance.addresses]`` in pyproject.toml. Without addresses it changes
nothing.
"""

import re
import tomllib
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
_PAGE: Final = re.compile(r"\]\(docs/([^)#\s]+?)(?:\.rst)?(#[^)\s]*)?\)")


def rewritten(text: str, site: str) -> str:
    """Return a text whose links to files under ``docs`` lead to a site.

    Args:
        text: the README.
        site: where the documentation is built; an empty one changes nothing.
    """

    def absolute(found: re.Match[str]) -> str:
        page = found[1] if "." in found[1] else f"{found[1]}.html"
        return f"]({site.rstrip('/')}/{page}{found[2] or ''})"

    return _PAGE.sub(absolute, text) if site else text


def main() -> None:
    """Write README.md."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    readme = ROOT / "README.md"
    text = readme.read_text(encoding="utf-8")
    readme.write_text(rewritten(text, project["tool"]["lance"]["addresses"]["site"]))


if __name__ == "__main__":
    main()
