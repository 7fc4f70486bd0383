"""Records that cannot be handled, out of the way and not lost, for threads.

::

    with (
        Consumer(url, consumer="shipping", offsets="file:shipping") as consumer,
        Producer("lance://localhost:1992/orders-failed", create_topic=True) as failed,
    ):
        letters = DeadLetters(failed, max_attempts=3)
        for record in consumer:
            letters.handle(record, ship)

A record is in the topic of dead letters, and acknowledged there, before `DeadLetters.handle`
returns; so the place after it is committed only when it is safe. A crash in between repeats
the record, which may then be there twice.

A dead letter has what was stored of the record as its value, and as its key a line of JSON: topic,
offset, type, error, time and attempts. `DeadLetter.of` reads it, also to send the record again::

    for record in Consumer("lance://localhost:1992/orders-failed", stop_at_end=True):
        letter = DeadLetter.of(record)
        print(letter.time, letter.record.topic, letter.record.offset, letter.error)
        producer.send_raw(letter.record.raw, letter.record.type)
"""

import json
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from inspect import iscoroutinefunction
from typing import Any, Final, Self

from lance_sdk._api.arguments.unit_parsing import Duration, seconds
from lance_sdk._api.arguments.validation import check_plain
from lance_sdk.errors import ConfigError, UndecodableRecord
from lance_sdk.producer import Producer
from lance_sdk.types import OPAQUE, OpaqueBytes, Record
from lance_sdk.values.keyed import as_datetime, join
from lance_spec.enums import RecordType
from lance_spec.limits import MAX_RECORD_VALUE

__all__ = ["DeadLetter", "DeadLetters"]

