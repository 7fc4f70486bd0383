"""Topics, segment files and slots as DataFrames of Spark, and pipelines made of them.

::

    from lance_sdk.spark import register

    register(spark)
    source = spark.read.format("lwp").option("servers", "localhost:1992")
    orders = source.option("topic", "orders").load()

The module ``pyspark_lwp``, which comes along, makes Spark find the format without ``register``
where this package is installed. Needs the extra ``spark`` and Java 17.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from lance_sdk.errors import ConfigError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lance_sdk.spark.errors import CheckpointError, DataDamaged, DataLost, SinkError
    from lance_sdk.spark.options import Options
    from lance_sdk.spark.source import LwpDataSource

__all__ = [
    "CheckpointError",
    "DataDamaged",
    "DataLost",
    "LwpDataSource",
    "Options",
    "SinkError",
    "register",
]

_HOMES = {
    "CheckpointError": "errors",
    "DataDamaged": "errors",
    "DataLost": "errors",
    "LwpDataSource": "source",
    "Options": "options",
    "SinkError": "errors",
}
_LEAST_SPARK = [4, 2]
_DRIVERS = frozenset({"numpy", "pyarrow", "pyspark"})


def explained(error: ModuleNotFoundError) -> Exception:
    """Return an import's error, in words where it is the extra that is missing."""
    name = (error.name or "").partition(".")[0]
    if name not in _DRIVERS:
        return error
    return ConfigError(f"{name} is not installed; install it with: pip install 'lance-sdk[spark]'")


def too_old() -> str | None:
    """Return why the installed Spark cannot be used; None where it can."""
    try:
        from pyspark import __version__  # noqa: PLC0415 - an extra
    except ModuleNotFoundError:
        return None  # whoever needs it is told so
    numbers = [int(part) for part in __version__.split(".")[:2] if part.isdigit()]
    if numbers >= _LEAST_SPARK:
        return None
    least = ".".join(map(str, _LEAST_SPARK))
    return (
        f"Spark {__version__} is too old for the format lwp, which needs {least} or later; "
        "install it with: pip install 'lance-sdk[spark]'"
    )


def register(spark: "SparkSession") -> None:
    """Make a session know the format ``lwp``.

    Args:
        spark: the session.

    Raises:
        ConfigError: PySpark is missing, or too old.
    """
    if (reason := too_old()) is not None:
        raise ConfigError(reason)
    spark.dataSource.register(__getattr__("LwpDataSource"))


def __getattr__(name: str) -> Any:
    """Load a public name from its home module at first use (PEP 562)."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    except ModuleNotFoundError as error:
        raise explained(error) from None
    globals()[name] = value
    return value
