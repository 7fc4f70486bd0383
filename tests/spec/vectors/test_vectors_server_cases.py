"""The cases for servers are well formed, and slips in them are found."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lance_spec import vectors
from lance_spec.vectors._cases import FILE, problems
from lance_spec.vectors._check import check


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the vectors to damage."""
    copy = tmp_path / "vectors"
    shutil.copytree(vectors.root(), copy, ignore=shutil.ignore_patterns("generate", "adapters"))
    return copy


def damaged(folder: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    """Change the file in a folder."""
    document = json.loads((folder / FILE).read_text())
    change(document)
    (folder / FILE).write_text(json.dumps(document))
    return folder


def first(document: dict[str, Any]) -> dict[str, Any]:
    """The first case, a frame with a wrong magic beside the right one."""
    found: dict[str, Any] = document["testGroups"][0]["tests"][0]
    return found


def test_the_cases_are_well_formed() -> None:
    """Counts, ids, areas, citations and faults."""
    assert list(problems(vectors.root())) == []


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda d: d.update(numberOfTests=1), "numberOfTests is 1"),
        (lambda d: first(d).update(id="tlv/elsewhere"), "stands in the area hdr"),
        (lambda d: d["testGroups"].append(d["testGroups"][0]), "is the id of 2 cases"),
        (lambda d: first(d)["answer"].update(cite="AMB-99"), "AMB-99 is not a row"),
        (
            lambda d: first(d).update(fault={"kind": "set", "field": "flags", "value": 0x20}),
            "its fault changes nothing",
        ),
    ],
)
def test_slips_are_found(
    folder: Path, change: Callable[[dict[str, Any]], object], complaint: str
) -> None:
    """What a schema cannot say is checked as well."""
    found = list(problems(damaged(folder, change)))
    assert any(complaint in problem for problem in found), found


def test_a_slip_against_the_schema_is_found_with_the_families(folder: Path) -> None:
    """Checking all vectors checks the cases, too."""
    damaged(folder, lambda d: first(d).pop("fault"))
    assert any(problem.startswith(f"{FILE}: ") for problem in check(folder))
