"""An adapter's process: a line goes in, a line comes out, and every wait has a deadline."""

import contextlib
import json
import os
import selectors
import subprocess
import time
from typing import Any, Final, Self

_LONGEST_LINE: Final = 4 * 1024 * 1024
_CHUNK: Final = 65536


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
        os.set_blocking(self._input.fileno(), False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._output, selectors.EVENT_READ)

    def __repr__(self) -> str:
        return f"<AdapterProcess pid={self._process.pid} returncode={self._process.returncode}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._selector.close()
        with contextlib.suppress(OSError):  # it may have closed its end first
            self._input.close()
        self._output.close()
        try:
            self._process.wait(self._timeout)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return the answer to one request.

        Raises:
            AdapterError: none came in time, the program ended, or it is no answer to this.
        """
        deadline = time.monotonic() + self._timeout
        self._write(json.dumps(request).encode() + b"\n", deadline)
        line = self._read_line(deadline)
        try:
            answer = json.loads(line)
        except (ValueError, RecursionError):
            raise AdapterError(f"{request['id']}: the answer is no JSON: {line[:200]!r}") from None
        if not isinstance(answer, dict) or answer.get("id") != request["id"]:
            raise AdapterError(f"{request['id']}: the answer has another id: {line[:200]!r}")
        return answer

    def _write(self, data: bytes, deadline: float) -> None:
        view = memoryview(data)
        self._selector.register(self._input, selectors.EVENT_WRITE)
        try:
            while view:
                self._wait(deadline, "read its input")
                with contextlib.suppress(BlockingIOError):
                    view = view[os.write(self._input.fileno(), view) :]
        except BrokenPipeError:
            raise AdapterError("the adapter has closed its input") from None
        finally:
            self._selector.unregister(self._input)

    def _read_line(self, deadline: float) -> bytes:
        while (end := self._pending.find(b"\n")) < 0:
            if len(self._pending) > _LONGEST_LINE:
                raise AdapterError(f"an answer is longer than {_LONGEST_LINE} bytes")
            self._wait(deadline, "answered")
            chunk = os.read(self._output.fileno(), _CHUNK)
            if not chunk:
                raise AdapterError("the adapter ended before it answered everything")
            self._pending += chunk
        line = bytes(self._pending[:end])
        del self._pending[: end + 1]
        return line

    def _wait(self, deadline: float, wanted: str) -> None:
        if not self._selector.select(max(0.0, deadline - time.monotonic())):
            raise AdapterError(f"the adapter has not {wanted} within {self._timeout:g} s")
