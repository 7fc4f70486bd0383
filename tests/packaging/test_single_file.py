"""The conformance kit as one file, in an interpreter that has nothing installed."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from lance_server import running

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def single_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file, as a release builds it."""
    path = ROOT / "release" / "single_file.py"
    spec = importlib.util.spec_from_file_location("release_single_file", path)
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    target = tmp_path_factory.mktemp("single") / "lance-conformance.pyz"
    script.build(target)
    return target


def run(single_file: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run it without any package that is installed here."""
    command = [sys.executable, "-I", "-S", single_file, *arguments]
    return subprocess.run(
        command, cwd=single_file.parent, capture_output=True, text=True, check=False, timeout=110
    )


def test_it_shows_its_help(single_file: Path) -> None:
    """Nothing but Python is needed."""
    done = run(single_file, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert "lance-conformance --target HOST:PORT" in done.stdout


def test_it_judges_a_server(single_file: Path, tmp_path: Path) -> None:
    """Cases in Python, cases among the vectors, and the page."""
    with running(tmp_path) as server:
        target = server.url.removeprefix("lance://")
        page = str(single_file.with_name("report.html"))
        done = run(single_file, "--target", target, "axis", "tlv", "--html", page)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "conforming: every MUST that was asked is kept" in done.stdout
    assert Path(page).read_text(encoding="utf-8").startswith("<!")


@pytest.mark.parametrize("protocol", ["lwp", "rustlog", "fluvio"])
def test_it_has_the_cases_of_each_protocol(single_file: Path, protocol: str) -> None:
    """As many as an installation."""
    installed = [sys.executable, "-m", "lance_conformance", "list", "--protocol", protocol]
    expected = subprocess.run(installed, capture_output=True, text=True, check=True, timeout=60)
    assert run(single_file, "list", "--protocol", protocol).stdout == expected.stdout
