"""Which refusals of the server are worth another try."""

from dataclasses import dataclass

from lance_sdk.errors import ServerError


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryRules:
    """The core's form of `lance_sdk.config.RetryPolicy`.

    Attributes:
        max_attempts: how often a refused batch is sent; 0 means no limit.
        also: codes that are worth another try although their class says no.
        never: codes that are not although their class says yes.
    """

    max_attempts: int = 0
    also: frozenset[int] = frozenset()
    never: frozenset[int] = frozenset()

    def allows(self, error: ServerError, attempts: int) -> bool:
        """Whether a batch that was refused is sent again after so many attempts."""
        if self.max_attempts and attempts >= self.max_attempts:
            return False
        if error.code in self.never:
            return False
        return error.retryable or error.code in self.also
