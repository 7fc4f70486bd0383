"""Draining slots whose process has ended, several at a time (SF client section 18.2)."""

import threading
import time
from collections import deque
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Final

from lance_sdk._api.interruptible import join
from lance_sdk._io.threads.thread_driver import ThreadDriver
from lance_sdk.errors import TransportError
from lance_sdk.journal._sending.config import ForwardConfig
from lance_sdk.journal._sending.core import SenderCore
from lance_sdk.journal._slot.layout import FAILED
from lance_sdk.journal._slot.lock import acquire
from lance_sdk.journal.config import SlotKind
from lance_sdk.journal.errors import (
    JournalError,
    JournalFailed,
    JournalFull,
    SlotForOthers,
    SlotLocked,
    SlotUnreadable,
)
from lance_sdk.journal.files import RealFiles
from lance_sdk.journal.orphans import adopt, orphans
from lance_sdk.journal.transport import TransportFactory
from lance_sdk.journal.types import DrainerEvent, DrainerListener, DrainerStep, lost_in
from lance_sdk.logs import SESSION
from lance_spec.messages.store_forward import FailedSentinel

_LOOK: Final = 1.0
"""Seconds between two progress events."""
_JOIN: Final = 10.0
"""Seconds that stopping waits for a drainer whose disk does not answer."""


def log_drainer(event: DrainerEvent) -> None:
    """Log what a drainer did; the default listener."""
    bad = event.step == "failed" or event.lost_frames
    log = SESSION.warning if bad else SESSION.info
    if event.step != "progress":
        log("store-and-forward: slot %s %s %s", event.slot, event.step, event.reason)


class Drainer:
    """Drains one slot on the calling thread.

    Args:
        slot: the folder.
        config: settings of the sender that drains; its path is replaced.
        factory: makes the transport.
        listener: is told of every step.
    """

    def __init__(
        self,
        slot: Path,
        config: ForwardConfig,
        factory: TransportFactory,
        listener: DrainerListener,
    ) -> None:
        self._slot = slot
        self._config = replace(config, path=slot, dead_letter_dir=config.dead_letter_dir)
        self._factory = factory
        self._listener = listener
        self._changed = threading.Event()
        self._stopping = False

    def __repr__(self) -> str:
        return f"<Drainer {self._slot}>"

    def stop(self) -> None:
        """Have `run` end soon; what is not acknowledged stays."""
        self._stopping = True
        self._changed.set()

    def run(self) -> DrainerEvent:
        """Send everything the slot holds; return how it ended."""
        try:
            event = self._run()
        except SlotForOthers as error:
            event = self._event("skipped", reason=str(error))
        except SlotUnreadable as error:
            event = self._fail(str(error))
        except (SlotLocked, JournalFull, JournalFailed, OSError) as error:
            event = self._event("skipped", reason=str(error))
        except Exception as error:  # noqa: BLE001 - one bad slot must not end the other drainers
            event = self._event("skipped", reason=f"{type(error).__name__}: {error}")
        self._tell(event)
        return event

    def _run(self) -> DrainerEvent:
        names = RealFiles().names(self._slot)
        if FAILED in names:
            text = f"{FAILED} says why an earlier drainer gave up; remove it to try again"
            return self._event("skipped", reason=text)
        suffixes = tuple(each.suffix for each in SlotKind)
        if not any(name.endswith(suffixes) for name in names):
            return self._event("empty", reason="nothing waits in it")
        journal = adopt(self._slot, self._config.journal)
        try:
            if journal.stats().backlog_frames == 0:
                lost = lost_in(journal.problems)
                return self._event("empty", reason="nothing waits in it", lost=lost)
            core = SenderCore(journal, self._config, self._factory)
            try:
                return self._drain(core)
            finally:
                core.inbox.close()
        finally:
            journal.close()

    def _drain(self, core: SenderCore) -> DrainerEvent:
        last = core.journal.next_fsn - 1
        self._tell(self._event("started", core, last))
        driver = ThreadDriver(
            core.transport, f"Drainer {self._slot}", **self._config.driver_options
        )
        core.transport.open(time.monotonic())
        driver.start()
        try:
            with driver.lock:
                milestone = core.outbox.milestone(last)
            if not driver.add_callback(milestone, self._changed.set):
                self._changed.set()
            while not self._changed.wait(_LOOK):
                self._tell(self._event("progress", core, last))
        finally:
            driver.close(0.0)
        if core.outbox.settled_fsn >= last:
            return self._event("drained", core, last)
        if self._stopping:
            return self._event("stopped", core, last)
        failure = core.outbox.failure
        if isinstance(failure, TransportError):
            return self._event("skipped", core, last, str(failure))
        core.journal.mark_failed(str(failure))
        return self._event("failed", core, last, str(failure))

    def _event(
        self,
        step: DrainerStep,
        core: SenderCore | None = None,
        last: int = -1,
        reason: str = "",
        *,
        lost: int = 0,
    ) -> DrainerEvent:
        event = DrainerEvent(slot=self._slot, step=step, last_fsn=last, reason=reason)
        if core is None:
            return replace(event, lost_frames=lost)
        counters = core.outbox.counters
        return replace(
            event,
            settled_fsn=core.outbox.settled_fsn,
            acked_frames=counters.acked,
            lost_frames=lost_in(core.journal.problems) + counters.dropped,
            dead_letters=counters.dead_lettered,
        )

    def _fail(self, reason: str) -> DrainerEvent:
        """Keep other drainers away from a slot that nobody can read."""
        files = RealFiles()
        try:
            lock = acquire(files, self._slot)
            try:
                sentinel = FailedSentinel(reason.encode()).encode()
                files.replace(self._slot / FAILED, sentinel)
            finally:
                lock.close()
        except (JournalError, OSError) as error:
            return self._event("skipped", reason=f"{reason}; .failed cannot be written: {error}")
        return self._event("failed", reason=reason)

    def _tell(self, event: DrainerEvent) -> None:
        try:
            self._listener(event)
        except Exception as error:  # noqa: BLE001 - user code may raise anything
            SESSION.error("store-and-forward: the drainer listener raised", exc_info=error)


