"""Linters of other people on the files that put the server and the kit somewhere."""

import subprocess
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "spec" / "lance_spec" / "native").glob("*.c"))


def check(*command: str | Path) -> None:
    """Run a linter, which must find nothing."""
    outcome = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr


@pytest.mark.parametrize("folder", ["deploy", "conformance"])
def test_an_image_is_built_as_hadolint_wants_it(folder: str) -> None:
    """No rule is broken, or the reason stands beside it."""
    check("hadolint", ROOT / folder / "Dockerfile")


def test_yaml_is_written_without_doubt() -> None:
    """Manifests, compose files, workflows and the action have no doubled key and no bad indent."""
    rules = "{extends: relaxed, rules: {line-length: disable}}"
    places = [ROOT / name for name in ("deploy", ".github", "action.yml")]
    check("yamllint", "--strict", "--config-data", rules, *places)


def test_workflows_are_valid(actionlint: str) -> None:
    """Names of jobs, expressions and inputs of actions are right."""
    check(actionlint, *sorted((ROOT / ".github" / "workflows").glob("*.yml")))


@pytest.mark.parametrize("folder", ["kubernetes", "kubernetes-cluster"])
def test_kubernetes_knows_every_field_of_the_manifests(
    folder: str, kustomize: str, tmp_path: Path
) -> None:
    """The patches fit what they change, and each object is what the API's schema asks for."""
    target = tmp_path / "objects.yaml"
    check(kustomize, "build", ROOT / "deploy" / folder, "--output", target)
    check("kubernetes-validate", "--strict", target)


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_the_compiled_loops_build_for_musl(path: Path, musl_gcc: str, tmp_path: Path) -> None:
    """Alpine's C library has every function that they call."""
    include = f"-I{sysconfig.get_path('include')}"
    check(musl_gcc, "-Wall", "-Werror", "-fPIC", include, "-c", path, "-o", tmp_path / "it.o")
