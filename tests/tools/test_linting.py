"""Linters of other people on the files that put the server and the kit somewhere."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


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


def test_workflows_are_valid() -> None:
    """Names of jobs, expressions and inputs of actions are right."""
    if shutil.which("actionlint") is None:
        pytest.skip("actionlint is not installed: go install github.com/rhysd/actionlint/cmd/…")
    check("actionlint", *sorted((ROOT / ".github" / "workflows").glob("*.yml")))
