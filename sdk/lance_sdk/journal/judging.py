"""Deciding what is done about a rejected frame."""

from typing import Final

from lance_sdk.journal.outbox_parts import OutboxLimits
from lance_sdk.journal.rejections import Policy, Rejection

_RETRIES: Final = {Policy.RETRY, Policy.RETRY_OTHER}


class Judge:
    """Counts rejections for each frame, and says when retrying one has become pointless.

    Strikes belong to a frame, so that rejections of others in between do not hide a poisonous
    one; and they must have taken their time, so that a short outage never halts a sender.

    Args:
        limits: policies, strikes and dwell.
    """

    def __init__(self, limits: OutboxLimits) -> None:
        self._limits = limits
        self._policies = {**limits.defaults, **limits.policies}
        self._strikes: dict[int, tuple[int, float]] = {}

    def __repr__(self) -> str:
        return f"<Judge of {len(self._strikes)} rejected frames>"

    def policy(self, rejection: Rejection, now: float) -> tuple[int, Policy]:
        """Return how often a frame was rejected, this time included, and what is done."""
        strikes, since = self._strikes.get(rejection.first_fsn, (0, now))
        strikes += 1
        self._strikes[rejection.first_fsn] = (strikes, since)
        policy = self._policies[rejection.category]
        limits = self._limits
        poisonous = strikes >= limits.strikes and now - since >= limits.dwell
        return strikes, Policy.HALT if policy in _RETRIES and poisonous else policy

    def forget(self, fsn: int) -> None:
        """Drop the strikes of a frame that is dealt with."""
        self._strikes.pop(fsn, None)
