"""Frames in the log at DEBUG: what they are, never what they carry."""

import logging
from typing import Any

from lance_sdk.logs import WIRE
from lance_spec.checksum import Buffer
from lance_spec.dialect import DIALECTS
from lance_spec.enums import Command, Flag
from lance_spec.frames import Frame, FrameKind, FrameSplitter
from lance_spec.limits import MAX_PAYLOAD

_LARGEST = MAX_PAYLOAD + 64
"""An answer with the most data, and its header."""


class WireLog:
    """Logs the frames of one connection.

    Args:
        name: the client, as messages show it.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._out, self._in = (
            FrameSplitter(tuple(DIALECTS.values()), max_payload=_LARGEST) for _ in range(2)
        )

    def __repr__(self) -> str:
        return f"<WireLog {self._name}>"

    @classmethod
    def if_wanted(cls, name: str) -> "WireLog | None":
        """Return a log for a new connection; None, so that it costs nothing, if nobody reads it."""
        return cls(name) if WIRE.isEnabledFor(logging.DEBUG) else None

    def sent(self, buffers: list[Buffer]) -> None:
        """Log what leaves."""
        for data in buffers:
            self._log(">", self._out, data)

    def received(self, data: Buffer) -> None:
        """Log what has arrived."""
        self._log("<", self._in, data)

    def _log(self, sign: str, splitter: FrameSplitter, data: Buffer) -> None:
        unreadable = splitter.fault is not None
        for frame in splitter.receive_data(data):
            fields = describe(frame)
            extra = {"lance": {"source": self._name, "direction": sign, **fields}}
            text = " ".join(f"{name}={value}" for name, value in fields.items())
            WIRE.debug("%s %s %s", self._name, sign, text, extra=extra)
        if splitter.fault is not None and not unreadable:
            WIRE.debug("%s %s ! %s", self._name, sign, splitter.fault)


def describe(frame: Frame) -> dict[str, Any]:
    """Return what may be told of a frame: no token and no record."""
    fields: dict[str, Any] = {"frame": frame.kind.name}
    if frame.kind is FrameKind.CONTROL:
        command = frame.command
        fields["command"] = command.name if isinstance(command, Command) else hex(command)
    elif frame.batch_id:
        fields["batch_id"] = hex(frame.batch_id)
    if frame.kind is FrameKind.INGEST:
        fields["topic_id"] = frame.topic_id
        fields["records"] = frame.record_count
        fields["compressed"] = bool(frame.flags & Flag.COMPRESSED)
    if frame.payload:
        fields["bytes"] = len(frame.payload)
    return fields
