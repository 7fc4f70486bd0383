"""A server that has nothing to do gives freed memory back."""

import pytest

from lance_server.runtime.idle_memory_trim import REST, IdleMemoryTrim
from lance_server.telemetry.counters import Counters

CASES = {
    "nothing has happened": ([0, 0, 0, 0], 0),
    "frames keep coming": ([1, 2, 3, 4], 0),
    "then they stop": ([1, 1, 1, 1], 1),
    "twice": ([1, 1, 1, 2, 2, 2], 2),
}


@pytest.mark.parametrize(("frames", "times"), CASES.values(), ids=CASES)
def test_memory_is_given_back_once_for_each_rest(frames: list[int], times: int) -> None:
    """A second after the last frame, and not again before the next one."""
    counters, calls = Counters(), list[None]()
    resting = IdleMemoryTrim(counters, 0.0, lambda: calls.append(None))
    for number, seen in enumerate(frames, 1):
        counters.frames_in = seen
        resting.tick(number * REST / 2)
    assert len(calls) == times
