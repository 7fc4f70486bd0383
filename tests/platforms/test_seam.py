"""Names that only some systems have are used in one module of the SDK, and nowhere in the kit."""

import ast
import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from lance_sdk._io import platform

ROOT = Path(__file__).parents[2]
SEAM = ROOT / "sdk" / "lance_sdk" / "_io" / "platform.py"
PACKAGES = (
    ROOT / "sdk" / "lance_sdk",
    ROOT / "spec" / "lance_spec",
    ROOT / "conformance" / "lance_conformance",
)
# Behind a look at ``sys.platform``, which the type checker follows as on each system.
GUARDED = {
    ROOT / "conformance" / "lance_conformance" / "engine" / "socket_bytes.py",
    ROOT / "conformance" / "lance_conformance" / "engine" / "restarting.py",
    ROOT / "conformance" / "lance_conformance" / "client" / "process.py",
}


def limited() -> ModuleType:
    """Return the module that hides names; it hides none here."""
    path = Path(__file__).parent / "site" / "sitecustomize.py"
    spec = importlib.util.spec_from_file_location("limited_python", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def sources() -> Iterator[Path]:
    """Yield the modules of the packages, without the seam."""
    for package in PACKAGES:
        yield from (path for path in package.rglob("*.py") if path != SEAM)


def used(path: Path) -> Iterator[tuple[str, str]]:
    """Yield each name of a module that a source uses, as in ``os.fork``."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            yield node.value.id, node.attr
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from ((node.module, alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)


@pytest.fixture(scope="module")
def hidden() -> set[tuple[str, str]]:
    """What Windows lacks, as module and name; an empty name stands for the module."""
    module = limited()
    names = module._names(module._LINUX, module._POSIX)
    found = {(owner, name) for owner, group in names.items() for name in group}
    return found | {(name, "") for name in module._POSIX_MODULES}


def test_only_the_seam_names_what_another_system_lacks(hidden: set[tuple[str, str]]) -> None:
    """Whoever needs one adds a function to the seam, with what the other systems do instead."""
    found = [
        f"{path.relative_to(ROOT)}: {'.'.join(filter(None, name))}"
        for path in sources()
        if path not in GUARDED
        for name in used(path)
        if name in hidden
    ]
    assert found == []


def test_the_seam_names_some_of_them(hidden: set[tuple[str, str]]) -> None:
    """So this test sees what it looks for."""
    assert {("os", "posix_fallocate"), ("os", "register_at_fork"), ("fcntl", "")} <= {
        name for name in used(SEAM) if name in hidden
    }


@pytest.mark.skipif("LANCE_PLATFORM" not in os.environ, reason="tox run -e windows,macos does it")
def test_this_process_sees_the_other_system() -> None:
    """The hook by which pytest rewrites assertions would go round the one that hides names."""
    seen = vars(platform)
    assert (
        seen["sys"].platform
        == {"windows": "win32", "macos": "darwin"}[os.environ["LANCE_PLATFORM"]]
    )
    assert not hasattr(seen["select"], "epoll")
    assert platform.boot_number() == 0
