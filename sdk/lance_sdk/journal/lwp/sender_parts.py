"""Code that the senders of both APIs share over LWP."""

import random
from typing import TYPE_CHECKING, Final

from lance_sdk.config import ClientConfig
from lance_sdk.errors import ConfigError
from lance_sdk.journal._sending.config import ForwardConfig
from lance_sdk.journal._sending.core import SenderCore
from lance_sdk.journal.lwp.batch_ids import BatchIdAssigner
from lance_sdk.journal.lwp.settings import FORWARD_OPTIONS, LwpSettings
from lance_sdk.journal.lwp.transport import LwpTransports
from lance_spec.errors import EncodeError
from lance_spec.names import check_topic_name

if TYPE_CHECKING:
    from lance_sdk.journal.lwp.metadata import SlotMetadata

_RANDOM: Final = random.SystemRandom()


SENDER_SETTINGS: Final = (ClientConfig, (ForwardConfig, FORWARD_OPTIONS))
"""Whose fields the options of a sender are."""


class LwpSenderParts:
    """Topics and batch ids of one open sender.

    Args:
        settings: the sender's settings.
        transports: what made its session.
        core: its open journal.

    Attributes:
        limit: most bytes of records in a frame.
        metadata: the slot's topics.
        batch_ids: stores batches.
    """

    def __init__(self, settings: LwpSettings, transports: LwpTransports, core: SenderCore) -> None:
        self.limit = settings.batch_limit
        self._default = settings.url.topic
        self._default_id = settings.url.topic_id
        self.metadata: SlotMetadata = transports.metadata(core.outbox)
        self.batch_ids = BatchIdAssigner(
            core.journal,
            lambda: self.metadata.draw(_RANDOM),
            settings.forward.journal.append_timeout,
        )

    def __repr__(self) -> str:
        return f"<LwpSenderParts {self.metadata!r} {self.batch_ids!r}>"

    def known_number(self, topic: str | None) -> int | None:
        """Return the slot's number of a topic, where it has one; never waits for the disk."""
        if topic is None:
            return self.metadata.known(self._default or "", self._default_id)
        if not isinstance(topic, str):
            raise ConfigError(f"topic={topic!r}: expected text")
        return self.metadata.known(topic)

    def topic_number(self, topic: str | None) -> int:
        """Return the slot's number of a topic, or of the one that the URL names.

        Raises:
            ConfigError: there is none, or no topic may have this name.
            OSError: a new topic cannot be kept.
        """
        known = self.known_number(topic)
        if known is not None:
            return known
        if topic is not None:
            return self.metadata.number(_checked(topic))
        if self._default is None and self._default_id is None:
            raise ConfigError("no topic is given: name one in the URL, or pass topic='...'")
        return self.metadata.number(self._default or "", self._default_id)


def _checked(topic: str) -> str:
    try:
        return check_topic_name(topic)
    except EncodeError as error:
        raise ConfigError(f"topic {topic!r}: expected {error.expected}, got {error.got}") from None
