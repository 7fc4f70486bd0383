"""How a sender sends, and the nonce of its batch ids."""

from dataclasses import dataclass
from typing import Final

from lance_sdk._protocol.backoff import RandomSource
from lance_sdk._protocol.produce.compression import Compression
from lance_sdk.errors import ServerError

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
        max_attempts: how often a refused batch is sent; 0 is no limit.
        retry_also: codes that are worth another try although their class says no.
        retry_never: codes that are not although their class says yes.
        journal_always: everything goes through the journal.
        label: the topic's name, for messages.
    """

    topic_id: int
    nonce: int
    max_in_flight: int
    compression: Compression = "none"
    max_attempts: int = 0
    retry_also: frozenset[int] = frozenset()
    retry_never: frozenset[int] = frozenset()
    journal_always: bool = False
    label: str = ""

    def worth_another_try(self, error: ServerError, attempts: int) -> bool:
        """Whether a refused batch is sent again."""
        if self.max_attempts and attempts >= self.max_attempts:
            return False
        if error.code in self.retry_never:
            return False
        return error.retryable or error.code in self.retry_also
