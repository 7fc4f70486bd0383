"""One account for the memory that peers can make the endpoint use."""


class Budget:
    """Counts bytes against a limit.

    Args:
        limit: the most bytes.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used = 0

    def __repr__(self) -> str:
        return f"<Budget {self.used} of {self.limit} bytes>"

    def change(self, by: int) -> bool:
        """Note bytes that are held, or given back; return whether the limit is kept."""
        self.used += by
        return self.used <= self.limit


class Share:
    """What one connection holds of a budget, by purpose; all of it is given back at the end."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._pending_requests: dict[str, int] = {}

    def __repr__(self) -> str:
        return f"<Share {self._pending_requests}>"

    def hold(self, purpose: str, size: int) -> bool:
        """Hold so many bytes for a purpose from now on; return whether the limit is kept."""
        before = self._pending_requests.get(purpose, 0)
        self._pending_requests[purpose] = size
        return self._budget.change(size - before) or size <= before

    def grow(self, purpose: str, by: int) -> bool:
        """Hold more bytes for a purpose; return whether the limit is kept."""
        return self.hold(purpose, self._pending_requests.get(purpose, 0) + by)

    def release(self) -> None:
        """Give everything back."""
        self._budget.change(-sum(self._pending_requests.values()))
        self._pending_requests.clear()
