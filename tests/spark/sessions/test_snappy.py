"""Snappy for Java is told which library to load where musl is installed beside glibc."""

import platform
import sys
from pathlib import Path

import pytest

from lance_sdk.spark import snappy

on_glibc = pytest.mark.skipif(
    sys.platform != "linux" or platform.libc_ver()[0] != "glibc", reason="only glibc has a choice"
)


@on_glibc
def test_beside_musl_java_is_told_the_library_for_glibc(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is taken out of Spark's own archive."""
    pytest.importorskip("pyspark", reason="pip install 'lance-sdk[spark]'")
    monkeypatch.setattr(snappy, "MUSL", tmp_path)
    options = snappy.snappy_options(tmp_path)
    assert f"-Dorg.xerial.snappy.lib.path={tmp_path}" in options.split()
    assert (tmp_path / "libsnappyjava.so").read_bytes().startswith(b"\x7fELF")


def test_without_musl_java_chooses_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is written."""
    monkeypatch.setattr(snappy, "MUSL", tmp_path / "none")
    assert snappy.snappy_options(tmp_path) == ""
    assert list(tmp_path.iterdir()) == []
