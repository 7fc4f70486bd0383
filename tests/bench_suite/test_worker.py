"""Work in processes of their own."""

import os

import pytest
from bench.peers import environment
from bench.usage import memory, used

from bench import worker


def test_a_job_tells_what_it_used() -> None:
    """Time, processor time and memory of its process."""
    use = worker.run("decode", records=10, size=100, times=1000)
    assert min(use.seconds, use.cpu, use.memory) > 0


def test_a_job_that_fails_says_why() -> None:
    """It does not count as a quick one."""
    with pytest.raises(RuntimeError, match=r"the job decode failed: (.|\n)*TypeError"):
        worker.run("decode", records=10, size=100, times="1/0")


@pytest.mark.parametrize("before", [None, "1"])
def test_the_compiled_loops_are_chosen_for_each_process(
    before: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the benchmark itself was started with."""
    if before:
        monkeypatch.setenv("LANCE_PURE_PYTHON", before)
    assert environment(pure=True)["LANCE_PURE_PYTHON"] == "1"
    assert "LANCE_PURE_PYTHON" not in environment(pure=False)


def test_memory_that_is_there_at_the_end_counts() -> None:
    """However short the work was."""
    before = memory(os.getpid()).private
    with used(os.getpid()) as use:
        block = bytearray(b"x") * (32 << 20)
    assert use.memory - before > len(block) - (2 << 20)
