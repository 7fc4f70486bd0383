"""LWP sessions that carry an outbox."""

from weakref import WeakKeyDictionary

from lance_sdk._api.factory import backoff_of, session_of
from lance_sdk._protocol.events import Notice
from lance_sdk._protocol.reconnecting_session import Session
from lance_sdk.journal._sending.outbox import Outbox
from lance_sdk.journal.lwp.forwarder import Forwarder
from lance_sdk.journal.lwp.metadata import SlotMetadata
from lance_sdk.journal.lwp.settings import LwpSettings
from lance_sdk.journal.lwp.topic_ids import TopicIds
from lance_sdk.url import URL


class LwpTransports:
    """Makes a session for each slot that is drained to one server; a `TransportFactory`.

    Args:
        settings: the server and how to treat it; each frame has its own topic.
    """

    def __init__(self, settings: LwpSettings) -> None:
        self._settings = settings
        self._metadata: WeakKeyDictionary[Outbox, SlotMetadata] = WeakKeyDictionary()

    def __repr__(self) -> str:
        return f"<LwpTransports to {self._settings.url.server_url()}>"

    def __call__(self, outbox: Outbox) -> Session:
        """Return a session that carries ``outbox``."""
        used = outbox.journal.next_fsn > 0
        metadata = SlotMetadata(outbox.journal.path, expected=used)
        self._metadata[outbox] = metadata
        return _session_for(outbox, metadata, self._settings)

    def metadata(self, outbox: Outbox) -> SlotMetadata:
        """Return what the slot of an outbox knows beside its frames."""
        return self._metadata[outbox]


def _session_for(outbox: Outbox, metadata: SlotMetadata, settings: LwpSettings) -> Session:
    def notice(text: str) -> None:
        outbox.events.append(Notice(text))

    if metadata.damage:
        notice(f"the slot's metadata is damaged: {metadata.damage}; topics may be unknown")
    client = settings.client
    forwarder = Forwarder(
        outbox,
        metadata,
        TopicIds(metadata, settings.on_missing_topic, notice),
        backoff_of(client),
        allow_unsafe=settings.allow_unsafe_types,
        compression=settings.compression,
    )
    server = URL(endpoints=settings.url.endpoints, tls=settings.url.tls)
    session = session_of(server, client, forwarder, outbox.backoff, outbox.events)
    forwarder.halt = session.fail
    return session
