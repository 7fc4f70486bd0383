"""Row senders are tested once and run on three clients, against the endpoint of the server."""

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest
from anyio import to_thread

pytest.importorskip("websockets", reason="the extra qwp is not installed")

from lance_sdk.journal.qwp import AsyncQwpSender, QwpSender
from lance_sdk.journal.qwp.config import QwpConfig, from_connect_string
from lance_server.listeners.qwp.testing import Endpoint, endpoint

_PLAIN = {"stats", "clear"}
_RESET = struct.pack("ii", 1, 0)


class Threaded:
    """A sync sender behind async names: every call runs in a worker thread."""

    def __init__(self, target: QwpSender) -> None:
        self.target = target

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.target, name)
        return partial(_call, value) if callable(value) and name not in _PLAIN else value

    async def __aenter__(self) -> Self:
        await to_thread.run_sync(self.target.__enter__)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await to_thread.run_sync(self.target.__exit__, kind, error, traceback)


async def _call(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    return await to_thread.run_sync(partial(function, *args, **kwargs))


def quick(conf: str, *, patience: float = 5.0, **forward: Any) -> QwpConfig:
    """Return the settings of a connect string, with short pauses.

    Args:
        conf: the connect string.
        patience: seconds of silence that are suspicious; short ones are for tests of silence.
        forward: fields of `ForwardConfig`.
    """
    config = from_connect_string(conf, {})
    fast = {"backoff_base": 0.001, "backoff_cap": 0.02, **forward}
    return replace(
        config,
        forward=replace(config.forward, **fast),
        carrier=replace(
            config.carrier,
            answer_timeout=patience,
            upgrade_timeout=2 * patience,
            ack_timeout=5 * patience,
        ),
    )


class Lifecycle:
    """Makes the senders of one client.

    Args:
        name: threads, asyncio or trio.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def sender(self, conf: str, **forward: Any) -> Any:
        """Return a sender with async methods."""
        config = quick(conf, **forward)
        return Threaded(QwpSender(config)) if self.name == "threads" else AsyncQwpSender(config)


@pytest.fixture(params=["threads", "asyncio", "trio"])
def api(request: pytest.FixtureRequest) -> Lifecycle:
    """Return each client in turn."""
    return Lifecycle(request.param)


@pytest.fixture
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """Run the test on the client's own event loop; threads need any."""
    apis = request.node.callspec.params if hasattr(request.node, "callspec") else {}
    return "trio" if apis.get("api") == "trio" else "asyncio"


@pytest.fixture
def qwp(tmp_path: Path) -> Iterator[Endpoint]:
    """Return an endpoint that does what it should, until its script says otherwise."""
    with endpoint(tmp_path / "data") as running:
        yield running


@pytest.fixture
def sf(tmp_path: Path) -> Path:
    """Return a folder for slots."""
    folder = tmp_path / "sf"
    folder.mkdir()
    return folder


class Fault:
    """What a network does once.

    Args:
        kind: ``drop`` (both ends closed), ``reset``, ``half_close`` (the receiver sees the end
            of the stream), or ``stall`` (nothing moves any more).
        towards: ``server`` or ``client``.
        after: as soon as so many WebSocket frames went there.
    """

    def __init__(self, kind: str, towards: str, after: int) -> None:
        self.kind, self.towards, self.after = kind, towards, after
        self.happened = threading.Event()


class Network:
    """A path to a server that fails once at a frame boundary, and works from then on.

    Args:
        target: where to forward to, as ``host:port``.
        fault: what happens once.
    """

    def __init__(self, target: str, fault: Fault) -> None:
        host, _, port = target.rpartition(":")
        self._target = (host, int(port))
        self._fault = fault
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._ends: list[socket.socket] = []
        self.addr = f"127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for end in self._ends:
            end.close()

    def _accept(self) -> None:
        try:
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._target)
                self._ends += [client, server]
                for source, sink, towards in (
                    (client, server, "server"),
                    (server, client, "client"),
                ):
                    driver = threading.Thread(
                        target=self._driver, args=(source, sink, towards), daemon=True
                    )
                    driver.start()
        except OSError:
            return

    def _driver(self, source: socket.socket, sink: socket.socket, towards: str) -> None:
        stream = _Frames()
        try:
            while data := source.recv(65536):
                for piece in stream.pieces(data):
                    sink.sendall(piece)
                    if stream.frames >= self._fault.after and self._strikes(towards):
                        self._break(source, sink)
                        return
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            for end in (source, sink):
                end.close()

    def _strikes(self, towards: str) -> bool:
        if towards != self._fault.towards or self._fault.happened.is_set():
            return False
        self._fault.happened.set()
        return True

    def _break(self, source: socket.socket, sink: socket.socket) -> None:
        match self._fault.kind:
            case "drop":
                for end in (source, sink):
                    end.shutdown(socket.SHUT_RDWR)
            case "reset":
                for end in (source, sink):
                    end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                    end.close()
            case "half_close":
                sink.shutdown(socket.SHUT_WR)


class _Frames:
    """Cuts a byte stream at the ends of its HTTP head and of its WebSocket frames.

    Attributes:
        frames: frames that are complete; the head counts as frame 0.
    """

    def __init__(self) -> None:
        self._left = b""
        self._head = True
        self.frames = -1

    def pieces(self, data: bytes) -> Iterator[bytes]:
        """Yield what is complete; each piece ends at a boundary."""
        self._left += data
        while (size := self._size()) is not None and size <= len(self._left):
            piece, self._left = self._left[:size], self._left[size:]
            self._head = False
            self.frames += 1
            yield piece

    def _size(self) -> int | None:
        if self._head:
            end = self._left.find(b"\r\n\r\n")
            return None if end < 0 else end + 4
        if len(self._left) < 2:
            return None
        length, mask = self._left[1] & 0x7F, 4 * (self._left[1] >> 7)
        extended = {126: 2, 127: 8}.get(length, 0)
        if len(self._left) < 2 + extended:
            return None
        if extended:
            length = int.from_bytes(self._left[2 : 2 + extended])
        return 2 + extended + mask + length
