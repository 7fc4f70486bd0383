"""Time and chance that do what a test says."""


class ManualClock:
    """A clock that moves when it is told to.

    Attributes:
        now: seconds since an arbitrary start.
    """

    def __init__(self, now: float = 1000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        """Return the time, as ``time.monotonic`` does."""
        return self.now

    def __repr__(self) -> str:
        return f"<ManualClock {self.now}>"

    def advance(self, seconds: float) -> float:
        """Let time pass; return the new time."""
        if seconds < 0:
            raise ValueError(f"time does not run backwards: {seconds}")
        self.now += seconds
        return self.now


class LoadedDice:
    """Randomness that always falls on the same place.

    Args:
        fraction: where between the ends `uniform` falls, from 0 to 1.
        bits: what `getrandbits` returns, cut to the number of bits asked for.
    """

    def __init__(self, fraction: float = 0.0, bits: int = 0x5EED) -> None:
        self._fraction = fraction
        self._bits = bits

    def __repr__(self) -> str:
        return f"<LoadedDice fraction={self._fraction} bits={self._bits:#x}>"

    def uniform(self, a: float, b: float, /) -> float:
        """Return the number at the chosen fraction between ``a`` and ``b``."""
        return a + (b - a) * self._fraction

    def getrandbits(self, k: int, /) -> int:
        """Return the chosen bits."""
        return self._bits & ((1 << k) - 1)
