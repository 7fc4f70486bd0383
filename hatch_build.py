"""Builds the compiled loops with the wheel where a C compiler is at hand.

Without one the wheel is pure Python and does the same, slower.
"""

import os
import shlex
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_SOURCE = Path("spec/lance_spec/_accelerator.c")


class AcceleratorHook(BuildHookInterface):  # type: ignore[type-arg]
    """Compiles one C file into an extension module."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, and have the module put into the wheel, or beside its source when editable."""
        name = "_accelerator" + str(sysconfig.get_config_var("EXT_SUFFIX"))
        source = Path(self.root, _SOURCE)
        editable = version == "editable"
        folder = source.parent if editable else Path(tempfile.mkdtemp(prefix="lance-build-"))
        failure = _compile(source, folder / name)
        if failure:
            self.app.display_warning(f"building without compiled loops: {failure}")
            return
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
        if not editable:
            build_data["force_include"][str(folder / name)] = f"lance_spec/{name}"


def _compile(source: Path, target: Path) -> str | None:
    """Compile a module; return why that was not possible, or None."""
    compiler = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")
    shared = (
        ["-bundle", "-undefined", "dynamic_lookup"] if sys.platform == "darwin" else ["-shared"]
    )
    include = f"-I{sysconfig.get_path('include')}"
    command = [*compiler, "-O2", *shared, "-fPIC", include, str(source), "-o", str(target)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - the compiler that Python was built with
    except OSError as error:
        return f"{compiler[0]}: {error.strerror}"
    return None if done.returncode == 0 else done.stderr.strip()
