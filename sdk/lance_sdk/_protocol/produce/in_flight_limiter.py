"""How many batches may be unacknowledged at once."""


class InFlightLimiter:
    """Halves when the server asks for less, and grows back with acknowledgements.

    A Backpressure frame asks for half the rate (LWP section 4.4); what is in flight is what
    drives the rate, so half of it is the new bound. Each acknowledgement raises it by one.

    Args:
        limit: the bound when nobody complains.

    Attributes:
        size: the bound now.
    """

    __slots__ = ("_limit", "size")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.size = limit

    def __repr__(self) -> str:
        return f"<InFlightLimiter {self.size} of {self._limit}>"

    def halve(self, in_flight: int) -> None:
        """Take note of a Backpressure frame."""
        self.size = max(1, min(self.size, in_flight) // 2)
        assert self.size <= self._limit, "a complaint never raises the bound"

    def grow(self) -> None:
        """Take note of an acknowledgement."""
        self.size = min(self._limit, self.size + 1)
