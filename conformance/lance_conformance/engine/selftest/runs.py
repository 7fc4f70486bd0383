"""All trials, spread over the processors."""

import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context

from lance_conformance.engine.selftest.targets import Asked, Findings, SelftestTarget, try_subjects

CHUNK = 32
Trials = dict[SelftestTarget, Findings]
OnProgress = Callable[[int, int], None]


def try_everybody(asked: Asked, on_progress: OnProgress) -> Trials:
    """Put all subjects on trial.

    Args:
        asked: Who, and with which cases.
        on_progress: Told how many are done, of how many.
    """
    pairs = list(asked.items())
    chunks = [dict(pairs[at : at + CHUNK]) for at in range(0, len(pairs), CHUNK)]
    trials: Trials = {}
    workers = max(1, min(os.cpu_count() or 1, len(chunks)))
    # "spawn", because a fork would copy whatever locks the caller's threads hold.
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        running = {pool.submit(try_subjects, chunk): chunk for chunk in chunks}
        for done in as_completed(running):
            trials.update(zip(running[done], done.result(), strict=True))
            on_progress(len(trials), len(asked))
    return trials
