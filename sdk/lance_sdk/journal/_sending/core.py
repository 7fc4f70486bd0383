"""A journal, its outbox and a transport put together: the same for both APIs and for drainers."""

import random
import time
from typing import Final

from lance_sdk._errors.base import LanceError
from lance_sdk._io.at_exit import warn_of_loss
from lance_sdk._io.tasks.task_driver import TaskDriver
from lance_sdk._io.threads.thread_driver import ThreadDriver
from lance_sdk._protocol.backoff import Backoff
from lance_sdk.errors import ClosedError
from lance_sdk.journal._ring.journal import Journal
from lance_sdk.journal._sending.config import ForwardConfig
from lance_sdk.journal._sending.error_queue import ErrorInbox
from lance_sdk.journal._sending.outbox import Outbox
from lance_sdk.journal._sending.reconnecting import ReconnectLimiter
from lance_sdk.journal.config import Durability
from lance_sdk.journal.dead_letters import DeadLetterFile
from lance_sdk.journal.errors import JournalFull, NotYetDurable
from lance_sdk.journal.rejections import Category, Policy, Rejection
from lance_sdk.journal.sender_stats import Drainers, SenderReport, SenderStats
from lance_sdk.journal.transport import TransportFactory
from lance_sdk.journal.types import lost_in

_RANDOM: Final = random.SystemRandom()


class SenderCore:
    """The parts of one sender, and what both APIs do with them.

    Args:
        journal: the open journal.
        config: the settings.
        factory: makes the transport.

    Attributes:
        journal: the frames.
        outbox: what the transport sends.
        transport: what the driver drives.
        inbox: where rejections go.
        told: whether a call of the application has raised the failure already.
        drainers: the slots beside this one that are drained, or None.
    """

    def __init__(self, journal: Journal, config: ForwardConfig, factory: TransportFactory) -> None:
        self.journal = journal
        self.inbox = ErrorInbox(config.error_handler, config.error_inbox_capacity)
        folder = config.dead_letter_dir or journal.path
        letters = None if folder is None else DeadLetterFile(folder, config.dead_letter_bytes)
        self.outbox = Outbox(
            journal,
            config.limits,
            self.inbox,
            letters,
            backoff=Backoff(config.backoff_base, config.backoff_cap, _RANDOM),
            wall_clock=time.time,
        )
        self.transport = ReconnectLimiter(
            factory(self.outbox), self.outbox, budget=config.reconnect_budget
        )
        self.told = False
        self.drainers: Drainers | None = None
        self._acked_before = journal.acked_fsn
        self._tell_lost()

    def _tell_lost(self) -> None:
        """Tell of the frames that were lost before the slot was opened."""
        following = self.journal.acked_fsn + 1
        for each in self.journal.problems:
            if lost_in((each,)):
                first, last = each.lost or (following, following - 1)
                rejection = Rejection(
                    category=Category.DAMAGED,
                    message=str(each),
                    first_fsn=first,
                    last_fsn=last,
                    policy=Policy.DROP,
                    at=time.time(),
                )
                self.inbox.offer(rejection)

    def __repr__(self) -> str:
        return f"<SenderCore {self.journal!r} {self.outbox!r}>"

    def check(self) -> None:
        """Raise why nothing is sent any more, if that is so.

        Raises:
            LanceError: the failure.
        """
        failure = self.outbox.failure
        if failure is not None and not isinstance(failure, ClosedError):
            self.told = True
            raise failure.with_traceback(None)

    def explained(self, full: JournalFull) -> JournalFull:
        """Return an error about missing room that says how the connection stands."""
        if full.reason != "backlog":
            return full
        return full.with_link(self.transport.link(time.monotonic()))

    def untold_failure(self) -> LanceError | None:
        """Return the failure that no handler and no call has told yet (SF client section 17)."""
        failure = self.outbox.failure
        heard = self.told or (self.inbox.own_handler and self.inbox.delivered)
        return None if heard or failure is None or isinstance(failure, ClosedError) else failure

    def synced(self, fsn: int, timeout: float) -> bool:
        """Wait until a frame is synced; return whether it is."""
        if self.journal.durable_fsn >= fsn:
            return True
        try:
            return self.journal.sync(Durability.FLUSH, timeout=timeout) >= fsn
        except NotYetDurable:
            return False

    def lost_frames(self) -> int:
        """Return how many frames nobody has once this process ends."""
        return 0 if self.journal.path else self.journal.stats().backlog_frames

    def count_delivered(self) -> int:
        """Return how many frames were acknowledged since the journal was opened."""
        return self.journal.acked_fsn - self._acked_before

    def attend(self, driver: ThreadDriver | TaskDriver) -> None:
        """Let a driver report the frames that its sender leaves when it is not closed."""
        driver.count_lost = self.lost_frames
        driver.count_delivered = self.count_delivered
        driver.tell_loss = self._end_unclosed

    def _end_unclosed(self, lost: int, when: str) -> None:
        """Let go of the slot of a sender that nobody closed, and tell what is left."""
        if self.outbox.failure is not None and not isinstance(self.outbox.failure, ClosedError):
            return  # it was told, and whoever has the sender may still ask
        report = self.release()
        if report.kept_frames:
            when += f"; they stay in {self.journal.path}"
        warn_of_loss(lost or report.kept_frames, when, what="frames")

    def release(self) -> SenderReport:
        """Stop the drainers, close journal and inbox; return what is left."""
        failure: Exception | None = self.outbox.failure
        left = self.journal.stats().backlog_frames
        try:
            if self.drainers is not None:
                self.drainers.stop()
            self.journal.close()
        except LanceError as error:
            failure = failure if failure and not isinstance(failure, ClosedError) else error
        self.inbox.close()
        in_memory = self.journal.path is None
        return SenderReport(
            settled_fsn=self.outbox.settled_fsn,
            kept_frames=0 if in_memory else left,
            lost_frames=left if in_memory else 0,
            error=None if isinstance(failure, ClosedError) else failure,
            stats=self.stats(),
        )

    def stats(self) -> SenderStats:
        """Return every counter; it never raises, also after a failure and after closing."""
        counters, failure = self.outbox.counters, self.outbox.failure
        drainers = self.drainers
        return SenderStats(
            journal=self.journal.stats(),
            settled_fsn=self.outbox.settled_fsn,
            online=self.outbox.online,
            exactly_once=self.outbox.exactly_once,
            connect_attempts=self.transport.attempts,
            connects=counters.connects,
            frames_sent=counters.sent,
            frames_replayed=counters.replayed,
            frames_in_flight=self.outbox.in_flight,
            acks=counters.acks,
            server_errors=counters.rejections,
            dead_lettered=counters.dead_lettered,
            dropped_frames=counters.dropped,
            errors_delivered=self.inbox.delivered,
            errors_dropped=self.inbox.dropped,
            terminal_error=None if isinstance(failure, ClosedError) else failure,
            last_error=counters.last_error,
            drainers_active=drainers.active if drainers else 0,
            drainers_succeeded=drainers.succeeded if drainers else 0,
            drainers_failed=drainers.failed if drainers else 0,
        )


def open_core(config: ForwardConfig, factory: TransportFactory) -> SenderCore:
    """Open the journal of a sender and put everything around it together.

    Raises:
        JournalError: the slot cannot be used.
        OSError: likewise.
    """
    journal = Journal.open(config.path, config.journal)
    try:
        return SenderCore(journal, config, factory)
    except BaseException:
        journal.close()
        raise
