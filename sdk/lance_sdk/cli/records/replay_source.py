"""Sources of ``lwp replay``: a topic, or lines of JSON."""

import base64
import binascii
import json
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from lance_sdk.cli._settings import Settings
from lance_sdk.cli._target import client_options
from lance_sdk.cli.console.exit_codes import Failure
from lance_sdk.cli.records.batch_reader import to_the_end
from lance_sdk.cli.records.keyed import KEYED, keyed_type, parts
from lance_sdk.cli.records.line_splitter import read_records
from lance_sdk.cli.records.partitioned import open_consumer
from lance_spec.enums import RecordType
from lance_spec.limits import DEFAULT_TOPIC_ID, MAX_RECORD_VALUE

if TYPE_CHECKING:
    from datetime import datetime

    from lance_sdk.offsets import TopicIdentity
    from lance_sdk.url import URL

ReplayPosition = str | int
"""Where to go on: ``beginning``, ``end``, a byte offset of a topic, or a line of a file."""

_MAX_LINE = 4 * MAX_RECORD_VALUE
"""Bytes of a line of JSON: base64 and escapes make a record longer."""


class ReplayedRecord(NamedTuple):
    """A record, and where the one after it is.

    Attributes:
        kind: its TLV type.
        value: its bytes, with key and time where the type has them.
        following: where to go on after it.
        where: its place, in words.
    """

    kind: int
    value: bytes
    following: int
    where: str

    @property
    def timestamp_ns(self) -> int | None:
        """Nanoseconds since the Unix epoch, or None where the record tells no time."""
        return parts(self.kind, self.value).timestamp_ns if self.kind in KEYED else None


def identity_of(url: "URL", settings: Settings) -> "TopicIdentity":
    """Return which topic a URL names at present."""
    from lance_sdk import Client  # noqa: PLC0415 - the network is loaded when it is needed
    from lance_sdk.offsets import TopicIdentity  # noqa: PLC0415 - as above

    named = url.topic if url.topic_id is None else url.topic_id
    with Client(url, **client_options(settings, url)) as client:
        return TopicIdentity.of(client.get_topic(named or DEFAULT_TOPIC_ID))


def from_topic(
    url: "URL", start: "ReplayPosition | datetime", settings: Settings
) -> Iterator[list[ReplayedRecord]]:
    """Yield the records of a topic, or of all its partitions, up to the end it has now."""
    options = client_options(settings, url, start=start, stop_at_end=True)
    with ExitStack() as stack:
        consumer = open_consumer(stack, url, options)
        for batch in to_the_end(consumer, settings):
            yield [
                ReplayedRecord(
                    record.type, record.raw, record.next_offset, f"the record at {record.offset}"
                )
                for record in batch
            ]


def from_file(name: str, skipped: int) -> Iterator[list[ReplayedRecord]]:
    """Yield the records that lines of JSON describe, as ``lwp consume --json`` prints them.

    Args:
        name: the file; ``-`` is stdin.
        skipped: how many lines to leave out.

    Raises:
        Failure: a line is not a record; the message names it.
    """
    number = 0
    with _opened(name) as stream:
        for lines in read_records(stream.read1, separator=b"\n", limit=_MAX_LINE):
            found = []
            for line in lines:
                number += 1
                if number > skipped:
                    found.append(_record(line, number, name))
            if found:
                yield found


@contextmanager
def _opened(name: str) -> Iterator[Any]:
    if name == "-":
        if sys.stdin is None:
            raise Failure(
                "stdin is closed; give the records on stdin, as in: lwp replay - … < file"
            )
        yield sys.stdin.buffer
        return
    file: BinaryIO
    with Path(name).open("rb") as file:
        yield file


def _record(line: bytes, number: int, name: str) -> ReplayedRecord:
    where = f"line {number} of {'stdin' if name == '-' else name}"
    try:
        told = json.loads(line)
        body = _bytes(told["value"], told.get("encoding", "utf-8"))
        kind, value = _typed(told, body)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise Failure(
            f"{where} is not a record as lwp consume --json prints it: {_reason(error)}"
        ) from error
    return ReplayedRecord(kind, value, number, where)


def _reason(error: Exception) -> str:
    return f"it has no {error}" if isinstance(error, KeyError) else str(error)


def _typed(told: dict[str, Any], body: bytes) -> tuple[int, bytes]:
    """Return type and value, with the key and the time put before the body again."""
    key = _bytes(told["key"], told.get("key_encoding", "utf-8")) if "key" in told else None
    when = told.get("timestamp_ns")
    if key is None and when is None:
        return _type(told["type"]), body
    from lance_sdk.values.keyed import join  # noqa: PLC0415 - loaded when it is needed

    return keyed_type(key=key is not None, time=when is not None), join(body, key, when)[0]


def _type(told: str | int) -> int:
    if isinstance(told, str):
        try:
            return RecordType[told.upper()]
        except KeyError:
            raise ValueError(f"not a record type: {told!r}") from None
    if isinstance(told, bool) or not 0 <= told <= 0xFF:
        raise ValueError(f"not a record type: {told!r}")
    return told


def _bytes(text: str, encoding: str) -> bytes:
    if encoding == "utf-8":
        return text.encode()
    if encoding != "base64":
        raise ValueError(f"not an encoding: {encoding!r}")
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError(f"not base64: {error}") from error
