"""All trials, spread over the processors."""

import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context

from lance_conformance.engine.selftest.targets import Asked, Findings, SelftestTarget, try_subjects

CHUNK = 32
FOR_EACH_PROCESSOR = 2
"""Worker processes: a golden server that is asked in order waits half of its time or more."""
Trials = dict[SelftestTarget, Findings]
OnProgress = Callable[[int, int], None]


def try_everybody(asked: Asked, on_progress: OnProgress) -> Trials:
    """Put all subjects on trial.

    Args:
        asked: Who, and with which cases.
        on_progress: Told how many are done, of how many.
    """
    trials: Trials = {}
    workers = FOR_EACH_PROCESSOR * (os.cpu_count() or 1)
    chunks = _dealt(asked, workers)
    # "spawn", because a fork would copy whatever locks the caller's threads hold.
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        running = {pool.submit(try_subjects, chunk): chunk for chunk in chunks}
        for done in as_completed(running):
            trials.update(zip(running[done], done.result(), strict=True))
            on_progress(len(trials), len(asked))
    return trials


def _dealt(asked: Asked, workers: int) -> list[Asked]:
    """Chunks of about `CHUNK` subjects; the longest trials come first and in chunks apart."""
    by_length = sorted(asked.items(), key=lambda pair: -len(pair[1]) / pair[0].jobs)
    chunks = max(workers, -(-len(asked) // CHUNK))
    return [dict(some) for first in range(chunks) if (some := by_length[first::chunks])]
