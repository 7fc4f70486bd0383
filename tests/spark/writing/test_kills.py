"""Both sinks, killed in each of their steps: tasks, and the process that commits."""

from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.timeout(600)

Fill = Callable[..., list[bytes]]
At = Mapping[str, str]
Copied = Callable[[], list[bytes]]
ONCE = ("freezing", "frozen", "tried", "sending", "sent", "done", "swept")
"""Steps of the process that commits what was staged."""
SLOW_START = "Python worker failed to connect back"
"""What Spark says when a Python of its own took more than 10 s to start: the machine is busy."""


class Copy:
    """A streaming query from topic to topic that is started until it comes to its end."""

    def __init__(
        self, spark: Any, at: At, checkpoint: Path, fault: Path, *, semantics: str
    ) -> None:
        self._spark = spark
        self._at = dict(at)
        self._checkpoint = str(checkpoint)
        self._semantics = semantics
        self._fault = fault

    def run(self) -> bool:
        """Run until nothing is left, or what is to be killed is; return whether it came to its end.

        Raises:
            StreamingQueryException: it failed for another reason.
        """
        from pyspark.errors import StreamingQueryException  # noqa: PLC0415 - an extra

        reader = self._spark.readStream.format("lwp").options(**self._at, topic="orders")
        rows = reader.options(startingOffsets="earliest", maxBytesPerTrigger="5000").load()
        writer = rows.writeStream.format("lwp").options(**self._at, topic="copy")
        writer = writer.options(semantics=self._semantics, createTopic="true", batchBytes="1KiB")
        query = writer.option("checkpointLocation", self._checkpoint).trigger(availableNow=True)
        running = query.start()
        try:
            running.awaitTermination()
        except StreamingQueryException as error:
            if SLOW_START in str(error):
                return self.run()
            if self._fault.exists():
                raise
            return False
        return True


@pytest.fixture
def copy(spark: Any, at: At, tmp_path: Path, fault: Path) -> Callable[[str], Copy]:
    """Make a query with its checkpoint in the test's folder."""
    return lambda semantics: Copy(spark, at, tmp_path / "cp", fault, semantics=semantics)


@pytest.fixture
def copied(reader: Any, at: At) -> Copied:
    """Read the topic that was written to."""
    return lambda: list(reader.values(**at, topic="copy"))


@pytest.mark.parametrize("step", ONCE)
def test_a_commit_that_is_killed_is_repeated_without_a_trace(
    copy: Callable[[str], Copy], produce: Fill, copied: Copied, fault: Path, step: str
) -> None:
    """The query fails there, goes on when it is started again, and every record is there once."""
    expected = produce("orders", 300)
    fault.write_text(f"{step} process")
    query = copy("exactly-once")
    ended = query.run()
    assert not fault.exists()
    assert not ended
    assert query.run()
    assert copied() == expected


@pytest.mark.parametrize("step", ["staging", "staged"])
def test_a_task_that_is_killed_while_it_stages_leaves_no_trace(
    copy: Callable[[str], Copy], produce: Fill, copied: Copied, fault: Path, step: str
) -> None:
    """Spark repeats it, and what it had staged is not sent."""
    expected = produce("orders", 300)
    fault.write_text(f"{step} process")
    assert copy("exactly-once").run()
    assert not fault.exists()
    assert copied() == expected


@pytest.mark.parametrize("step", ["sending", "written", "committing", "committed"])
def test_an_at_least_once_sink_that_is_killed_loses_nothing(
    copy: Callable[[str], Copy], produce: Fill, copied: Copied, fault: Path, step: str
) -> None:
    """Whatever was not noted as written is sent again."""
    expected = produce("orders", 300)
    fault.write_text(f"{step} process")
    query = copy("at-least-once")
    assert query.run() or query.run()
    assert not fault.exists()
    found = Counter(copied())
    assert set(found) == set(expected)
