"""Which host to try next: the host tracker of QWP failover.

A *round* tries every host at most once. Within it the best-known host comes first, without a
pause between hosts; when it is exhausted, the transport pauses once and begins the next. Ingress
does not look at zones, so hosts differ in their state and in their place in ``addr`` only.
"""

from collections.abc import Sequence
from enum import IntEnum

from lance_sdk._protocol.hosts import Endpoint


class HostState(IntEnum):
    """What is known of a host, best first."""

    HEALTHY = 0
    """Its last connection could carry frames."""
    UNKNOWN = 1
    TRANSIENT_REJECT = 2
    """It answered 421 and said that it is catching up to be the primary."""
    TRANSPORT_ERROR = 3
    """It could not be reached, or its connection broke."""
    TOPOLOGY_REJECT = 4
    """It answered 421 and another role: it takes no writes."""


class HostTracker:
    """The hosts of one transport.

    Args:
        endpoints: the hosts, in order of preference.
    """

    def __init__(self, endpoints: Sequence[Endpoint]) -> None:
        self._endpoints = tuple(endpoints)
        self._states = [HostState.UNKNOWN] * len(self._endpoints)
        self._attempted: set[int] = set()
        self._sticky: int | None = None

    def __repr__(self) -> str:
        shown = ", ".join(
            f"{endpoint} {state.name}{'*' * (index in self._attempted)}"
            for index, (endpoint, state) in enumerate(
                zip(self._endpoints, self._states, strict=True)
            )
        )
        return f"<HostTracker {shown}>"

    def endpoint(self, index: int) -> Endpoint:
        """Return the address of a host."""
        return self._endpoints[index]

    def state(self, index: int) -> HostState:
        """Return what is known of a host."""
        return self._states[index]

    def pick(self) -> int | None:
        """Return the best host that this round has not tried, or None when there is none."""
        left = [each for each in range(len(self._endpoints)) if each not in self._attempted]
        return min(left, key=lambda each: self._states[each], default=None)

    def begin_round(self) -> None:
        """Let every host be tried again; only the last healthy one keeps its reputation."""
        self._attempted.clear()
        for index in range(len(self._endpoints)):
            healthy = self._states[index] is HostState.HEALTHY and index == self._sticky
            self._states[index] = HostState.HEALTHY if healthy else HostState.UNKNOWN

    def succeeded(self, index: int) -> None:
        """A connection to this host can carry frames."""
        self._states[index] = HostState.HEALTHY
        self._sticky = index
        self._attempted.add(index)

    def role_rejected(self, index: int, *, transient: bool) -> None:
        """This host takes no writes, or not yet."""
        self._attempted.add(index)
        self._states[index] = HostState.TRANSIENT_REJECT if transient else HostState.TOPOLOGY_REJECT

    def unreachable(self, index: int) -> None:
        """This host could not be used."""
        self._attempted.add(index)
        self._states[index] = HostState.TRANSPORT_ERROR

    def failed_midstream(self, index: int) -> None:
        """A connection that carried frames broke; call it before the next `pick`."""
        if self._states[index] is HostState.HEALTHY:
            self._states[index] = HostState.TRANSPORT_ERROR