class DrainerPool:
    """Drains a list of slots, a few at a time, on threads of its own.

    Args:
        slots: the candidates; one that somebody holds is skipped.
        config: settings of the sender.
        factory: makes the transports.

    Attributes:
        active: slots being drained now.
        succeeded: slots that were drained.
        failed: slots that were given up.
        skipped: slots that were left for another time.
    """

    def __init__(
        self, slots: Iterable[Path], config: ForwardConfig, factory: TransportFactory
    ) -> None:
        self._waiting = deque(slots)
        self._config = config
        self._factory = factory
        self._lock = threading.Lock()
        self._running: list[Drainer] = []
        self._threads: list[threading.Thread] = []
        self._stopped = False
        self.active = 0
        self.succeeded = 0
        self.failed = 0
        self.skipped = 0

    def __repr__(self) -> str:
        counts = f"active={self.active} succeeded={self.succeeded} failed={self.failed}"
        return f"<DrainerPool waiting={len(self._waiting)} {counts}>"

    def start(self) -> None:
        """Start the threads."""
        for number in range(min(self._config.max_drainers, len(self._waiting))):
            thread = threading.Thread(
                target=self._work, name=f"lance-drainer-{number}", daemon=True
            )
            self._threads.append(thread)
            thread.start()

    def join(self, timeout: float) -> bool:
        """Wait until every slot was looked at; return whether that is so."""
        deadline = time.monotonic() + timeout
        return all(join(each, deadline - time.monotonic()) for each in self._threads)

    def stop(self) -> None:
        """End what is running; what is not acknowledged stays in its slot."""
        with self._lock:
            self._stopped = True
            self._waiting.clear()
            for each in self._running:
                each.stop()
        self.join(_JOIN)

    def _work(self) -> None:
        while (drainer := self._next()) is not None:
            event = drainer.run()
            with self._lock:
                self._running.remove(drainer)
                self.active -= 1
                self.succeeded += event.step in {"drained", "empty"}
                self.failed += event.step == "failed"
                self.skipped += event.step == "skipped"

    def _next(self) -> Drainer | None:
        listener = self._config.drainer_listener or log_drainer
        with self._lock:
            if self._stopped or not self._waiting:
                return None
            drainer = Drainer(self._waiting.popleft(), self._config, self._factory, listener)
            self._running.append(drainer)
            self.active += 1
            return drainer


def start_drainers(core: SenderCore, config: ForwardConfig, factory: TransportFactory) -> None:
    """Start draining the slots beside a sender's own, where that is wanted."""
    path = core.journal.path
    if not config.drain_orphans or path is None:
        return
    own = frozenset({path.name})
    pool = DrainerPool(orphans(path.parent, config.journal.kind, exclude=own), config, factory)
    pool.start()
    core.drainers = pool
