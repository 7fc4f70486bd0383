"""The checks that need programs from outside; they run only in the environment that brings them.

``LANCE_TOOLS`` names the folder that `install.sh` filled. Without it nothing here is collected;
with it a missing program is a failure, never a skip.
"""

import os
import shutil
from pathlib import Path

import pytest

FOLDER = os.environ.get("LANCE_TOOLS", "")

collect_ignore_glob = [] if FOLDER else ["test_*.py"]


def program(name: str) -> str:
    """Return the path of a program that must be there."""
    found = shutil.which(name, path=f"{os.environ['PATH']}:{FOLDER}/bin")
    if found is None:
        pytest.fail(f"{name} is not installed; run tests/tools/install.sh {FOLDER}")
    return found


@pytest.fixture(scope="session")
def node_folder() -> Path:
    """The folder with the packages of node."""
    folder = Path(FOLDER).resolve()
    if not (folder / "node_modules" / "kaitai-struct-compiler").is_dir():
        pytest.fail(f"no Kaitai compiler in {folder}; run tests/tools/install.sh {FOLDER}")
    return folder


@pytest.fixture(scope="session")
def node() -> str:
    """What runs the Kaitai compiler."""
    return program("node")


@pytest.fixture(scope="session")
def tshark() -> str:
    """What runs the dissector."""
    return program("tshark")


@pytest.fixture(scope="session")
def cc() -> str:
    """What compiles the C headers."""
    return program("cc")


@pytest.fixture(scope="session", params=["cc", "musl-gcc"])
def any_cc(request: pytest.FixtureRequest) -> str:
    """Compilers for the usual C library and for musl, whose programs both run here."""
    return program(request.param)


@pytest.fixture(scope="session")
def musl_gcc() -> str:
    """What compiles for musl."""
    return program("musl-gcc")


@pytest.fixture(scope="session")
def actionlint() -> str:
    """What checks workflows."""
    return program("actionlint")


@pytest.fixture(scope="session")
def kustomize() -> str:
    """What puts manifests and their patches together."""
    return program("kustomize")


@pytest.fixture(scope="session")
def promtool() -> str:
    """Prometheus' own checker of its files."""
    return program("promtool")


@pytest.fixture(scope="session")
def cxx() -> str:
    """What compiles the C headers as C++."""
    return program("c++")