_log: Final = logging.getLogger("lance_sdk.dead_letters")
_ERROR_TEXT: Final = 4096
"""Characters of an error that are kept: a key has room for 65,535 bytes."""


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A record that could not be handled, and why.

    Attributes:
        record: as it was consumed, with its topic and offset there; `OpaqueBytes` if it was that.
        error: text of the last error.
        error_type: name of its class.
        time_ns: when the record was given up, nanoseconds since the Unix epoch.
        attempts: how often it was tried.
    """

    record: Record
    error: str
    error_type: str
    time_ns: int
    attempts: int

    @property
    def time(self) -> datetime:
        """The same as `time_ns`, as a datetime in UTC, cut to microseconds."""
        return as_datetime(self.time_ns)

    @classmethod
    def of(cls, record: Record) -> Self:
        """Read a record of a topic of dead letters.

        Raises:
            UndecodableRecord: it is not a dead letter.
        """
        try:
            found = json.loads(record.key or b"")
            original, kind = (found["offset"], found["type"]), Record
            if found["type"] == OPAQUE:
                kind = OpaqueBytes
            return cls(
                record=kind(*original, record.body, found["topic"]),
                error=found["error"],
                error_type=found["error_type"],
                time_ns=found["time_ns"],
                attempts=found["attempts"],
            )
        except (ValueError, KeyError, TypeError) as error:
            raise UndecodableRecord(
                f"record at offset {record.offset} of {record.topic or 'the topic'} is not a dead "
                f"letter of DeadLetters: its key is not the JSON that says where it came from; "
                "read it as any other record",
                record,
            ) from error

    def stored(self) -> tuple[bytes, int]:
        """Return the bytes and the type of the record that keeps this letter."""
        record = self.record
        key = json.dumps(
            {
                "topic": record.topic,
                "offset": record.offset,
                "type": record.type,
                "error": self.error,
                "error_type": self.error_type,
                "time_ns": self.time_ns,
                "attempts": self.attempts,
            },
            separators=(",", ":"),
        )
        return join(record.raw, key, None)


class Rules:
    """What both APIs share: how often a record is tried, and what is told of it.

    Attributes:
        max_attempts: how often a record is tried.
        timeout: seconds to wait for the acknowledgement of a dead letter.
        catch: what a handler raises for a record that it cannot handle.
        stored: dead letters stored so far.
    """

    def __init__(
        self,
        max_attempts: int,
        timeout: Duration,
        catch: type[Exception] | tuple[type[Exception], ...],
        told: Callable[[Record, Exception], object] | None,
    ) -> None:
        check_plain("max_attempts", max_attempts, int)
        if not max_attempts:
            raise ConfigError("max_attempts=0: expected 1 or more")
        self.max_attempts = max_attempts
        self.timeout = seconds("timeout", timeout)
        self.catch = catch
        self.stored = 0
        self._told = told

    def letter(self, record: Record, error: Exception) -> tuple[bytes, int]:
        """Return what is stored of a record that could not be handled, and its type."""
        text = str(error)[:_ERROR_TEXT]
        kind = type(error).__name__
        raw, key_value = DeadLetter(record, text, kind, time.time_ns(), self.max_attempts).stored()
        if len(raw) <= MAX_RECORD_VALUE:
            return raw, key_value
        _log.warning(
            "the record at offset %d of %s has no room for a key: its dead letter does not say "
            "where it came from",
            record.offset,
            record.topic,
        )
        return record.raw, RecordType.RAW_DATA if record.is_opaque else record.type

    def tell(self, record: Record, error: Exception) -> None:
        """Take note that a record was stored as a dead letter."""
        self.stored += 1
        text = "the record at offset %d of %s could not be handled %d times: %r"
        fields = {"topic": record.topic, "offset": record.offset, "error": type(error).__name__}
        extra = {"lance": {"source": "dead_letters", **fields}}
        _log.warning(text, record.offset, record.topic, self.max_attempts, error, extra=extra)
        if self._told is not None:
            self._told(record, error)


def check_producer(letters: str, producer: Any, *, awaited: bool) -> None:
    """Refuse a producer of the other API.

    Raises:
        ConfigError: saying which class takes it.
    """
    send = getattr(producer, "send_raw", None)
    if send is None or iscoroutinefunction(send) is not awaited:
        raise ConfigError(
            f"{letters} cannot use {type(producer).__name__}: DeadLetters takes a Producer, "
            "AsyncDeadLetters an AsyncProducer"
        )


class DeadLetters:
    """Handles records, and stores those that cannot be handled in a topic of their own.

    Args:
        producer: of that topic; it must be open.
        max_attempts: how often a record is tried, without a pause in between.
        timeout: seconds to wait until a dead letter is acknowledged.
        catch: what a handler raises for a record that it cannot handle. Anything else passes
            through at once, and the record is not done.
        told: called with the record and the last error once the record is stored.

    Raises:
        ConfigError: ``max_attempts`` or ``timeout`` is not valid, or the producer is async.
    """

    def __init__(
        self,
        producer: Producer,
        *,
        max_attempts: int = 3,
        timeout: Duration = 30.0,
        catch: type[Exception] | tuple[type[Exception], ...] = Exception,
        told: Callable[[Record, Exception], object] | None = None,
    ) -> None:
        check_producer("DeadLetters", producer, awaited=False)
        self._producer = producer
        self._rules = Rules(max_attempts, timeout, catch, told)

    def __repr__(self) -> str:
        rules = self._rules
        return f"<DeadLetters stored={rules.stored} max_attempts={rules.max_attempts}>"

    @property
    def stored(self) -> int:
        """Dead letters stored so far."""
        return self._rules.stored

    def handle(self, record: Record, handler: Callable[[Record], Any]) -> bool:
        """Call ``handler(record)`` until it returns, or store the record as a dead letter.

        Args:
            record: as a consumer handed it out.
            handler: what is to be done with it.

        Returns:
            Whether it was handled; False when it is among the dead letters now.

        Raises:
            DeliveryError: it could not be stored there; it is not done.
            DeadlineExceeded: likewise, within ``timeout``.
        """
        rules = self._rules
        for attempt in range(1, rules.max_attempts + 1):
            try:
                handler(record)
            except rules.catch as error:
                if attempt < rules.max_attempts:
                    continue
                self._store(record, error)
                rules.tell(record, error)
                return False
            return True
        raise AssertionError("a record is tried at least once")

    def _store(self, record: Record, error: Exception) -> None:
        sent = self._producer.send_raw(*self._rules.letter(record, error))
        sent.result(self._rules.timeout)
