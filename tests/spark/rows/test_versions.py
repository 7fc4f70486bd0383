"""Versions of Spark that are too old for the format."""

import subprocess
import sys

import pytest

from lance_sdk.errors import ConfigError
from lance_sdk.spark import register, too_old

pyspark = pytest.importorskip("pyspark", reason="pip install 'lance-sdk[spark]'")


@pytest.mark.parametrize("version", ["4.2.0", "4.3.1", "5.0.0.dev1", "10.0"])
def test_new_enough(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By number, and not by text."""
    monkeypatch.setattr(pyspark, "__version__", version)
    assert too_old() is None


@pytest.mark.parametrize("version", ["4.1.4", "4.0.0", "3.5.9"])
def test_too_old(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Registering it by hand says so at once."""
    monkeypatch.setattr(pyspark, "__version__", version)
    with pytest.raises(ConfigError, match=f"^Spark {version} is too old .* needs 4.2 or later"):
        register(None)  # type: ignore[arg-type]


def test_a_spark_that_is_too_old_finds_a_format_that_says_so() -> None:
    """It would say that there is none, as what it lacks cannot be imported."""
    script = (
        "import pyspark, sys; pyspark.__version__ = '4.1.4'; "
        "sys.modules['lance_sdk.spark.source'] = None; "  # it cannot be imported there
        "from pyspark_lwp import DefaultSource; print(DefaultSource.name()); DefaultSource({})"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], check=False, capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "lwp\n"
    assert "ConfigError: Spark 4.1.4 is too old" in done.stderr
