"""What processes cost."""

import subprocess
import sys

from bench.usage import cpu_of_all

_BUSY = "import time\nwhile time.process_time() < 0.2: pass\nprint(flush=True)\ninput()"


def test_the_time_of_a_child_that_runs_counts() -> None:
    """As well as that of this process."""
    before = cpu_of_all()
    with subprocess.Popen(
        [sys.executable, "-c", _BUSY], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        assert cpu_of_all() - before >= 0.2
        child.communicate(b"\n")
