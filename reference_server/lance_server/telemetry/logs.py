"""Log lines on standard error, for people or for machines."""

import io
import json
import logging
import os
import select
import sys
from datetime import UTC, datetime
from typing import Final

_AT_ONCE: Final = select.PIPE_BUF
"""Bytes that a descriptor which is ready takes without waiting."""

_WRITE_TIMEOUT_MS: Final = 200


class JsonFormatter(logging.Formatter):
    """One JSON object a line (design section 12.6).

    Args:
        node_id: the number of this node, which stands in each line.
    """

    def __init__(self, node_id: int = 0) -> None:
        super().__init__()
        self._node_id = node_id

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as JSON."""
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="microseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            "node_id": self._node_id,
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


class DescriptorHandler(logging.Handler):
    """Writes lines to a descriptor, and loses those that it does not take: nobody reads them.

    A pipe that is full must not stop the server. When it is read again, a line tells how many
    were lost.

    Args:
        fd: where to write.
        write_timeout_ms: how long a line may wait for a slow reader, in milliseconds.

    Attributes:
        lost: lines that were lost since the descriptor last took one.
    """

    def __init__(self, fd: int, write_timeout_ms: int = _WRITE_TIMEOUT_MS) -> None:
        super().__init__()
        self._fd = fd
        self._write_timeout_ms = write_timeout_ms
        self._readiness = select.poll()
        self._readiness.register(fd, select.POLLOUT)
        self._is_cut = False
        self.lost = 0

    def __repr__(self) -> str:
        return f"<DescriptorHandler {self._fd}, {self.lost} lines lost>"

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record, or lose it."""
        try:
            data = self._encode(record)
            if self.lost:
                data = b"\n" * self._is_cut + self._encode(_lost(self.lost)) + data
            taken = self._write(data)
        except Exception:  # noqa: BLE001 - a log never raises; logging shows its own mistakes
            self.handleError(record)
        else:
            self.lost = 0 if taken else self.lost + 1

    def _encode(self, record: logging.LogRecord) -> bytes:
        return f"{self.format(record)}\n".encode(errors="backslashreplace")

    def _write(self, data: bytes) -> bool:
        """Write as much as is taken; return whether that was all."""
        rest = memoryview(data)
        # Who reads nothing has been waited for once; after that it costs no more time.
        write_timeout_ms = 0 if self.lost else self._write_timeout_ms
        while rest:
            if not self._readiness.poll(write_timeout_ms):
                self._is_cut |= len(rest) < len(data)
                return False
            rest = rest[os.write(self._fd, rest[:_AT_ONCE]) :]
        self._is_cut = False
        return True


def _lost(count: int) -> logging.LogRecord:
    words = "%d lines of this log were lost: nobody read them"
    return logging.LogRecord(__name__, logging.WARNING, __file__, 0, words, (count,), None)


def set_up_logging(level: str, *, as_json: bool, node_id: int = 0) -> None:
    """Send log records to standard error.

    Args:
        level: the least severe level to show, for example ``info``.
        as_json: one JSON object a line instead of text.
        node_id: the number of this node.
    """
    handler = _handler()
    text = logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s")
    handler.setFormatter(JsonFormatter(node_id) if as_json else text)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())


def _handler() -> logging.Handler:
    try:
        return DescriptorHandler(sys.stderr.fileno())
    except io.UnsupportedOperation:  # no file: something of Python's that never fills up
        return logging.StreamHandler(sys.stderr)
