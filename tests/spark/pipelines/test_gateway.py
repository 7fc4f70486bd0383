"""The Java side of a session, and what of it is passed on."""

import os

import pytest

from lance_sdk.spark.pipelines.gateway import _pass_on


def test_what_java_says_is_passed_on_but_for_its_notice(capfd: pytest.CaptureFixture[str]) -> None:
    """Byte for byte, also a last line without an end."""
    reading, writing = os.pipe()
    said = b"WARNING: Using incubator modules: jdk.incubator.vector\nerror: \xc3\xa9\nout of mem"
    os.write(writing, said)
    os.close(writing)
    _pass_on(reading)
    assert capfd.readouterr().err == "error: é\nout of mem"
