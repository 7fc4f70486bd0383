"""What the wheel holds, and what it needs once it is installed."""

import os
import shutil
import subprocess
import sys
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PACKAGES = ("lance_spec", "lance_sdk", "pyspark_lwp", "lance_server", "lance_conformance")
# What an interpreter needs of its own accord to import the public names.
CORE_MODULES = """
import importlib.util, json, sys
import lance_sdk, lance_server, lance_conformance, lance_spec
from lance_sdk import AsyncClient, AsyncConsumer, AsyncProducer, Client, Consumer, Producer
from lance_server import running
from lance_spec import vectors
optional = ["click", "rich", "hypothesis", "trio", "pytest", "pyspark", "websockets", "redis"]
print(json.dumps({
    "vectors": len(list(vectors.root().glob("*.json"))),
    "where": str(vectors.root()),
    "optional": [name for name in optional if importlib.util.find_spec(name)],
}))
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the wheel, built from this tree."""
    target = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--quiet", "-w", target, ROOT]
    subprocess.run(command, check=True, timeout=110)
    (built,) = target.glob("lance_sdk-*.whl")
    return built


@pytest.fixture(scope="module")
def bare_python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an interpreter in which only the wheel and its core dependencies are installed."""
    home = tmp_path_factory.mktemp("bare")
    venv.create(home, with_pip=True)
    python = home / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", wheel], check=True, timeout=110)
    return python


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler to build with")
def test_compiled_loops_are_built_where_a_compiler_is(wheel: Path) -> None:
    """The wheel of a machine with a C compiler holds the compiled loops, and says so in its tag."""
    names = zipfile.ZipFile(wheel).namelist()
    assert [Path(name).suffix for name in names if "_accelerator.c" in name] == [".so"]
    assert [name for name in names if "/native/" in name] == []
    assert "none-any" not in wheel.name


def test_without_a_compiler_the_wheel_is_pure(tmp_path: Path) -> None:
    """Where nothing compiles, the same wheel is built without the compiled loops."""
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--quiet", "-w", tmp_path, ROOT]
    subprocess.run(command, check=True, timeout=110, env={**os.environ, "CC": "no-such-compiler"})
    (built,) = tmp_path.glob("lance_sdk-*.whl")
    assert built.name.endswith("py3-none-any.whl")


def run(python: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run an interpreter away from this tree, with nothing of ours on its path."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    return subprocess.run(
        [python, *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=python.parent,
        env=environment,
        check=False,
    )


def test_every_package_is_typed(wheel: Path) -> None:
    """Each of the packages says that it carries types."""
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {f"{package}/py.typed" for package in PACKAGES} <= names


def test_nothing_but_the_packages_is_shipped(wheel: Path) -> None:
    """The wheel installs these packages and its own metadata, nothing else."""
    tops = {name.split("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert tops - set(PACKAGES) == {f"lance_sdk-{PROJECT['version']}.dist-info"}


def test_the_core_needs_four_packages() -> None:
    """A core install pulls in crc32c, lz4, construct and anyio only."""
    names = {requirement.split(">")[0] for requirement in PROJECT["dependencies"]}
    assert names == {"crc32c", "lz4", "construct", "anyio"}


def test_every_named_extra_exists() -> None:
    """The extras that the documentation names can be asked for."""
    wanted = (
        "server conformance cli msgpack qwp pkcs12 dataframe fluvio spark redis postgres otel "
        "uvloop demo test docs cluster all"
    )
    assert set(wanted.split()) == set(PROJECT["optional-dependencies"])


def test_a_core_install_imports_every_public_name(bare_python: Path) -> None:
    """Without any extra, SDK, server, kit and vectors are there."""
    outcome = run(bare_python, "-W", "error", "-c", CORE_MODULES)
    assert outcome.returncode == 0, outcome.stderr
    assert '"optional": []' in outcome.stdout


def test_vectors_are_found_in_the_installed_wheel(bare_python: Path) -> None:
    """The vectors travel inside the wheel."""
    outcome = run(bare_python, "-c", CORE_MODULES)
    assert "site-packages" in outcome.stdout
    assert '"vectors": 0' not in outcome.stdout


def test_the_kit_finds_its_cases_in_the_installed_wheel(bare_python: Path) -> None:
    """What is data travels with the vectors, and is found without loading their package."""
    code = (
        "import sys; from lance_conformance.server.cases.tables import path, rows; "
        "print(path(), len([*rows()])); assert 'lance_spec' not in sys.modules"
    )
    outcome = run(bare_python, "-c", code)
    assert outcome.returncode == 0, outcome.stderr
    where, count = outcome.stdout.split()
    assert where.endswith("lance_spec/_vectors/server_case.json")
    assert int(count) > 100


@pytest.mark.parametrize("command", ["lwp", "lance-server", "lance-conformance"])
def test_a_command_without_its_extra_says_what_to_install(bare_python: Path, command: str) -> None:
    """One line names the missing extra; there is no traceback."""
    outcome = run(bare_python, str(bare_python.with_name(command)), "--help")
    assert outcome.returncode == 2
    assert "pip install 'lance-sdk[" in outcome.stderr
    assert "Traceback" not in outcome.stderr
