"""How a sender sends, and the nonce of its batch ids."""

from dataclasses import dataclass, field
from typing import Final

from lance_sdk._protocol.backoff import RandomSource
from lance_sdk._protocol.produce.compression import Compression
from lance_sdk._protocol.produce.retry_policy import RetryRules

_NONCE_BITS: Final = 24


def draw_nonce(rng: RandomSource) -> int:
    """Return a producer nonce: 24 random bits, never 0 (AMB-25)."""
    while not (nonce := rng.getrandbits(_NONCE_BITS)):
        pass
    return nonce


@dataclass(frozen=True, slots=True, kw_only=True)
class SendSettings:
    """How a sender sends, as in `lance_sdk.config.ProducerConfig`.

    Attributes:
        topic_id: the topic's number when it is not resolved by name.
        nonce: upper 24 bits of every batch id.
        max_in_flight: batches that may be unacknowledged.
        compression: whether payloads are compressed.
        retry: which refused batches are sent again.
        journal_always: everything goes through the journal.
        label: the topic's name, for messages.
    """

    topic_id: int
    nonce: int
    max_in_flight: int
    compression: Compression = "none"
    retry: RetryRules = field(default_factory=RetryRules)
    journal_always: bool = False
    label: str = ""
