"""What the tests of real faults share."""

from pathlib import Path

import pytest
from tests.server_faults.preload import build_library


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library that fails, delays and records the calls of a process."""
    return build_library(tmp_path_factory.mktemp("library"))
