"""The journal behind a producer: ``Producer(journal=...)`` and ``on_full="journal"`` (SF-33)."""

import threading
import time
from collections import deque
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from lance_sdk._api.arguments.unit_parsing import seconds
from lance_sdk._api.spill_loader import SpilledBatch, SpillOutcome
from lance_sdk._errors.base import LanceError
from lance_sdk.errors import ConfigError
from lance_sdk.journal._sending.config import ForwardConfig
from lance_sdk.journal._sending.core import SenderCore
from lance_sdk.journal.config import JournalConfig
from lance_sdk.journal.errors import JournalError, JournalFull, SlotUnusable
from lance_sdk.journal.lwp.metadata import NO_TOPIC_ID
from lance_sdk.journal.lwp.sender import StoreAndForwardSender
from lance_sdk.journal.lwp.settings import LwpSettings, driver_settings
from lance_sdk.journal.rejections import Rejection
from lance_sdk.logs import DELIVERY
from lance_spec.errors import DecodeError
from lance_spec.messages.store_forward import StoredBatch

if TYPE_CHECKING:
    from lance_sdk.config import ProducerConfig
    from lance_sdk.url import URL

_TIMEOUT: Final = 1.0
"""Seconds that one append waits for room; the producer comes again."""
_COUNTING: Final = 2.0
"""Seconds that closing spends on counting the records that stay."""
_ENDLESS: Final = 1e9


class BatchRejected(JournalError):  # noqa: N818 - says what happened; "Error" would repeat it
    """A batch in the journal was given up.

    Attributes:
        rejection: why, and by which policy.
    """

    def __init__(self, rejection: Rejection) -> None:
        self.rejection = rejection
        super().__init__(f"{rejection}; policy: {rejection.policy.value}")

    def __reduce__(self) -> tuple[type["BatchRejected"], tuple[Rejection]]:
        return type(self), (self.rejection,)


class _Storing(StoreAndForwardSender):
    """A sender that stores batches which the producer has encoded."""

    def store(self, batch: SpilledBatch, timeout: float) -> int:
        """Store a batch under its own identifier, or under a new one."""
        parts = self._ready
        append = partial(
            parts.batch_ids.append,
            parts.topic_number(None),
            batch.record_count,
            batch.payload,
            batch_id=batch.batch_id,
            timestamp_ns=batch.timestamp_ns,
        )
        return self._store(append, timeout)

    @property
    def core(self) -> SenderCore:
        """The open journal and what sends it."""
        assert self._core is not None
        return self._core

    def batch_id(self, fsn: int) -> int:
        """Return the identifier that a frame stored just now got."""
        return self._ready.batch_ids.batch_id(fsn)

    def topic_id(self) -> int:
        """Return the server's number of the topic, once it told one; 0 before."""
        assert self._parts is not None
        topic = self._parts.metadata.topic(self._parts.topic_number(None))
        return 0 if topic is None or topic.topic_id == NO_TOPIC_ID else topic.topic_id


