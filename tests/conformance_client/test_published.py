"""The published clients, asked for real: what is right about them passes, the rest is found out."""

import os
import shlex
import sys
from pathlib import Path

import pytest

from lance_conformance.app import run_app
from lance_conformance.engine.run.verdict import Exit

DRIVERS = Path(__file__).parents[2] / "conformance" / "drivers"
RIGHT = ["admin/get-request", "rec/reads-01", "piece/cut-at-44", "head/payload-crc-fetched"]


def ask(command: str, *cases: str) -> int:
    """The exit code of a run in the dialect that they speak."""
    options = ["--dialect", "deployed", "--timeout-scale", "2", "-q"]
    return run_app(["client", "--exec", command, *options, *cases])


@pytest.fixture
def python_client() -> str:
    """The driver of the published Python client."""
    pytest.importorskip("lnc_client", reason="needs lnc-client: tox run -e interop")
    return f"{sys.executable} {DRIVERS / 'lnc_client_py.py'}"


@pytest.fixture
def rust_client() -> str:
    """The driver of the published Rust client, where it was built."""
    folder = os.environ.get("LANCE_INTEROP_RUST")
    if not folder or not (built := Path(folder, "debug", "lance-conformance-driver")).exists():
        pytest.skip("the Rust client is not built; run: tox run -e interop")
    return shlex.quote(str(built))


def test_what_is_right_about_the_python_client_passes(python_client: str) -> None:
    """Requests, records, cuts, and the payload checksum of data."""
    assert ask(python_client, *RIGHT) == Exit.OK


def test_the_python_client_believes_any_version(python_client: str) -> None:
    """A TopicResponse of version 2 is taken for what it says."""
    assert ask(python_client, "head/version-2-topics") == Exit.NONCONFORMING


def test_what_is_right_about_the_rust_client_passes(rust_client: str) -> None:
    """Requests, records, cuts, and the payload checksum of data."""
    assert ask(rust_client, *RIGHT) == Exit.OK
