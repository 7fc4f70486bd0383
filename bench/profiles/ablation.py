"""``python -m bench.profiles.ablation [--save]``: what each compiled function brings to its work.

Each piece of work runs in this process with everything compiled, and with one function replaced by
its Python form, in turn. What counts is processor time, so that a busy machine matters little.
"""

import csv
import os
import statistics
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

from bench.peers import data_directory
from bench.profiles import ablation_work
from bench.profiles.ablation_work import WORK, Work
from lance_sdk import producer
from lance_sdk.journal._slot import scan
from lance_server.listeners.fluvio import values
from lance_server.log import partition
from lance_server.log.reading.fast_fetch import FastFetch
from lance_server.log.segments.sidecar import BatchIndex
from lance_server.lwp import ingest
from lance_server.storage import pwritev
from lance_spec import frames, records
from lance_spec.codec import buffers, ingest_runs

_FILE: Final = Path(__file__).parents[1] / "results" / "ablation.csv"
_ROUNDS: Final = 15
_MATTERS: Final = 1.1
"""A function that brings less is not worth its C."""

_Patch = tuple[object, str, object]


def _count(found: list[Any], first: int, most: int, leader: Any, *, validates: bool) -> int:
    return ingest_runs._count_in_python(found, first, most, leader, validates=validates)


def _in_python(module: Any, function: str) -> Callable[..., Any]:
    """Return a function of a module as it is where nothing was compiled."""
    inner = getattr(module, function)

    def outer(*args: Any, **options: Any) -> Any:
        compiled, module.accelerator = module.accelerator, None
        try:
            return inner(*args, **options)
        finally:
            module.accelerator = compiled

    return outer


def _patches() -> dict[str, tuple[str, tuple[_Patch, ...]]]:
    """Return, by compiled function, the work that it is part of, and what replaces it."""

    def no_fast(*_args: object) -> None:
        """Answer no Fetch at once."""

    def split_none(_splitter: object, _view: object, position: int, _frames: object) -> int:
        return position

    return {
        "split_frames": ("ingest", ((frames.FrameSplitter, "_split_fast", split_none),)),
        "count_run": ("ingest", ((ingest, "count_run", _count),)),
        "scan_records": ("judge one batch", ((records, "_walk", records._walk_in_python),)),
        "gather_run": ("ingest", ((partition, "gather_run", ingest_runs._gather_in_python),)),
        "seal_entries": ("ingest", ((ingest_runs, "_seal", ingest_runs._seal_in_python),)),
        "write_each": ("commit to 256 topics", ((pwritev, "_write_each", None),)),
        "answer_fetch": ("fetch", ((FastFetch, "answer", no_fast),)),
        "whole_batches": (
            "fetch from the open segment",
            ((BatchIndex, "whole_batches", BatchIndex._whole_in_python),),
        ),
        "add_record": ("send", ((producer, "add_record", None),)),
        "join_records": ("send", ((records, "_join", None),)),
        "decode_records": ("decode", ((records, "_take", records._take_in_python),)),
        "part_records": ("lay out columns", ((records, "_part", records._part_in_python),)),
        "record_bounds": ("find boundaries", ((records, "_bounds", records._bounds_in_python),)),
        "crc_by_instruction": ("cut frames of 1 KiB", ((frames, "CRC32C", None),)),
        "fluvio_to_log": ("take a batch of Fluvio", ((values, "_to_log", None),)),
        "unfilled": ("read 1 MiB of a file", ((buffers, "unfilled", bytearray),)),
        "keep_freed": ("join 1 MiB, twice", ((ablation_work, "KEPT", "no"),)),
        "follow_ring": ("open a journal", ((scan, "follow", _in_python(scan, "follow")),)),
    }


@contextmanager
def _replaced(patches: tuple[_Patch, ...]) -> Iterator[None]:
    before = [(owner, name, vars(owner)[name]) for owner, name, _ in patches]
    for owner, name, value in patches:
        setattr(owner, name, value)
    try:
        yield
    finally:
        for owner, name, value in before:
            setattr(owner, name, value)


def _gain(work: Work, patches: tuple[_Patch, ...]) -> float:
    """Return how many times as long the work takes without a function."""
    ratios = []
    work()
    for _ in range(_ROUNDS):
        compiled = work()
        with _replaced(patches):
            ratios.append(work() / compiled)
    return statistics.median(ratios)


def main(arguments: list[str]) -> None:
    """Measure, print, and write down where that is asked for."""
    rows = [["compiled function", "part of", "without it the work takes", "worth it"]]
    with ExitStack() as stack:
        folder = stack.enter_context(data_directory())  # no file system in memory reads at once
        for name, (part, patches) in _patches().items():
            gain = _gain(stack.enter_context(WORK[part](folder / name)), patches)
            rows.append([name, part, f"{gain:.2f} times", "yes" if gain >= _MATTERS else "no"])
            print("; ".join(rows[-1]), flush=True)
    if "--save" in arguments:
        with _FILE.open("w", newline="") as file:
            csv.writer(file, lineterminator=os.linesep).writerows(rows)


if __name__ == "__main__":
    main(sys.argv[1:])
