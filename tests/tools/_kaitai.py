"""The generated Kaitai specifications, compiled to Python by the real compiler."""

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

from lance_spec.emit.kaitai import description, nested_description
from lance_spec.ir.families import composed, families


def compiled(node: str, node_folder: Path, folder: Path) -> dict[str, ModuleType]:
    """Return the module of every family that has a Kaitai form."""
    texts = {name: description.render(family) for name, family in families().items()}
    texts |= {
        name: nested_description.render(composed()[name]) for name in nested_description.FAMILIES
    }
    for name, text in texts.items():
        (folder / f"lance_{name}.ksy").write_text(text)
    files = sorted(str(path) for path in folder.glob("*.ksy"))
    arguments = [node, str(node_folder / "compile_ksy.js"), str(folder), *files]
    finished = subprocess.run(
        arguments, capture_output=True, text=True, check=False, timeout=200, cwd=node_folder
    )
    assert finished.returncode == 0, finished.stderr
    sys.path.insert(0, str(folder))  # one module imports another
    try:
        return {name: _imported(folder / f"lance_{name}.py") for name in texts}
    finally:
        sys.path.remove(str(folder))


def _imported(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
