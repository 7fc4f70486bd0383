"""The workflows and the action name files, environments and options that there are."""

import re
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from lance_conformance.app import run

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())


def values_of(node: Any, key: str) -> list[str]:
    """Return every text that stands under a key, at any depth."""
    if isinstance(node, list):
        return [found for each in node for found in values_of(each, key)]
    if not isinstance(node, dict):
        return []
    own = [node[key]] if isinstance(node.get(key), str) else []
    return own + [found for each in node.values() for found in values_of(each, key)]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_names_files_that_are_there(path: Path) -> None:
    """Images, scripts and the other workflows."""
    document = yaml.safe_load(path.read_text())
    named = [each for each in values_of(document, "file") if "${{" not in each]
    named += [each.removeprefix("./") for each in values_of(document, "uses") if each[0] == "."]
    named += re.findall(r"python (\S+\.py)\b", path.read_text())
    assert [each for each in named if not (ROOT / each).is_file()] == []


def test_the_workflows_run_environments_that_there_are() -> None:
    """Those of ``tox.ini``."""
    text = "".join(path.read_text() for path in WORKFLOWS)
    named = set(re.findall(r"tox run -e ([a-z-]+)\b", text))
    for listed in re.findall(r"environment: \[(.+)\]", text):
        named |= set(listed.split(", "))
    assert {f"[testenv:{each}]" for each in named - {"py"}} <= set(
        (ROOT / "tox.ini").read_text().splitlines()
    )


def test_the_action_gives_the_kit_options_that_it_has() -> None:
    """Each option in its script is one of ``lance-conformance run``."""
    (script,) = (step["run"] for step in ACTION["runs"]["steps"] if step.get("id") == "run")
    given = set(re.findall(r"(?<!\S)--[a-z-]+", script))
    assert isinstance(run, click.Command)
    assert given <= {option for each in run.params for option in each.opts}


def test_the_action_uses_each_input() -> None:
    """None is declared in vain."""
    text = (ROOT / "action.yml").read_text()
    assert [each for each in ACTION["inputs"] if f"inputs.{each} }}}}" not in text] == []


def test_the_image_of_the_kit_ends_with_its_command() -> None:
    """It has two stages, is not root, and installs the kit's extra."""
    text = (ROOT / "conformance" / "Dockerfile").read_text()
    assert text.count("\nFROM ") == 2
    assert "USER 1000:1000\n" in text
    assert '"lance-sdk[conformance]"' in text
    assert 'ENTRYPOINT ["lance-conformance"]' in text
