"""``python -m bench flames``: where the time goes, as flame graphs for the documentation.

It needs py-spy, and the right to trace processes: root's, or ``kernel.yama.ptrace_scope`` at 0.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench import plots, worker
from bench.curves.connections import drive
from bench.curves.frames import ACK, LARGE, answer, fetch, large, small
from bench.peers import served
from bench.profiles.flame_graph import shares, svg
from bench.progress import told

_RATE = 100
"""Samples a second; looking at compiled frames, too, takes py-spy some milliseconds each."""
_SECONDS = 10
_SHOWN = 25
_RECORDS = 300_000


def main(arguments: list[str]) -> int:
    """Record the chosen graphs, and print where most of the time goes."""
    parser = argparse.ArgumentParser(prog="python -m bench flames", description=__doc__)
    parser.add_argument("names", nargs="*", default=list(GRAPHS), help=f"of {', '.join(GRAPHS)}")
    parser.add_argument("--into", type=Path, default=plots.FOLDER, help="where to put them")
    options = parser.parse_args(arguments)
    if unknown := set(options.names) - set(GRAPHS):
        parser.error(f"no graph is called {', '.join(sorted(unknown))}")
    if shutil.which("py-spy") is None:
        parser.error("py-spy is not installed")
    for name in told(options.names, options.names):
        title, recorded = GRAPHS[name]
        stacks = recorded()
        (options.into / f"flame-{name}.svg").write_text(svg(stacks, title))
        print(title)
        for frame, share in list(shares(stacks).items())[:_SHOWN]:
            print(f"{share:7.1%}  {frame}")
    return 0


@contextmanager
def _recording(pid: int) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """Record a process; yield the recorder, which ends by itself, and its file."""
    with tempfile.TemporaryDirectory(prefix="lance-flames-") as name:
        path = Path(name) / "stacks"
        command = ["py-spy", "record", "--native", "--function", "--pid", str(pid)]
        how = ["--rate", str(_RATE), "--duration", str(_SECONDS), "--format", "raw"]
        recorder = subprocess.Popen(
            [*command, *how, "--output", str(path)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        yield recorder, path


def _stacks(recorder: subprocess.Popen[str], path: Path) -> list[str]:
    """Wait for the recorder's end and return what it saw.

    Raises:
        RuntimeError: it failed; the message is what it wrote.
    """
    _, problem = recorder.communicate(timeout=60)
    if recorder.returncode or not path.exists():
        raise RuntimeError(f"py-spy failed: {problem}")
    return path.read_text().splitlines()


def _server(prepare: Callable[[str], Callable[[], None]]) -> list[str]:
    """Record a server while some work is done again and again."""
    with served() as server:
        work = prepare(server.address)
        work()
        with _recording(server.pid) as (recorder, path):
            while recorder.poll() is None:
                work()
            return _stacks(recorder, path)


def _client(job: str, **arguments: Any) -> list[str]:
    """Record a client that does its job over and over; it is ended once enough was seen."""
    with served() as server:
        url = f"lance://{server.address}/flames"
        worker.run("send", url=url, count=_RECORDS, size=100)
        command = [sys.executable, "-m", "bench.worker", "--forever", job]
        client = subprocess.Popen(
            [*command, json.dumps({"url": url} | arguments)], stdout=subprocess.PIPE, text=True
        )
        try:
            assert client.stdout is not None
            client.stdout.readline()  # it has done its job once
            with _recording(client.pid) as (recorder, path):
                return _stacks(recorder, path)
        finally:
            client.kill()
            client.wait(30)


def _ingest_large(address: str) -> Callable[[], None]:
    return lambda: drive(address, [large(0) for _ in range(512)], ACK)


def _ingest_small(address: str) -> Callable[[], None]:
    return lambda: drive(address, [small(0) for _ in range(4096)], ACK, 1024)


def _fetch(address: str) -> Callable[[], None]:
    drive(address, [large(0) for _ in range(1024)], ACK)
    requests = [fetch(0, number * len(LARGE), len(LARGE)) for number in range(1024)]
    return lambda: drive(address, requests, answer(len(LARGE)), 8)


GRAPHS: dict[str, tuple[str, Callable[[], list[str]]]] = {
    "ingest-64KiB": (
        "The server while frames of 64 KiB come in",
        lambda: _server(_ingest_large),
    ),
    "ingest-4KiB": (
        "The server while frames of 4 KiB come in",
        lambda: _server(_ingest_small),
    ),
    "fetch": (
        "The server while answers of 64 KiB go out",
        lambda: _server(_fetch),
    ),
    "send": (
        "A program that sends records of 100 bytes",
        lambda: _client("send", count=_RECORDS, size=100),
    ),
    "poll": (
        "A program that reads records of 100 bytes",
        lambda: _client("poll", records=_RECORDS),
    ),
}
