"""A real Fluvio cluster on this machine: an SC and SPUs from the program `fluvio-run`."""

import contextlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

PROGRAM: Final = "LANCE_FLUVIO_RUN"
"""The environment variable that names the program."""
HOST: Final = f"127.{os.getpid() % 253 + 1}.{os.getpid() // 253 % 253 + 1}.1"
"""An address of this process alone: elsewhere another program may take a port while a server that
had it is away."""
_START: Final = 60.0
_QUIET: Final = 1.0
_SPU: Final = """\
!1.0.0
meta: {{id: custom-spu-{number}, revision: 0}}
key: custom-spu-{number}
status: {{resolution: Init}}
spec:
  spuId: {number}
  spuType: Custom
  publicEndpoint:
    port: {public}
    ingress: [{{hostname: {host}, ip: null}}]
    encryption: PLAINTEXT
  privateEndpoint: {{port: {private}, host: {host}, encryption: PLAINTEXT}}
"""


def program() -> Path | None:
    """Return the program that the environment names, or None."""
    named = os.environ.get(PROGRAM)
    return Path(named) if named else None


class Cluster:
    """An SC and SPUs with metadata and logs in a directory of their own.

    Args:
        run: the program ``fluvio-run``.
        directory: where it keeps everything.
        spus: how many SPUs there are.
    """

    def __init__(self, run: Path, directory: Path, spus: int = 1) -> None:
        self._run = run
        self._directory = directory
        public, private, *rest = _free_ports(2 + 2 * spus)
        self._sc_ports = public, private
        self._spus = {5001 + index: (rest[2 * index], rest[2 * index + 1]) for index in range(spus)}
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def __repr__(self) -> str:
        return f"<Cluster {self.sc}, running {sorted(self._running)}>"

    @property
    def sc(self) -> str:
        """Where clients connect."""
        return f"{HOST}:{self._sc_ports[0]}"

    @property
    def spus(self) -> Sequence[int]:
        """The SPUs' numbers."""
        return list(self._spus)

    def number_at(self, port: int) -> int:
        """Return the number of the SPU whose clients connect to a port."""
        return next(each for each, (public, _) in self._spus.items() if public == port)

    def __enter__(self) -> Self:
        kept = self._directory / "meta" / "SPU"
        kept.mkdir(parents=True)
        for number, (public, private) in self._spus.items():
            text = _SPU.format(number=number, public=public, private=private, host=HOST)
            (kept / f"custom-spu-{number}.yaml").write_text(text)
        try:
            self.start_sc()
            for number in self._spus:
                self.start_spu(number)
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def start_sc(self) -> None:
        """Start the SC."""
        public, private = (f"{HOST}:{port}" for port in self._sc_ports)
        meta = str(self._directory / "meta")
        arguments = ["sc", "--local", meta, "--bind-public", public, "--bind-private", private]
        self._start("sc", arguments, *self._sc_ports)

    def start_spu(self, number: int) -> None:
        """Start an SPU."""
        ports = self._spus[number]
        public, private = (f"{HOST}:{port}" for port in ports)
        arguments = ["spu", "-i", str(number), "-p", public, "-v", private]
        arguments += ["--sc-addr", f"{HOST}:{self._sc_ports[1]}"]
        arguments += ["--log-base-dir", str(self._directory / f"data-{number}")]
        self._start(f"spu-{number}", arguments, *ports)

    def kill(self, name: str) -> None:
        """Kill ``sc`` or ``spu-NUMBER``, and wait until it has ended."""
        if name == "sc":
            self._settle()
        process = self._running.pop(name)
        process.send_signal(signal.SIGKILL)
        process.wait()

    def _settle(self) -> None:
        """Wait until the SC writes no metadata: a kill in the middle leaves an empty file."""
        kept = self._directory / "meta"
        while max(each.stat().st_mtime for each in kept.rglob("*.yaml")) > time.time() - _QUIET:
            time.sleep(0.05)

    def stop(self) -> None:
        """Kill everything."""
        for process in self._running.values():
            process.kill()
            process.wait()
        self._running.clear()

    def log(self, name: str) -> str:
        """Return what a process wrote."""
        return (self._directory / f"{name}.log").read_text(errors="replace")

    def _start(self, name: str, arguments: Sequence[str], *ports: int) -> None:
        with (self._directory / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                [str(self._run), *arguments], stdout=log, stderr=subprocess.STDOUT
            )
        self._running[name] = process
        deadline = time.monotonic() + _START
        for port in ports:
            while not _listens(port):
                if process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(f"{name} does not listen:\n{self.log(name)[-2000:]}")
                time.sleep(0.02)


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as open_sockets:
        found = [open_sockets.enter_context(socket.create_server((HOST, 0))) for _ in range(count)]
        return [each.getsockname()[1] for each in found]


def _listens(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection((HOST, port), timeout=1):
        return True
    return False
