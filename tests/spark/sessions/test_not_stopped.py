"""A session that nobody stops before its program ends."""

import os
import select
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

_PROGRAM = """
from lance_sdk.spark.pipelines import local_session

with local_session(brief=True, stop=False) as spark:
    spark.range(10).write.parquet({target!r})
    java = spark._jvm.java.lang.ProcessHandle.current().pid()
    print(java, spark.sparkContext._jsc.sc().isStopped())
print(spark.sparkContext._jsc.sc().isStopped())
"""
_PATIENCE = 60.0


@pytest.mark.usefixtures("sessions")
def test_java_ends_by_itself(tmp_path: Path) -> None:
    """What was written is there at once, and nothing is left running."""
    program = _PROGRAM.format(target=str(tmp_path / "rows"))
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True, timeout=300
    )
    java, *stopped = done.stdout.split()
    assert stopped == ["False", "False"]
    assert (tmp_path / "rows" / "_SUCCESS").exists()
    with suppress(ProcessLookupError):  # it has ended already
        process = os.pidfd_open(int(java))
        ended, _, _ = select.select([process], [], [], _PATIENCE)
        os.close(process)
        assert ended, "Java goes on without its program"