class JournalSpill:
    """A journal as a producer sees it; satisfies `lance_sdk._api.spill_loader.Spill`.

    Args:
        settings: slot and connection.
    """

    def __init__(self, settings: LwpSettings) -> None:
        self._settings = settings
        self._sender = _Storing(settings)
        self._lock = threading.Lock()
        self._pending: deque[int] = deque()
        self._ids: dict[int, int] = {}
        self._settled: dict[int, LanceError | None] = {}
        self._first = 0
        self._left: int | None = None

    def __repr__(self) -> str:
        return f"<JournalSpill pending={len(self._pending)} {self._sender!r}>"

    @property
    def _where(self) -> str:
        return str(self._settings.forward.path)

    @property
    def drained(self) -> bool:
        """Whether nothing is left, also of what an earlier process has stored."""
        return self._sender.core.outbox.drained

    def open(self) -> None:
        """Take the slot and recover it; never waits for the network.

        Raises:
            JournalError: another process has the slot, or it cannot be read.
            ConfigError: the folder cannot be made or used.
        """
        try:
            self._sender.open()
        except SlotUnusable as error:
            raise self._no_folder(error.__cause__ or error) from error
        except LanceError:
            raise
        except OSError as error:
            raise self._no_folder(error) from error
        self._first = self._sender.published_fsn + 1
        self._sender.core.outbox.observer = self._observe

    def _no_folder(self, error: BaseException) -> ConfigError:
        reason = getattr(error, "strerror", None) or error
        return ConfigError(
            f"journal={self._where}: {reason}; expected a folder in which this process may write"
        )

    def _observe(self, fsn: int, rejection: Rejection | None) -> None:
        if fsn < self._first:
            return
        with self._lock:
            self._settled[fsn] = None if rejection is None else BatchRejected(rejection)

    def append(self, batch: SpilledBatch) -> int:
        """Store a batch as durably as the journal was configured to; return its ticket.

        Raises:
            JournalError: it was not stored; `JournalFull` where another try may succeed.
        """
        timeout = min(_TIMEOUT, self._settings.forward.journal.append_timeout)
        try:
            ticket = self._sender.store(batch, timeout)
        except LanceError:
            raise
        except OSError as error:  # the disk, before the first frame too: it may have room again
            raise JournalFull("disk", 0.0, where=self._where, cause=error) from error
        with self._lock:  # its acknowledgement may have come already
            self._pending.append(ticket)
            self._ids[ticket] = batch.batch_id or self._sender.batch_id(ticket)
        return ticket

    def take_settled(self) -> list[SpillOutcome]:
        """Take what was acknowledged or given up since the last call, in order of tickets."""
        failure = self._sender.core.outbox.failure
        found = []
        with self._lock:
            while self._pending and (self._pending[0] in self._settled or failure is not None):
                ticket = self._pending.popleft()
                kept = ticket not in self._settled
                error = self._settled.pop(ticket, failure)
                number = self._sender.topic_id()
                found.append(SpillOutcome(ticket, self._ids.pop(ticket), number, error, kept))
        return found

    def close(self, timeout: float) -> int:
        """Go on sending for ``timeout`` seconds at most, then let the slot go.

        Returns:
            The records that stay in the journal. Of a backlog that takes seconds to read, those
            that could be counted.
        """
        if self._left is not None:
            return self._left
        core = self._sender.core
        with suppress(LanceError):  # what halted the sender was told with every batch
            self._sender.wait(timeout=timeout)
        self._left = _records_left(core)
        with suppress(LanceError):
            self._sender.close(0.0)
        return self._left


def _records_left(core: SenderCore) -> int:
    until, records = time.monotonic() + _COUNTING, 0
    try:
        for _, payload in core.journal.read_from(core.journal.acked_fsn + 1):
            records += StoredBatch.decode(payload).record_count
            if time.monotonic() > until:
                break
    except (JournalError, DecodeError, OSError) as error:
        DELIVERY.warning("records after %d cannot be counted: %s", records, error)
    return records


def make_spill(url: "URL", config: "ProducerConfig") -> JournalSpill:
    """Return the journal that a producer's settings name; nothing is opened yet.

    Args:
        url: where the journal's own connection goes.
        config: the producer's settings.

    Raises:
        ConfigError: the settings cannot be used.
    """
    assert config.journal is not None
    journal = config.journal_settings or JournalConfig()
    settings = LwpSettings(
        url=url,
        forward=ForwardConfig(
            path=Path(config.journal),
            journal=journal,
            backoff_base=seconds("backoff_base", config.backoff_base),
            backoff_cap=seconds("backoff_cap", config.backoff_cap),
            **driver_settings(config),
        ),
        client=config.replace(open_timeout=_ENDLESS),
        on_missing_topic="create" if config.create_topic else "hold",
        allow_unsafe_types=config.allow_unsafe_types,
        compression=config.compression,
    )
    if config.batch_bytes > settings.batch_limit:
        raise ConfigError(
            f"batch_bytes={config.batch_bytes}: a frame of the journal takes "
            f"{settings.batch_limit}; raise segment_bytes in journal_settings, or lower "
            "batch_bytes (SF-33)"
        )
    return JournalSpill(settings)
