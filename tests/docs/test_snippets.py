"""The code on every page does what the page says: it is run as a reader would run it."""

import os
import re
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.docs.snippets import DOCS, ROOT, Snippet, snippets

PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.rst"))]
RUN = ("python", "console")


@dataclass
class Sandbox:
    """Runs a page's snippets one after another, with one set of names, against the same servers."""

    addresses: dict[str, str]
    names: dict[str, Any] = field(default_factory=lambda: {"__name__": "page"})

    def run(self, snippet: Snippet) -> None:
        """Run one snippet."""
        if snippet.language == "python":
            self._python(snippet)
        else:
            for command, expected in dialogue(snippet.text):
                self._shell(snippet, command, expected)

    def _python(self, snippet: Snippet) -> None:
        code = "\n" * (snippet.line - 1) + self._address(snippet.text)
        exec(compile(code, snippet.page, "exec"), self.names)

    def _shell(self, snippet: Snippet, command: str, expected: str) -> None:
        path = f"{sysconfig.get_path('scripts')}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", self._address(command)],
            check=False,
            capture_output=True,
            env={**os.environ, "PATH": path, "NO_COLOR": "1", "COLUMNS": "100"},
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, f"{snippet}: {command}: {done.stderr}"
        shown = done.stdout
        for written, real in self.addresses.items():
            shown = shown.replace(real, written)
        assert matches(expected, shown), f"{snippet}: {command} printed:\n{shown}"

    def _address(self, text: str) -> str:
        for written, real in self.addresses.items():
            text = text.replace(written, real)
        return text


def dialogue(text: str) -> Iterator[tuple[str, str]]:
    """Yield each command of a console snippet with the output that is shown below it."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        yield command, output


def matches(expected: str, shown: str) -> bool:
    """Whether output is as the page shows it; ``...`` on the page stands for anything."""
    pattern = ".*".join(re.escape(part) for part in expected.strip().split("..."))
    lines = "\n".join(line.rstrip() for line in shown.strip().splitlines())
    return re.fullmatch(pattern, lines, re.DOTALL) is not None


@pytest.fixture
def sandbox(addresses: dict[str, str]) -> Sandbox:
    """Where a page's code runs: fresh servers stand in for those on the page."""
    return Sandbox(addresses)


def _pages_with_code() -> list[Any]:
    pages = [page for page in PAGES if snippets(page, *RUN)]
    return [pytest.param(page, id=str(page.relative_to(ROOT))) for page in pages]


@pytest.mark.parametrize("page", _pages_with_code())
def test_the_code_on_a_page_runs(page: Path, sandbox: Sandbox) -> None:
    """Every Python and console snippet runs, in reading order, and prints what is shown."""
    for snippet in snippets(page, *RUN):
        sandbox.run(snippet)


@pytest.mark.parametrize("snippet", snippets(DOCS / "migrating.rst", "py"), ids=str)
def test_code_for_other_clients_parses(snippet: Snippet) -> None:
    """It stands before the same program in ours; ``tox run -e interop,cluster`` run it."""
    compile(snippet.text, snippet.page, "exec")
    shown = snippets(snippet.page, "py", "python")
    assert shown[shown.index(snippet) + 1].language == "python"


def test_the_pages_that_must_have_code_have_it() -> None:
    """README and quickstart show Python, and the quickstart the shell."""
    assert len(snippets(ROOT / "README.md", "python")) == 1
    assert len(snippets(DOCS / "quickstart.rst", "python")) >= 6
    assert snippets(DOCS / "quickstart.rst", "console")


def test_the_tests_on_the_page_about_testing_pass(tmp_path: Path) -> None:
    """With the fixtures that installing the package brings."""
    examples = [each.text for each in snippets(DOCS / "guide" / "testing.rst", "python")]
    module = tmp_path / "test_example.py"
    module.write_text("".join(text for text in examples if "def test_" in text))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(module)],
        check=False,
        capture_output=True,
        cwd=tmp_path,
        text=True,
        timeout=60,
    )
    assert re.search(r"^4 passed", done.stdout, re.MULTILINE), done.stdout + done.stderr


def test_the_readme_producer_sends_what_its_consumer_prints(
    sandbox: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    """With its offset and its key."""
    for snippet in snippets(ROOT / "README.md", "python"):
        sandbox.run(snippet)
    assert capsys.readouterr().out.splitlines() == ["0 b'customer-7' b'one'"]


def test_the_readme_shows_a_ten_line_program() -> None:
    """Producer and consumer together are at most twelve lines of code."""
    code = "".join(snippet.text for snippet in snippets(ROOT / "README.md", "python"))
    assert len([line for line in code.splitlines() if line.strip()]) <= 12


@pytest.mark.parametrize(
    ("expected", "shown", "verdict"),
    [
        ("one\ntwo\n", "one\ntwo\n", True),
        ("rtt ... ms\n", "rtt 0.21 ms\n", True),
        ("one\n", "two\n", False),
        ("one\n", "one\ntwo\n", False),
        ("", "", True),
        ("", "unexpected\n", False),
    ],
)
def test_output_must_be_what_the_page_shows(expected: str, shown: str, verdict: bool) -> None:
    """Only ``...`` stands for anything; a command shown without output must print nothing."""
    assert matches(expected, shown) is verdict
