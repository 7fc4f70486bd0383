"""A Spark session on this machine, for who has none."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from lance_sdk.errors import ConfigError
from lance_sdk.spark.cores import usable_cores
from lance_sdk.spark.java import check_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOGGING: Final = Path(__file__).parents[1] / "log4j2.properties"
_SUBMITTED: Final = "PYSPARK_GATEWAY_PORT"
"""Where ``spark-submit`` tells a program how to reach the Java side."""
T = TypeVar("T")
R = TypeVar("R")


@contextmanager
def local_session(*, cores: int | None = None, memory: str = "1g") -> Iterator["SparkSession"]:
    """Yield the session there is, or a new one, which is stopped at the end.

    A new one runs where ``spark-submit`` says, if that started this program; else where the
    environment variable ``SPARK_MASTER`` says; else on this machine.

    Args:
        cores: of this machine to use; all by default.
        memory: of the Java side, as Spark writes it.

    Raises:
        ConfigError: PySpark or Java is missing.
    """
    try:
        from pyspark.sql import SparkSession  # noqa: PLC0415 - heavy, and an extra
    except ModuleNotFoundError:
        raise ConfigError(
            "pyspark is not installed; install it with: pip install 'lance-sdk[spark]'"
        ) from None
    active = SparkSession.getActiveSession()
    if active is not None:
        yield active
        return
    spark = _builder(SparkSession, cores, memory).getOrCreate()
    try:
        yield spark
    finally:
        spark.stop()


def _builder(kind: Any, cores: int | None, memory: str) -> Any:
    if _SUBMITTED in os.environ:  # its Java side runs, and has the settings of its command line
        return kind.builder.appName("lwp")
    check_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    master = os.environ.get("SPARK_MASTER") or f"local[{cores or '*'},3]"
    builder = kind.builder.master(master).appName("lwp").config("spark.driver.memory", memory)
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": str(max(2, cores or usable_cores())),
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.session.timeZone": "UTC",
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={_LOGGING.as_uri()}",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder


def spread(
    spark: "SparkSession",
    items: Iterable[T],
    work: Callable[[T], R],
    tell: Callable[[int, int], object] | None = None,
) -> list[R]:
    """Do some work for each item in Spark's tasks, and return the results in order.

    Args:
        spark: the session.
        items: what to work on; large ones first makes for the shortest time.
        work: a function that can be pickled.
        tell: called with items done and items in all.
    """
    chosen = list(items)
    if not chosen:
        return []
    tell = tell or _silent
    wave = max(1, 4 * spark.sparkContext.defaultParallelism)
    found: list[R] = []
    tell(0, len(chosen))
    for first in range(0, len(chosen), wave):
        part = chosen[first : first + wave]
        found += spark.sparkContext.parallelize(part, len(part)).map(work).collect()
        tell(len(found), len(chosen))
    return found


def _silent(done: int, total: int) -> None:
    del done, total
