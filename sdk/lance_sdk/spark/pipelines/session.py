"""A Spark session on this machine, for who has none."""

import atexit
import multiprocessing
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from lance_sdk.errors import ConfigError
from lance_sdk.spark.cores import usable_cores
from lance_sdk.spark.failures import own_errors
from lance_sdk.spark.java import check_java
from lance_sdk.spark.pipelines.gateway import quick_python, start_java
from lance_sdk.spark.snappy import snappy_options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOGGING: Final = Path(__file__).parents[1] / "log4j2.properties"
LOG_LEVEL: Final = "LWP_SPARK_LOG"
"""Environment variable for how much Spark itself tells on standard error: ``error``, ``warn``."""
_SUBMITTED: Final = "PYSPARK_GATEWAY_PORT"
"""Where ``spark-submit`` tells a program how to reach the Java side."""
_PYTHON: Final = "PYSPARK_PYTHON"
_WITHOUT_VFORK: Final = 25
"""The first version of Java that is not told to start programs by VFORK, which is to be removed."""
_BRIEF: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
T = TypeVar("T")
R = TypeVar("R")


@contextmanager
def local_session(
    *, cores: int | None = None, memory: str = "1g", brief: bool = False, stop: bool = True
) -> Iterator["SparkSession"]:
    """Yield the session there is, or a new one.

    A new one runs where ``spark-submit`` says, if that started this program; else where the
    environment variable ``SPARK_MASTER`` says; else on this machine.

    Args:
        cores: of this machine to use; all by default.
        memory: of the Java side, as Spark writes it.
        brief: whether it works for seconds, so that Java compiles its code quickly and not well.
        stop: whether a new one is stopped at the end. A program that ends directly afterwards need
            not wait for that: on this machine Java ends with it.

    Raises:
        ConfigError: PySpark or Java is missing.
        SparkFailed: Java does not start, or Spark does not.
    """
    try:
        from pyspark.logger import PySparkLogger  # noqa: PLC0415 - heavy, and an extra
        from pyspark.sql import SparkSession  # noqa: PLC0415 - likewise
    except ModuleNotFoundError:
        raise ConfigError(
            "pyspark is not installed; install it with: pip install 'lance-sdk[spark]'"
        ) from None
    active = SparkSession.getActiveSession()
    if active is not None:
        yield active
        return
    if LOG_LEVEL not in os.environ:  # else it writes each error down once more, with Java's trace
        PySparkLogger.getLogger("SQLQueryContextLogger").disabled = True
    logging = f"-Dlog4j2.configurationFile={_LOGGING.as_uri()}"
    java = (logging, _snappy(), _BRIEF if brief else "")
    with ExitStack() as stack:
        if _PYTHON not in os.environ:  # what is set here is for this session only
            stack.callback(os.environ.pop, _PYTHON, None)
        with own_errors():
            builder = _builder(SparkSession.builder, cores, memory, " ".join(filter(None, java)))
            spark = builder.appName("lwp").getOrCreate()
        if stop or not spark.sparkContext.master.startswith("local"):
            stack.callback(spark.stop)
        yield spark


@cache
def _folder() -> Path:
    """Return a folder that lasts as long as this process and its Java side, for all sessions."""
    folder = tempfile.mkdtemp(prefix="lwp-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


@cache
def _snappy() -> str:
    """Return what Java is told of Snappy; a library that it has loaded is not written again."""
    return snappy_options(_folder())


def _python() -> str:
    """Return the Python that Spark is to start: on other machines there is only this one's name."""
    is_elsewhere = any(name in os.environ for name in ("SPARK_MASTER", "SPARK_HOME"))
    return sys.executable if is_elsewhere or os.name == "nt" else _quick_python()


@cache
def _quick_python() -> str:
    return quick_python(_folder())


def _spawning(version: int) -> str:
    """Return the option with which Java starts programs quickly, or nothing.

    Without a native library Hadoop starts ``chmod`` and ``readlink`` for files on a local disk:
    about fifty times for an archive. Since version 13 Java starts each through a helper program,
    which costs 20 ms; VFORK is how it did that before.
    """
    is_known = sys.platform == "linux" and version < _WITHOUT_VFORK
    return "-Djdk.lang.Process.launchMechanism=VFORK" if is_known else ""


def _builder(builder: Any, cores: int | None, memory: str, java: str) -> Any:
    if _SUBMITTED in os.environ:  # its Java side runs, and has the settings of its command line
        return builder
    from pyspark import SparkConf  # noqa: PLC0415 - heavy

    java = " ".join(filter(None, (java, _spawning(check_java()))))
    if _PYTHON not in os.environ:
        os.environ[_PYTHON] = _python()
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    settings = {
        "spark.master": os.environ.get("SPARK_MASTER") or f"local[{cores or '*'},3]",
        "spark.driver.memory": memory,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": str(max(2, cores or usable_cores())),
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.session.timeZone": "UTC",
        "spark.driver.extraJavaOptions": java,
    }
    conf = SparkConf().setAll(list(settings.items()))
    start_java(conf)
    return builder.config(conf=conf)


def refuse_connect(spark: "SparkSession") -> None:
    """Refuse a session whose driver is another process, maybe on another machine.

    Raises:
        ConfigError: it is a session of Spark Connect.
    """
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        raise ConfigError(
            "pipelines do not run on Spark Connect, whose driver is elsewhere: use a session that "
            "has its driver here, such as local_session gives or spark-submit"
        )


def spread(
    spark: "SparkSession | None",
    items: Iterable[T],
    work: Callable[[T], R],
    tell: Callable[[int, int], object] | None = None,
) -> list[R]:
    """Do some work for each item in Spark's tasks, and return the results in order.

    Args:
        spark: the session; None works in processes on this machine.
        items: what to work on; large ones first makes for the shortest time.
        work: a function that can be pickled.
        tell: called with items done and items in all.

    Raises:
        ConfigError: it is a session of Spark Connect.
    """
    if spark is not None:
        refuse_connect(spark)
    chosen = list(items)
    if not chosen:
        return []
    tell = tell or _silent
    if spark is None:
        return spread_locally(chosen, work, tell)
    wave = max(1, 4 * spark.sparkContext.defaultParallelism)
    found: list[R] = []
    tell(0, len(chosen))
    for first in range(0, len(chosen), wave):
        part = chosen[first : first + wave]
        with own_errors():
            found += spark.sparkContext.parallelize(part, len(part)).map(work).collect()
        tell(len(found), len(chosen))
    return found


def spread_locally(
    items: Sequence[T], work: Callable[[T], R], tell: Callable[[int, int], object]
) -> list[R]:
    """Do some work for each item in processes on this machine; in this one where that is enough.

    The processes import the program again, so that a script that calls this needs the usual
    ``if __name__ == "__main__"``.
    """
    count = min(usable_cores(), len(items))
    found: list[R] = []
    tell(0, len(items))
    with ExitStack() as stack:
        results: Iterable[R] = map(work, items)
        if count > 1:
            context = multiprocessing.get_context("spawn")
            pool = stack.enter_context(ProcessPoolExecutor(count, mp_context=context))
            results = pool.map(work, items)
        for result in results:
            found.append(result)
            tell(len(found), len(items))
    return found


def _silent(done: int, total: int) -> None:
    del done, total
