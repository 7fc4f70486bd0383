"""The licences of what an installation brings are listed, and a release is not made without one."""

import tomllib
from importlib.metadata import Distribution, PackagePath
from os import PathLike
from pathlib import Path
from types import ModuleType

import pytest
from packaging.requirements import Requirement
from tests.packaging.test_release import loaded

ROOT = Path(__file__).parents[2]


class Installed(Distribution):
    """A package that says of itself what it is given."""

    def __init__(self, **told: str) -> None:
        self._text = "".join(
            f"{name.replace('_', '-')}: {value}\n"
            for name, value in {"Name": "p", "Version": "1", **told}.items()
        )

    def read_text(self, filename: str) -> str | None:
        """Return the metadata."""
        return self._text if filename == "METADATA" else None

    def locate_file(self, path: str | PathLike[str]) -> PackagePath:
        """Have no files."""
        raise FileNotFoundError(path)


@pytest.fixture(scope="module")
def licences() -> ModuleType:
    """The script that lists them."""
    return loaded(ROOT / "release" / "licences.py")


def test_every_dependency_of_a_user_is_listed() -> None:
    """Whoever adds one runs the script again."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    ours = [
        text for name, group in extras.items() if name not in {"test", "docs"} for text in group
    ]
    named = {Requirement(text).name for text in [*project["dependencies"], *ours]} - {"lance-sdk"}
    rows = (ROOT / "release" / "licences.md").read_text().splitlines()[2:]
    assert named <= {row.split(" | ")[0].removeprefix("| ") for row in rows}


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ({"License_Expression": "MIT", "License": "something else"}, "MIT"),
        ({"Classifier": "License :: OSI Approved :: BSD License"}, "BSD License"),
        ({"License": "Apache-2.0"}, "Apache-2.0"),
        ({"Classifier": "License :: OSI Approved"}, None),
        ({}, None),
    ],
)
def test_a_licence_is_found_where_it_is_told(
    licences: ModuleType, told: dict[str, str], expected: str | None
) -> None:
    """The expression counts most; a classifier that names none counts for nothing."""
    assert licences.licence(Installed(**told)) == expected


def test_what_is_not_known_is_told(licences: ModuleType) -> None:
    """A package that is missing, and one that says nothing: neither becomes a row."""
    text, wrong = licences.table(
        {"absent": None, "silent": Installed(), "p": Installed(License="MIT")}
    )
    assert text.splitlines()[2:] == ["| p | 1 | MIT |"]
    assert wrong == ["absent is not installed", "silent 1 does not say its licence"]
