"""What is kept of results, and what is drawn of them."""

import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from bench import machine, plots, results

_STATIC = Path(__file__).parents[2] / "docs" / "_static"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return where results are kept; some of this machine are there."""
    results.save(tmp_path / "latest.json", {"a/b": 1})
    return tmp_path / "latest.json"


def test_other_results_stay_when_some_are_measured_again(path: Path) -> None:
    """They come from the same machine."""
    assert results.kept(path, everything=False) == {"a/b": 1}


def test_nothing_stays_when_all_are_measured_again(path: Path) -> None:
    """A scenario that is no more does not stay for ever."""
    assert results.kept(path, everything=True) == {}


def test_results_of_two_machines_are_not_mixed(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their figures could not be compared."""
    monkeypatch.setattr(machine, "facts", lambda: {"cpu": "another"})
    with pytest.raises(results.OtherMachine, match="measure all again"):
        results.kept(path, everything=False)


def test_results_do_not_name_the_machine() -> None:
    """They are published."""
    assert set(machine.facts()) == {"cpu", "cores", "memory_gib", "kernel", "python", "packages"}


def _curve() -> dict[str, Any]:
    slope = {"whole": 0.1, "end": 0.0}
    return {
        "axis": "connections",
        "unit": "frame",
        "process": "server",
        "steepest": 0.0,
        "points": [1, 10],
        "samples": [{"seconds": 1e-6, "cpu": 1e-6, "memory": 2**20}] * 2,
        "slopes": {"seconds": slope, "cpu": slope, "memory": slope},
    }


@pytest.fixture
def drawn(tmp_path: Path) -> Path:
    """Return a folder with the pictures of made-up results."""
    pytest.importorskip("matplotlib")
    outcome = {"ours": [1.0, 2.0], "theirs": [2.0, 2.0], "ratio": 0.75, "judged": 0.75}
    results.save(tmp_path / "latest.json", {"server/ack-p50": outcome, "a/b": outcome})
    results.save(tmp_path / "curves.json", {"ingest/connections": _curve()})
    plots.draw(tmp_path, tmp_path)
    return tmp_path


def test_each_curve_has_a_picture(drawn: Path) -> None:
    """Beside the one of all ratios; both name what they show."""
    ratios, curve = (
        "".join(ET.parse(drawn / name).getroot().itertext())
        for name in ("bench-ratios.svg", "bench-ingest-connections.svg")
    )
    assert "server/ack-p50" in ratios
    assert "connections" in curve


def test_the_same_results_make_the_same_pictures(drawn: Path) -> None:
    """So that a picture changes in the repository only with its figures."""
    before = (drawn / "bench-ratios.svg").read_bytes()
    plots.draw(drawn, drawn)
    assert (drawn / "bench-ratios.svg").read_bytes() == before


def test_every_kept_curve_has_its_picture() -> None:
    """The documentation shows what was measured last."""
    curves = results.load(results.FOLDER / "curves.json")["results"]
    missing = [
        name for name in curves if not (_STATIC / f"bench-{name.replace('/', '-')}.svg").exists()
    ]
    assert curves
    assert missing == []
