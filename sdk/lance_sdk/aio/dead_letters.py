"""Records that cannot be handled, out of the way and not lost, for tasks."""

from collections.abc import Awaitable, Callable
from typing import Any

from lance_sdk._api.arguments.unit_parsing import Duration
from lance_sdk.aio.producer import AsyncProducer
from lance_sdk.dead_letters import Rules, check_producer
from lance_sdk.types import Record

__all__ = ["AsyncDeadLetters"]


class AsyncDeadLetters:
    """Handles records, and stores those that cannot be handled in a topic of their own.

    See `lance_sdk.dead_letters`.

    Args:
        producer: of that topic; it must be open.
        max_attempts: how often a record is tried, without a pause in between.
        timeout: seconds to wait until a dead letter is acknowledged.
        catch: what a handler raises for a record that it cannot handle. Anything else passes
            through at once, and the record is not done.
        told: called with the record and the last error once the record is stored.

    Raises:
        ConfigError: ``max_attempts`` or ``timeout`` is not valid.
    """

    def __init__(
        self,
        producer: AsyncProducer,
        *,
        max_attempts: int = 3,
        timeout: Duration = 30.0,
        catch: type[Exception] | tuple[type[Exception], ...] = Exception,
        told: Callable[[Record, Exception], object] | None = None,
    ) -> None:
        check_producer("AsyncDeadLetters", producer, awaited=True)
        self._producer = producer
        self._rules = Rules(max_attempts, timeout, catch, told)

    def __repr__(self) -> str:
        rules = self._rules
        return f"<AsyncDeadLetters stored={rules.stored} max_attempts={rules.max_attempts}>"

    @property
    def stored(self) -> int:
        """Dead letters stored so far."""
        return self._rules.stored

    async def handle(self, record: Record, handler: Callable[[Record], Awaitable[Any]]) -> bool:
        """Await ``handler(record)`` until it returns, or store the record as a dead letter.

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
                await handler(record)
            except rules.catch as error:
                if attempt < rules.max_attempts:
                    continue
                await self._store(record, error)
                rules.tell(record, error)
                return False
            return True
        raise AssertionError("a record is tried at least once")

    async def _store(self, record: Record, error: Exception) -> None:
        sent = await self._producer.send_raw(*self._rules.letter(record, error))
        await sent.result(self._rules.timeout)
