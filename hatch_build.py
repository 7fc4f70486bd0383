"""Builds the compiled loops with the wheel, and tells an index where the project lives.

Without a C compiler the wheel is pure Python and does the same, slower.
"""

import os
import re
import shlex
import subprocess
import sys
import sysconfig
import tempfile
import tomllib
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

_SOURCES = Path("spec/lance_spec/native")
_LINK = re.compile(r"\]\((?!https?:|#)([^)\s]+)\)")


class AcceleratorHook(BuildHookInterface):  # type: ignore[type-arg]
    """Compiles the C files of one folder into an extension module."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, and have the module put into the wheel, or into the package when editable."""
        name = "_accelerator" + str(sysconfig.get_config_var("EXT_SUFFIX"))
        sources = Path(self.root, _SOURCES)
        editable = version == "editable"
        folder = sources.parent if editable else Path(tempfile.mkdtemp(prefix="lance-build-"))
        failure = _compile(sources, folder / name)
        if failure:
            self.app.display_warning(f"building without compiled loops: {failure}")
            return
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
        if not editable:
            build_data["force_include"][str(folder / name)] = f"lance_spec/{name}"


class AddressesHook(MetadataHookInterface):
    """Fills in the README and the project's addresses, which stand in one place.

    ``[tool.lance.addresses]`` of pyproject.toml has ``site`` and ``repository``. While they are
    empty the README keeps its links to the files of a checkout.
    """

    def update(self, metadata: dict[str, Any]) -> None:
        """Set ``readme`` and ``urls``."""
        root = Path(self.root)
        project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
        addresses = project["tool"]["lance"]["addresses"]
        text = (root / "README.md").read_text(encoding="utf-8")
        version = project["project"]["version"]
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": absolute_links(text, addresses, version),
        }
        metadata["urls"] = urls(addresses)


def urls(addresses: dict[str, str]) -> dict[str, str]:
    """Return what an index shows beside the README."""
    site, repository = addresses["site"].rstrip("/"), addresses["repository"].rstrip("/")
    found: dict[str, str] = {}
    if site:
        found |= {"Documentation": f"{site}/", "Changelog": f"{site}/changelog.html"}
    if repository:
        found |= {"Source": repository, "Issues": f"{repository}/issues"}
    return found


def absolute_links(text: str, addresses: dict[str, str], version: str) -> str:
    """Return a Markdown text whose links to files of the checkout lead to the site.

    Args:
        text: the README.
        addresses: ``site`` and ``repository``; an empty one leaves its links alone.
        version: of the release, for links to files that are not pages of the site.
    """
    site, repository = addresses["site"].rstrip("/"), addresses["repository"].rstrip("/")

    def absolute(found: re.Match[str]) -> str:
        path, _, part = found[1].partition("#")
        mark = f"#{part}" if part else ""
        if path.startswith("docs/") and site:
            page = path.removeprefix("docs/")
            if page.endswith(".rst"):
                page = f"{page.removesuffix('.rst')}.html"
            return f"]({site}/{page}{mark})"
        if not path.startswith("docs/") and repository:
            return f"]({repository}/blob/v{version}/{path}{mark})"
        return found[0]

    return _LINK.sub(absolute, text)


def _compile(sources: Path, target: Path) -> str | None:
    """Compile a module; return why that was not possible, or None."""
    compiler = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")
    shared = (
        ["-bundle", "-undefined", "dynamic_lookup"] if sys.platform == "darwin" else ["-shared"]
    )
    options = ["-O2", *shared, "-fPIC", "-fvisibility=hidden"]
    include = f"-I{sysconfig.get_path('include')}"
    files = [str(path) for path in sorted(sources.glob("*.c"))]
    command = [*compiler, *options, include, *files, "-o", str(target)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - the compiler that Python was built with
    except OSError as error:
        return f"{compiler[0]}: {error.strerror}"
    return None if done.returncode == 0 else done.stderr.strip()
