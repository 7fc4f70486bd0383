"""Records into a journal, and from there into topics; for threads."""

import os
from collections.abc import Iterable
from functools import partial
from typing import Any, Self, Unpack

from lance_sdk._api.arguments.signature import shows_options
from lance_sdk._protocol.produce.compression import Compression
from lance_sdk.journal._sending.core import SenderCore
from lance_sdk.journal._sending.sender import ForwardingSender
from lance_sdk.journal.config import JournalConfig
from lance_sdk.journal.lwp.batching import batches, one_record
from lance_sdk.journal.lwp.options import SenderOptions
from lance_sdk.journal.lwp.sender_parts import SENDER_SETTINGS, LwpSenderParts
from lance_sdk.journal.lwp.settings import LwpSettings, from_arguments, from_connect_string
from lance_sdk.journal.lwp.topic_ids import OnMissing
from lance_sdk.journal.lwp.transport import LwpTransports
from lance_sdk.types import Buffer
from lance_sdk.url import URL
from lance_spec.enums import RecordType

__all__ = ["StoreAndForwardSender"]


@shows_options(*SENDER_SETTINGS)
class StoreAndForwardSender(ForwardingSender):
    """Stores records on disk and has them delivered, in order, once, when a server is there.

    ::

        url = "lance://localhost:1992/readings"
        with StoreAndForwardSender(url, "/var/lib/app/edge-1") as sender:
            sender.send(b"21.5")
            sender.send_many([b"21.6", b"21.7"])

    The constructor does no I/O. Opening takes the slot and does not wait for a server. Any
    number of threads may send. What was stored is sent again by the next sender of the slot,
    whatever happens to this process.

    Args:
        url: the servers, and the topic of records that name none, see `lance_sdk.url`; or all
            settings at once.
        path: the slot's folder, which is made with its parents. None keeps frames in memory.
        journal: settings of the ring; None means the defaults.
        on_missing_topic: what becomes of frames whose topic does not exist at the server:
            ``create`` creates it, ``hold`` has everything wait until somebody does,
            ``dead_letter`` writes them to the dead-letter file.
        compression: ``lz4`` compresses frames on the way to servers that understand it, ``auto``
            those that get smaller (AMB-20).
        **options: the fields of `ForwardConfig` and of `lance_sdk.config.ClientConfig`.

    Raises:
        ConfigError: for a URL or an option that cannot be used.
    """

    def __init__(
        self,
        url: str | URL | LwpSettings,
        path: str | os.PathLike[str] | None = None,
        *,
        journal: JournalConfig | None = None,
        on_missing_topic: OnMissing = "hold",
        compression: Compression = "none",
        **options: Unpack[SenderOptions],
    ) -> None:
        if not isinstance(url, LwpSettings):
            url = from_arguments(
                url,
                path,
                journal,
                options,
                on_missing_topic=on_missing_topic,
                compression=compression,
            )
        self._lwp = url
        self._parts: LwpSenderParts | None = None
        self._transports = LwpTransports(url)
        super().__init__(url.forward, self._transports, f"{type(self).__name__} {url.url}")

    @classmethod
    def from_conf(cls, conf: str, **overrides: Any) -> Self:
        """Return a sender set up by a connect string.

        Args:
            conf: for example ``lance::addr=localhost:1992;topic=readings;sf_dir=/var/lib/app;``;
                see `lance_sdk.journal.connect_string`.
            **overrides: fields of `ForwardConfig` that a string cannot express.

        Raises:
            ConfigError: naming the key at fault.
        """
        return cls(from_connect_string(conf, **overrides))

    def _prepared(self, core: SenderCore) -> None:
        self._parts = LwpSenderParts(self._lwp, self._transports, core)

    @property
    def _ready(self) -> LwpSenderParts:
        self._usable()
        assert self._parts is not None
        return self._parts

    def send(
        self,
        value: Buffer,
        *,
        topic: str | None = None,
        record_type: int = RecordType.RAW_DATA,
        timeout: float | None = None,
    ) -> int:
        """Store one record as a frame of its own; return the frame's number.

        It never waits for the network. For many records `send_many` is faster, on the disk and
        on the wire.

        Args:
            value: the record's bytes.
            topic: its topic; None means the one in the URL.
            record_type: its TLV type (LWP section 8.2).
            timeout: seconds to wait for room; None means the journal's ``append_timeout``.

        Raises:
            JournalFull: there was no room in time; the error says what is waited for.
            NotYetDurable: it is stored, but not synced in time (`Durability.APPEND`).
            RecordTooLarge: it does not fit in a frame.
            UnsafeRecordType: there is no such type (AMB-13).
            LanceError: what halted the sender.
        """
        parts = self._ready
        records = one_record(value, record_type, parts.limit)
        number = parts.topic_number(topic)
        return self._store(partial(parts.batch_ids.append, number, 1, records), timeout)

    def send_many(
        self,
        values: Iterable[Buffer],
        *,
        topic: str | None = None,
        record_type: int = RecordType.RAW_DATA,
        timeout: float | None = None,
    ) -> int:
        """Store many records, many in a frame; return the number of the last frame.

        Args:
            values: the records' bytes; taken as they are needed.
            topic: their topic; None means the one in the URL.
            record_type: the TLV type of all of them.
            timeout: seconds to wait for room, for each frame.

        Raises:
            JournalFull: there was no room in time; earlier frames of this call are stored.
            LanceError: as for `send`.
        """
        parts = self._ready
        number, last = parts.topic_number(topic), self.published_fsn
        for count, records in batches(values, record_type, parts.limit):
            last = self._store(partial(parts.batch_ids.append, number, count, records), timeout)
        return last
