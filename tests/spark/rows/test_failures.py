"""The error of this package in what Spark says when a query fails."""

import os

import pytest

from lance_sdk.errors import ConfigError, LanceError
from lance_sdk.spark.errors import DataDamaged, DataLost, SparkFailed
from lance_sdk.spark.failures import own_error, own_errors, plainly

TASK = """Job aborted due to stage failure: Task 0 in stage 1.0 failed 3 times, most recent failure:
org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "/x/pyspark/worker.py", line 1, in main
    raise DataDamaged(text)
lance_sdk.spark.errors.DataDamaged: /data/0_1.lnc: the 5 bytes from offset 0 do not match their
checksum; onDamage=skip leaves them out

\tat org.apache.spark.api.python.BasePythonRunner.handle(PythonRunner.scala:1)
"""
DAMAGED = (
    "/data/0_1.lnc: the 5 bytes from offset 0 do not match their checksum; "
    "onDamage=skip leaves them out"
)
SOURCE = """[STREAM_FAILED] Query [id = 1] terminated with exception: [PYTHON_STREAMING_DATA_SOURCE]
Failed when Python streaming data source perform latestOffset: Traceback (most recent call last):
  File "/x/streams.py", line 1, in advance
lance_sdk.errors.ConnectFailed: cannot reach it

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/x/streams.py", line 2, in advance
lance_sdk.spark.errors.DataLost: topic 'orders' is gone
 SQLSTATE: 38000
"""


@pytest.mark.parametrize(
    ("text", "kind", "told"),
    [
        (
            TASK,
            DataDamaged,
            DAMAGED,
        ),
        (SOURCE, DataLost, "topic 'orders' is gone"),
        (
            "[PYTHON] Failed to plan: lance_sdk.errors.ConfigError: no topic\n SQLSTATE: 38000",
            ConfigError,
            "no topic",
        ),
        ("lance_sdk.errors.ConfigError: no topic\n\tat java.lang.X(X:1)", ConfigError, "no topic"),
    ],
)
def test_the_last_error_of_ours_is_what_went_wrong(
    text: str, kind: type[Exception], told: str
) -> None:
    """Of its class, with its whole text and nothing of Java's."""
    found = own_error(text)
    assert type(found) is kind
    assert str(found) == told


@pytest.mark.parametrize("name", ["ConnectFailed", "TopicNotFound", "NoSuchError"])
def test_an_error_that_cannot_be_made_of_a_text_keeps_the_text(name: str) -> None:
    """A failed connection has a list of attempts."""
    found = own_error(f"lance_sdk.errors.{name}: cannot connect to a:1: refused")
    assert isinstance(found, LanceError)
    assert "cannot connect to a:1: refused" in str(found)


def test_a_text_without_an_error_of_ours_has_none() -> None:
    """It is Spark's own."""
    assert own_error("[TABLE_OR_VIEW_NOT_FOUND] The table cannot be found.") is None


def spark_error(text: str) -> Exception:
    """Return an exception as PySpark raises one."""
    kind = type("AnalysisException", (Exception,), {"__module__": "pyspark.errors.captured"})
    return kind(text)


def test_what_spark_says_is_one_line() -> None:
    """Where the fault is its own."""
    with pytest.raises(SparkFailed, match=r"^Spark: out of room$"), own_errors():
        raise spark_error("\nout of room\n\tat java.lang.Thread.run(Thread.java:1)")


def test_of_a_call_of_java_that_failed_the_reason_is_told() -> None:
    """The first line only says that there was a call."""
    call = "An error occurred while calling None.org.apache.spark.api.java.JavaSparkContext.\n"
    told = r"^Spark: org.apache.SparkException: no master 'x'$"
    with pytest.raises(SparkFailed, match=told), own_errors():
        raise spark_error(f"{call}: org.apache.SparkException: no master 'x'\n\tat x.y(Z:1)")


@pytest.mark.parametrize("error", [ConfigError("no"), ZeroDivisionError("bug")])
def test_other_errors_pass_as_they_are(error: Exception) -> None:
    """They were raised on the driver, by this package or by a bug."""
    with pytest.raises(type(error)) as caught, own_errors():
        raise error
    assert caught.value is error


@pytest.mark.parametrize(
    ("error", "is_hidden"), [(ConfigError("no topic"), True), (OSError("no disk"), False)]
)
def test_only_errors_of_ours_are_told_without_a_traceback(
    error: Exception, is_hidden: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What else is raised is a fault, and where it is raised helps to find it."""
    monkeypatch.delenv("SPARK_HIDE_TRACEBACK", raising=False)
    with pytest.raises(type(error)), plainly():
        raise error
    assert ("SPARK_HIDE_TRACEBACK" in os.environ) is is_hidden
    monkeypatch.delenv("SPARK_HIDE_TRACEBACK", raising=False)
