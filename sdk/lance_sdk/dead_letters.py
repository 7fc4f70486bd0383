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
returns; so the place behind it is committed only when it is safe. A crash in between repeats
the record, which may then be there twice.
"""

import logging
from collections.abc import Callable
from typing import Any, Final

from lance_sdk._checks import check_plain
from lance_sdk._units import Duration, seconds
from lance_sdk.errors import ConfigError
from lance_sdk.producer import Producer
from lance_sdk.types import Record
from lance_spec.enums import RecordType

__all__ = ["DeadLetters"]

_log: Final = logging.getLogger("lance_sdk.dead_letters")


class Rules:
    """What both faces share: how often a record is tried, and what is told of it.

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

    def tell(self, record: Record, error: Exception) -> None:
        """Take note that a record was stored as a dead letter."""
        self.stored += 1
        text = "the record at offset %d of %s could not be handled %d times: %r"
        fields = {"topic": record.topic, "offset": record.offset, "error": type(error).__name__}
        extra = {"lance": {"source": "dead_letters", **fields}}
        _log.warning(text, record.offset, record.topic, self.max_attempts, error, extra=extra)
        if self._told is not None:
            self._told(record, error)


def type_of(record: Record) -> int:
    """Return the type under which a record is stored once more."""
    return RecordType.RAW_DATA if record.is_opaque else record.type


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
        ConfigError: ``max_attempts`` or ``timeout`` is none.
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
                self._store(record)
                rules.tell(record, error)
                return False
            return True
        raise AssertionError("a record is tried at least once")

    def _store(self, record: Record) -> None:
        sent = self._producer.send_raw(record.raw, type_of(record))
        sent.result(self._rules.timeout)
