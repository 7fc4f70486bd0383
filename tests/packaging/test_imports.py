"""What importing the SDK costs, and which package may import which."""

import subprocess
import sys
from importlib import import_module, metadata
from pathlib import Path

import pytest

HEAVY = ("construct", "crc32c", "lz4", "asyncio", "anyio", "trio", "ssl", "click", "rich")
PACKAGES = {
    "lance_spec": ("lance_sdk", "lance_server", "lance_conformance"),
    "lance_sdk": ("lance_server", "lance_conformance"),
    "lance_server": ("lance_sdk", "lance_conformance"),
    "lance_conformance": ("lance_sdk", "lance_server", "lance_spec"),
}


def loaded_by(statement: str) -> set[str]:
    """Return the modules that a fresh interpreter holds after a statement."""
    script = f"{statement}\nimport sys; print(*sys.modules)"
    outcome = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    return set(outcome.stdout.split())


def test_importing_the_sdk_loads_nothing_heavy() -> None:
    """`import lance_sdk` costs next to nothing: what is heavy loads at first use."""
    assert loaded_by("import lance_sdk").isdisjoint(HEAVY)


def test_the_sync_api_needs_no_event_loop() -> None:
    """A synchronous program never loads asyncio, anyio or trio."""
    modules = loaded_by("from lance_sdk import Producer, Consumer, Client")
    assert modules.isdisjoint({"asyncio", "anyio", "trio"})


def test_no_api_loads_the_grammar_source() -> None:
    """The grammar source is the oracle, never part of a running client or server."""
    statement = "from lance_sdk import Producer, AsyncProducer; from lance_server import running"
    assert "construct" not in loaded_by(statement)


@pytest.mark.parametrize(("package", "strangers"), PACKAGES.items())
def test_a_package_runs_without_those_it_must_not_know(
    package: str, strangers: tuple[str, ...]
) -> None:
    """Imports point one way; the contracts in pyproject.toml say the same of the source."""
    modules = {name.partition(".")[0] for name in loaded_by(f"import {package}")}
    assert modules.isdisjoint(strangers)


@pytest.mark.parametrize("package", ["lance_sdk", "lance_conformance"])
def test_a_package_says_the_version_of_the_distribution(package: str) -> None:
    """The kit, which also runs as one file, and the SDK say it without looking for metadata."""
    assert import_module(package).__version__ == metadata.version("lance-sdk")


def test_no_file_names_a_machine() -> None:
    """Nothing in the tree carries an absolute path of the machine it was written on."""
    root = Path(__file__).parents[2]
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=root, capture_output=True, text=True, check=False, timeout=60
    )
    if listed.returncode:
        pytest.skip("not a git checkout: there is no list of the project's own files")
    home = "/" + "root" + "/"
    texts = {name: (root / name).read_bytes() for name in listed.stdout.split("\0") if name}
    assert [name for name, text in texts.items() if home.encode() in text] == []
