"""Ways to call ``lwp``: in this process, or as a program of its own."""

import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NoReturn

import click
import pytest
from click.testing import CliRunner, Result

from lance_sdk.cli import _app
from lance_server.embedded import EmbeddedServer, running

Call = Callable[..., Result]


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the developer has set does not decide a test."""
    for name in ("LANCE_URL", "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)


class Program(click.Command):
    """What a shell starts: `run`, and its result as the exit code."""

    def __init__(self) -> None:
        super().__init__("lwp")

    def main(self, args: Sequence[str], **_options: object) -> NoReturn:
        """Run and exit, as the console script does."""
        sys.exit(_app.run(args))


@pytest.fixture
def lwp() -> Call:
    """Call ``lwp`` in this process; stdout and stderr are kept apart."""

    def call(*arguments: str, stdin: str | bytes | None = None) -> Result:
        vars(_app.lwp).pop("_extensions", None)  # found once per process, and tests add some
        return CliRunner().invoke(Program(), list(arguments), input=stdin)

    return call


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[EmbeddedServer]:
    """A server that LANCE_URL points at."""
    with running(tmp_path / "data") as handle:
        monkeypatch.setenv("LANCE_URL", handle.url)
        yield handle


@pytest.fixture
def add_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Install a distribution that brings one command: its name and its module's source."""

    def add(name: str, source: str) -> None:
        module = f"stranger_{name}"
        (tmp_path / f"{module}.py").write_text(source)
        info = tmp_path / f"{module}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[lance_sdk.commands]\n{name} = {module}:command\n")
        monkeypatch.syspath_prepend(str(tmp_path))
        sys.modules.pop(module, None)

    return add
