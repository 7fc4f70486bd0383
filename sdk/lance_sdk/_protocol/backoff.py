"""Delays between attempts (AMB-42)."""

from typing import Protocol

_LARGEST_EXPONENT = 60
"""2**60 times any base is over any cap; growing further would only overflow."""


class RandomSource(Protocol):
    """The randomness a core needs; `random.Random` fits."""

    def uniform(self, a: float, b: float, /) -> float:
        """Return a number between ``a`` and ``b``."""
        ...

    def getrandbits(self, k: int, /) -> int:
        """Return ``k`` random bits."""
        ...


class Backoff:
    """Exponential delays with full jitter above the base.

    The n-th delay is uniform in [d, 2d) with d = min(base * 2**n, cap). Only progress (an
    acknowledgement, data) starts over; a connection alone does not, so a server that accepts
    and drops is not hammered.

    Args:
        base: seconds.
        cap: seconds.
        rng: the randomness.
    """

    __slots__ = ("_base", "_cap", "_exponent", "_rng")

    def __init__(self, base: float, cap: float, rng: RandomSource) -> None:
        self._base = base
        self._cap = cap
        self._rng = rng
        self._exponent = 0

    def __repr__(self) -> str:
        return f"<Backoff base={self._base} cap={self._cap} exponent={self._exponent}>"

    @property
    def begun(self) -> bool:
        """Whether there was a delay since the last progress."""
        return self._exponent > 0

    def next_delay(self) -> float:
        """Return the seconds to wait now, and grow."""
        delay = min(self._base * 2.0**self._exponent, self._cap)
        self._exponent = min(self._exponent + 1, _LARGEST_EXPONENT)
        return self._rng.uniform(delay, 2 * delay)

    def reset(self) -> None:
        """Start over: there was progress."""
        self._exponent = 0
