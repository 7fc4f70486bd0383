"""The published client of QuestDB with our endpoint, and its slots with our sender."""

import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("questdb", reason="the published client questdb is not installed")
pytest.importorskip("websockets", reason="the extra qwp is not installed")

from lance_server.listeners.qwp.testing import Endpoint, endpoint

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from questdb.ingress import Sender


@pytest.fixture(autouse=True)
def many_senders() -> Iterator[None]:
    """Let the published client say that tests make many senders, which it does by the clock."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "questdb.Sender: Detected a burst of reconnections")
        yield


@pytest.fixture
def qwp(tmp_path: Path) -> Iterator[Endpoint]:
    """Return an endpoint that does what it should, until its script says otherwise."""
    with endpoint(tmp_path / "data") as running:
        yield running


@pytest.fixture
def sf(tmp_path: Path) -> Path:
    """Return a folder for slots."""
    folder = tmp_path / "sf"
    folder.mkdir()
    return folder


def published(conf: str) -> Sender:
    """Return the published sender, which warns of its own future at every turn."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Sender.from_conf(conf)
