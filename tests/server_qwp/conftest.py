"""An endpoint for each test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("websockets", reason="the extra qwp is not installed")

from lance_server.listeners.qwp.testing import Endpoint, endpoint


@pytest.fixture
def qwp(tmp_path: Path) -> Iterator[Endpoint]:
    """Return an endpoint that does what it should, until its script says otherwise."""
    with endpoint(tmp_path / "data") as running:
        yield running
