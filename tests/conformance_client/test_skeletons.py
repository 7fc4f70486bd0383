"""Drivers to fill in: what `lance-conformance init` writes."""

import shlex
import sys
from pathlib import Path

import pytest

from lance_conformance.app import run_app
from lance_conformance.client.operations import KINDS
from lance_conformance.engine.run.verdict import Exit
from lance_conformance.skeletons import SKELETONS, sources


@pytest.mark.parametrize("language", SKELETONS)
def test_every_language_has_the_file_that_is_filled_in(language: str) -> None:
    """What the command tells to edit is among the files that it writes."""
    assert SKELETONS[language].edit in map(str, sources(language))


@pytest.mark.parametrize("language", SKELETONS)
def test_every_skeleton_names_all_kinds_of_errors(language: str) -> None:
    """Who fills one in finds the kinds where an error is made."""
    text = sources(language)[Path(SKELETONS[language].edit)]
    assert [kind for kind in KINDS if kind not in text] == []


def test_init_writes_a_driver(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Files are written into a folder that is made, and the next commands are told."""
    assert run_app(["init", "rust", str(tmp_path / "new")]) == Exit.OK
    assert (tmp_path / "new" / "src" / "client.rs").is_file()
    assert "cargo build" in capsys.readouterr().out


def test_init_writes_over_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A driver that somebody has filled in stays."""
    mine = tmp_path / "main.go"
    mine.write_text("mine")
    assert run_app(["init", "go", str(tmp_path)]) == Exit.USAGE
    assert (mine.read_text(), "main.go is there already" in capsys.readouterr().err) == (
        "mine",
        True,
    )
    assert not (tmp_path / "go.mod").exists()


def test_an_empty_driver_keeps_the_protocol(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """All that the kit finds fault with is that no operation is filled in."""
    assert run_app(["init", "python", str(tmp_path)]) == Exit.OK
    command = shlex.join([sys.executable, str(tmp_path / "driver.py")])
    assert run_app(["client", "--exec", command, "ack/awaited"]) == Exit.UNREACHABLE
    assert "neither sends a record nor lists topics" in capsys.readouterr().err
