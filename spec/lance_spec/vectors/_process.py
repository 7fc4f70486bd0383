"""An adapter's process: a line goes in, a line comes out, and every wait has a deadline."""

import contextlib
import json
import os
import queue
import subprocess
import threading
import time
from typing import Any, Final, Self

_LONGEST_LINE: Final = 4 * 1024 * 1024
_CHUNK: Final = 65536
_AHEAD: Final = 16
"""Chunks that are read before they are asked for; a flood waits in the adapter's own pipe."""
_PUT_TIMEOUT: Final = 1.0
"""Seconds after which a full queue is looked at again, since nobody may empty it any more."""


class AdapterError(RuntimeError):
    """An adapter that does not keep the contract; the text says what it did."""


class AdapterProcess:
    """A running adapter; leaving the ``with`` block ends it.

    Args:
        command: the program and its arguments.
        timeout: seconds that it may take for one answer, the start of the program included.
    """

    def __init__(self, command: list[str], timeout: float) -> None:
        self._timeout = timeout
        self._pending = bytearray()
        try:
            self._process = subprocess.Popen(  # noqa: S603  # running it is what was asked for
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
            )
        except OSError as error:
            raise AdapterError(f"cannot start {command[0]}: {error.strerror}") from None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._input, self._output = self._process.stdin, self._process.stdout
        self._requests: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._chunks: queue.Queue[bytes] = queue.Queue(_AHEAD)
        self._taken, self._left = threading.Event(), threading.Event()
        self._input_closed = False
        for work in (self._write_requests, self._read_chunks):  # pipes have no timeouts
            threading.Thread(target=work, name="lance-adapter", daemon=True).start()

    def __repr__(self) -> str:
        return f"<AdapterProcess pid={self._process.pid} returncode={self._process.returncode}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._left.set()
        self._requests.put(None)
        try:
            self._process.wait(self._timeout)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return the answer to one request.

        Raises:
            AdapterError: none came in time, the program ended, or it is not an answer to this.
        """
        deadline = time.monotonic() + self._timeout
        self._taken.clear()
        self._requests.put(json.dumps(request).encode() + b"\n")
        line = self._read_line(deadline)
        try:
            answer = json.loads(line)
        except (ValueError, RecursionError):
            raise AdapterError(f"{request['id']}: the answer is not JSON: {line[:200]!r}") from None
        if not isinstance(answer, dict) or answer.get("id") != request["id"]:
            raise AdapterError(f"{request['id']}: the answer has another id: {line[:200]!r}")
        return answer

    def _read_line(self, deadline: float) -> bytes:
        while (end := self._pending.find(b"\n")) < 0:
            if len(self._pending) > _LONGEST_LINE:
                raise AdapterError(f"an answer is longer than {_LONGEST_LINE} bytes")
            self._pending += self._next_chunk(deadline)
        line = bytes(self._pending[:end])
        del self._pending[: end + 1]
        return line

    def _next_chunk(self, deadline: float) -> bytes:
        try:
            chunk = self._chunks.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            wanted = "answered" if self._taken.is_set() else "read its input"
            raise AdapterError(f"the adapter has not {wanted} within {self._timeout:g} s") from None
        if chunk:
            return chunk
        if self._input_closed:
            raise AdapterError("the adapter has closed its input")
        raise AdapterError("the adapter ended before it answered everything")

    def _write_requests(self) -> None:
        try:
            with self._input:
                while (request := self._requests.get()) is not None:
                    view = memoryview(request)
                    while view:
                        view = view[os.write(self._input.fileno(), view) :]
                    self._taken.set()
        except OSError:
            self._input_closed = True
            self._announce(b"")

    def _read_chunks(self) -> None:
        with self._output:
            while chunk := os.read(self._output.fileno(), _CHUNK):
                self._announce(chunk)
        self._announce(b"")

    def _announce(self, chunk: bytes) -> None:
        """Hand a chunk to whoever waits; none where the process was left already."""
        while not self._left.is_set():
            with contextlib.suppress(queue.Full):
                self._chunks.put(chunk, timeout=_PUT_TIMEOUT)
                break
