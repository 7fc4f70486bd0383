"""What is killed and comes back: our server at the same ports, and a command."""

import signal
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from lance_server.testing import ServerProcess, free_port

_ANY_PORT: Final = "127.0.0.1:0"


class RestartedServer:
    """A ``lance-server`` that is where it was after a kill.

    Args:
        data: its data directory.
        options: further options; addresses in them may leave the port to this class.
    """

    def __init__(self, data: Path, *options: str) -> None:
        self._data = data
        told = ("--listen", _ANY_PORT, *options)
        self._options = [f"127.0.0.1:{free_port()}" if o == _ANY_PORT else o for o in told]
        self._server = ServerProcess(data, *self._options)

    def __repr__(self) -> str:
        return f"<RestartedServer {self.url}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._kill()

    @property
    def url(self) -> str:
        """Where LWP clients connect."""
        return "lance://{}:{}".format(*self._server.address)

    @property
    def address(self) -> str:
        """HOST:PORT of it."""
        return self.url.removeprefix("lance://")

    @property
    def rustlog(self) -> str:
        """Where RustLog's clients connect."""
        return "{}:{}".format(*self._server.others["rustlog"])

    @property
    def sc(self) -> str:
        """Where Fluvio's clients connect."""
        return "{}:{}".format(*self._server.others["fluvio-sc"])

    def freeze(self) -> None:
        """Leave it without the processor: what is sent from now on is not answered."""
        self._server.process.send_signal(signal.SIGSTOP)

    def kill(self) -> None:
        """Kill it, and start it again."""
        self._kill()
        self._server = ServerProcess(self._data, *self._options)

    def _kill(self) -> None:
        with self._server.process as process:
            process.kill()


class RestartedBridge:
    """``lwp bridge --follow``, which is begun again after a kill.

    Args:
        arguments: of the command.
    """

    def __init__(self, *arguments: str) -> None:
        self._arguments = arguments
        self._process = self._started("--follow")

    def __repr__(self) -> str:
        return f"<RestartedBridge {self._arguments}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._kill()

    def kill(self) -> None:
        """Kill it, and start it again."""
        self._kill()
        self._process = self._started("--follow")

    def finish(self) -> int:
        """Kill it, copy what is left without following, and return the exit code."""
        self._kill()
        self._process = self._started()
        return self._process.wait(100)

    def _kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def _started(self, *more: str) -> "subprocess.Popen[bytes]":
        command = [sys.executable, "-m", "lance_sdk.cli", "bridge", *self._arguments, *more]
        return subprocess.Popen(command, stderr=subprocess.DEVNULL)
