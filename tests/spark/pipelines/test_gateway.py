"""The Java side of a session: what of it is passed on, and which Python it starts."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lance_sdk.spark.pipelines.gateway import _pass_on, quick_python


def test_what_java_says_is_passed_on_but_for_its_notice(capfd: pytest.CaptureFixture[str]) -> None:
    """Byte for byte, also a last line without an end."""
    reading, writing = os.pipe()
    said = b"WARNING: Using incubator modules: jdk.incubator.vector\nerror: \xc3\xa9\nout of mem"
    os.write(writing, said)
    os.close(writing)
    _pass_on(reading)
    assert capfd.readouterr().err == "error: é\nout of mem"


def test_sparks_python_looks_where_this_one_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not first into what Spark puts before; arguments reach it as they are."""
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}/my modules")
    program = quick_python(tmp_path)
    assert program == str(tmp_path / "python")
    script = (
        "import os, sys; print(os.environ['PYTHONPATH'], sys.executable, *sys.argv[1:], sep='|')"
    )
    told = subprocess.run(
        [program, "-c", script, "an argument"],
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
        env=os.environ | {"PYTHONPATH": "/spark/python/lib/pyspark.zip"},
    ).stdout
    assert told == f"{tmp_path}/my modules|{sys.executable}|an argument\n"


def test_where_programs_cannot_be_run_python_is_started_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a disk that is mounted without the right to run what is on it."""
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    assert quick_python(tmp_path) == "/nowhere/python"
