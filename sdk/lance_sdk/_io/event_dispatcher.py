"""Events to the log, to hooks and to whoever waits; the same for both drivers."""

import time
from collections.abc import Sequence

from lance_sdk._io.hook_runner import HookRunner
from lance_sdk._protocol.completion import Completion
from lance_sdk._protocol.events import (
    BacklogSeen,
    Connected,
    Disconnected,
    Event,
    Fetched,
    Notice,
    OffloadedTask,
    Sent,
    Spilled,
    Throttled,
)
from lance_sdk._protocol.produce.delivery import Batch
from lance_sdk.hooks import (
    BacklogEvent,
    BackpressureEvent,
    BatchAckedEvent,
    BatchFailedEvent,
    BatchSentEvent,
    CloseEvent,
    ConnectEvent,
    DisconnectEvent,
    FetchEvent,
    Hooks,
    PushEvent,
    SpillEvent,
)
from lance_sdk.logs import DELIVERY, SESSION

_REPEAT = 60.0
"""Seconds for which notices of one kind count as one incident."""


class EventDispatcher:
    """Announces outcomes and logs the rest: one warning an incident, however many retries.

    Args:
        name: what the driver is for, as messages show it.
        hooks: what is told of everything.
        topic: the topic's label, for hooks.
    """

    def __init__(self, name: str, hooks: Hooks | Sequence[Hooks] = (), topic: str = "") -> None:
        self._name = name
        self._topic = topic
        self._was_connected = False
        self._failures = 0
        self._noticed: dict[str, float] = {}
        self.hooks = HookRunner(hooks)
        self._hooked = bool(self.hooks)

    def announce(self, events: list[Event]) -> list[OffloadedTask]:
        """Handle events in order; no lock may be held: outcomes run user code.

        Returns:
            Offloaded tasks for the driver to run.
        """
        offloaded_tasks: list[OffloadedTask] = []
        for event in events:
            if isinstance(event, Completion):
                event.announce(self._callback_failed)
            elif isinstance(event, Connected):
                self._connected(event)
            elif isinstance(event, Disconnected):
                self._disconnected(event)
            elif isinstance(event, Notice):
                self._notice(event)
            elif isinstance(event, OffloadedTask):
                offloaded_tasks.append(event)
            if self._hooked:
                self._tell(event)
        return offloaded_tasks

    def _connected(self, event: Connected) -> None:
        extra = self._extra(peer=event.peer, dialect=event.dialect, failures=self._failures)
        if self._failures and self._was_connected:
            text = "%s: connected again to %s (%s) after %d failures"
            SESSION.info(text, self._name, event.peer, event.dialect, self._failures, extra=extra)
        else:
            text = "%s: connected to %s (%s)"
            SESSION.debug(text, self._name, event.peer, event.dialect, extra=extra)
        if self.hooks:
            told = ConnectEvent(
                source=self._name,
                peer=event.peer,
                dialect=event.dialect,
                failures=self._failures,
                again=self._was_connected,
            )
            self.hooks.call("on_connect", told)
        self._was_connected = True
        self._failures = 0
        self._noticed.clear()

    def _disconnected(self, event: Disconnected) -> None:
        extra = self._extra(error=type(event.error).__name__, retry_in=event.retry_in)
        if event.retry_in is None or event.usual:
            SESSION.debug("%s: disconnected: %s", self._name, event.error, extra=extra)
            return
        if event.redirect is not None:
            text = "%s: redirected to %s; connecting to it in %.2f s"
            SESSION.info(text, self._name, event.redirect, event.retry_in, extra=extra)
            return
        self._failures += 1
        quiet = event.told or self._failures > 1 or not self._was_connected
        log = SESSION.debug if quiet else SESSION.warning
        text = "%s: %s; trying again in %.2f s"
        log(text, self._name, event.error, event.retry_in, extra=extra)

    def _notice(self, event: Notice) -> None:
        """Warn once an incident; the same again within a minute is for DEBUG."""
        now = time.monotonic()
        known = now < self._noticed.get(event.kind, -_REPEAT) + _REPEAT
        self._noticed[event.kind] = now
        log = DELIVERY.debug if known else DELIVERY.warning
        log("%s: %s", self._name, event.message, extra=self._extra(kind=event.kind))

    def tell_end(self, delivered: int, unsent: int) -> None:
        """Tell the hooks how a producer ended."""
        if self.hooks:
            told = CloseEvent(
                source=self._name, topic=self._topic, delivered=delivered, unsent=unsent
            )
            self.hooks.call("on_close", told)

    def warn(self, kind: str, message: str) -> None:
        """Warn once an incident; no lock may be held."""
        self._notice(Notice(message, kind))

    def _extra(self, **fields: object) -> dict[str, dict[str, object]]:
        return {"lance": {"source": self._name, **fields}}

    def _callback_failed(self, error: BaseException) -> None:
        DELIVERY.error("%s: a callback raised", self._name, exc_info=error, extra=self._extra())

    def _tell(self, event: Event) -> None:
        """Tell the hooks, in their words."""
        call, source, topic = self.hooks.call, self._name, self._topic
        if isinstance(event, Batch):
            self._tell_settled(event)
        elif isinstance(event, Sent):
            call("on_batch_sent", _sent(source, topic, event))
        elif isinstance(event, Fetched):
            self._tell_fetched(event)
        elif isinstance(event, Throttled):
            call("on_backpressure", BackpressureEvent(source=source, window=event.window))
        elif isinstance(event, BacklogSeen):
            call("on_backlog", _backlog(source, event))
        elif isinstance(event, Disconnected):
            told = DisconnectEvent(source=source, error=event.error, retry_in=event.retry_in)
            call("on_disconnect", told)
        elif isinstance(event, Spilled):
            size, records = event.batch.size, event.batch.count
            spilled = SpillEvent(source=source, topic=topic, records=records, size=size)
            call("on_spill", spilled)

    def _tell_settled(self, batch: Batch) -> None:
        if batch.error is None:
            self.hooks.call("on_batch_acked", _acked(self._name, self._topic, batch))
            return
        failed = BatchFailedEvent(
            source=self._name,
            topic=self._topic,
            batch_id=batch.batch_id,
            records=batch.count,
            size=batch.size,
            attempts=batch.attempts,
            total_seconds=batch.settled_at - batch.created,
            error=batch.error,
        )
        self.hooks.call("on_batch_failed", failed)

    def _tell_fetched(self, event: Fetched) -> None:
        if event.seconds is None:
            pushed = PushEvent(
                source=self._name, topic=self._topic, offset=event.offset, size=event.size
            )
            self.hooks.call("on_push", pushed)
            return
        fetched = FetchEvent(
            source=self._name,
            topic=self._topic,
            offset=event.offset,
            size=event.size,
            seconds=event.seconds,
            end=event.end,
        )
        self.hooks.call("on_fetch", fetched)


def _backlog(source: str, event: BacklogSeen) -> BacklogEvent:
    return BacklogEvent(
        source=source,
        frames=event.frames,
        size=event.size,
        age=event.age,
        outage=event.outage,
    )


def _sent(source: str, topic: str, event: Sent) -> BatchSentEvent:
    return BatchSentEvent(
        source=source,
        topic=topic,
        batch_id=event.batch.batch_id,
        records=event.batch.count,
        size=event.batch.size,
        wire_size=event.wire_size,
        attempt=event.attempt,
        waited=event.waited,
    )


def _acked(source: str, topic: str, batch: Batch) -> BatchAckedEvent:
    return BatchAckedEvent(
        source=source,
        topic=topic,
        batch_id=batch.batch_id,
        records=batch.count,
        size=batch.size,
        attempts=batch.attempts,
        seconds=batch.settled_at - batch.sent_at,
        total_seconds=batch.settled_at - batch.created,
    )
