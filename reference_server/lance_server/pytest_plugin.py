"""A server for the tests of any project: ``pytest_plugins = ["lance_server.pytest_plugin"]``."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from lance_server.embedded import EmbeddedServer, running


@pytest.fixture
def lance_server(tmp_path: Path) -> Iterator[EmbeddedServer]:
    """A running server with an empty log; its data is gone after the test."""
    with running(tmp_path / "lance-server") as server:
        yield server
