"""``python -m bench.worker [--forever] JOB JSON``: a piece of client work in its own process.

So its memory is its own, and it can run without the compiled loops. It prints what it used as
JSON; loading modules and reading the command line are not counted.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench.peers import environment
from bench.usage import Use, used


def run(job: str, *, pure: bool = False, **arguments: Any) -> Use:
    """Run a job in a process of its own.

    Args:
        job: one of `JOBS`.
        pure: without the compiled loops.
        arguments: of the job.

    Raises:
        RuntimeError: it failed; the message is what it wrote.
    """
    done = subprocess.run(
        [sys.executable, "-m", "bench.worker", job, json.dumps(arguments)],
        capture_output=True,
        text=True,
        check=False,
        env=environment(pure=pure),
    )
    if done.returncode:
        raise RuntimeError(f"the job {job} failed: {done.stderr}")
    return Use(**json.loads(done.stdout))


def _send(url: str, count: int, size: int, **options: Any) -> Callable[[], None]:
    from lance_sdk import Producer  # noqa: PLC0415 - each job loads what it needs, and no more

    value = b"x" * size

    def work() -> None:
        with Producer(url, create_topic=True, **options) as producer:
            send = producer.send
            for _ in range(count):
                send(value)
            producer.flush()

    return work


def _producers(url: str, producers: int, count: int) -> Callable[[], None]:
    """Send ``count`` records from each of many producers that are open together."""
    from lance_sdk import Producer  # noqa: PLC0415 - likewise

    def work() -> None:
        with ExitStack() as stack:
            opened = [stack.enter_context(Producer(url)) for _ in range(producers)]
            for producer in opened:
                for _ in range(count):
                    producer.send(b"x" * 100)
            for producer in opened:
                producer.flush()

    return work


def _poll(url: str, records: int) -> Callable[[], None]:
    from lance_sdk import Consumer  # noqa: PLC0415 - likewise

    def work() -> None:
        seen = 0
        with Consumer(url, stop_at_end=True) as consumer:
            for batch in consumer.batches():
                seen += len(batch)
        if seen != records:
            raise RuntimeError(f"saw {seen} of {records} records")

    return work


def _decode(records: int, size: int, times: int) -> Callable[[], None]:
    from lance_spec.records import decode_records, encode_records  # noqa: PLC0415 - likewise

    data = encode_records([b"x" * size] * records)

    def work() -> None:
        for _ in range(times):
            decode_records(data)

    return work


def _append(count: int, size: int) -> Callable[[], None]:
    from lance_sdk.journal import Durability, Journal, JournalConfig  # noqa: PLC0415 - likewise

    payload = bytes(size)

    def work() -> None:
        config = JournalConfig(durability=Durability.MEMORY)
        with (
            tempfile.TemporaryDirectory(prefix="lance-bench-", dir=Path.cwd()) as name,
            Journal.open(Path(name) / "slot", config) as journal,
        ):
            for _ in range(count):
                journal.append(payload)
            for _ in journal.read_from(journal.next_fsn - 1):
                journal.ack(journal.next_fsn - 1)

    return work


def _recover(slot: str, frames: int) -> Callable[[], None]:
    from lance_sdk.journal import SlotKind, inspect  # noqa: PLC0415 - likewise

    def work() -> None:
        if inspect(Path(slot), SlotKind.LWP).frames != frames:
            raise RuntimeError(f"{slot} does not have {frames} frames")

    return work


JOBS: dict[str, Callable[..., Callable[[], None]]] = {
    "send": _send,
    "producers": _producers,
    "poll": _poll,
    "decode": _decode,
    "append": _append,
    "recover": _recover,
}


def main(arguments: list[str]) -> None:
    """Run the job that the command line names; with ``--forever`` until somebody ends it."""
    *forever, job, settings = arguments
    work = JOBS[job](**json.loads(settings))
    while True:
        with used(os.getpid()) as use:
            work()
        print(json.dumps(asdict(use)), flush=True)
        if forever != ["--forever"]:
            return


if __name__ == "__main__":
    main(sys.argv[1:])
