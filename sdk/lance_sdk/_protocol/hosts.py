"""Which server to try next, and in which dialect."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from lance_spec.dialect import Dialect
from lance_spec.limits import DEFAULT_PORT


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A server's address.

    Attributes:
        host: name or IP address, without brackets.
        port: TCP port.
    """

    host: str
    port: int = DEFAULT_PORT

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Return the address that ``host:port`` is, where it is one."""
        host, _, port = text.rpartition(":")
        if host and port.isascii() and port.isdigit() and 0 < int(port[:6]) < 2**16:
            return cls(host.strip("[]"), int(port))
        return None

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Hosts:
    """Rotation over the endpoints; each remembers the dialect that it proved.

    Only a received frame with a valid CRC proves a dialect. It is forgotten when a later
    connection is closed before its first byte, except while a dialect is pinned.

    Args:
        endpoints: the addresses, in order of preference.
        dialects: the dialects to try at each, in order.
    """

    def __init__(self, endpoints: Sequence[Endpoint], dialects: tuple[Dialect, ...]) -> None:
        self._endpoints = tuple(endpoints)
        self._dialects = dialects
        self._proven: dict[Endpoint, Dialect] = {}
        self._leader: Endpoint | None = None
        self._referral: Endpoint | None = None
        self._cursor = 0
        self._trial = 0
        self._given_up = 0

    def __repr__(self) -> str:
        return f"<Hosts next={self.current} trial={self._trial} of {len(self._endpoints)}>"

    @property
    def current(self) -> Endpoint:
        """The endpoint to try next, or in use."""
        return self._leader or self._endpoints[self._cursor]

    @property
    def redirected(self) -> bool:
        """Whether the current endpoint is one that another server has named."""
        return self._leader is not None

    def dialect(self, pinned: Dialect | None) -> Dialect:
        """Return the dialect to speak there; a pinned one is spoken everywhere."""
        return pinned or self._proven.get(self.current) or self._dialects[self._trial]

    def candidates(self, pinned: Dialect | None) -> tuple[Dialect, ...]:
        """Return the dialects to understand there."""
        return self._dialects if pinned is None else (pinned,)

    def proved(self, dialect: Dialect) -> None:
        """Remember what the current endpoint speaks."""
        if self.current in self._endpoints:  # redirects come from a server: they are not kept
            self._proven[self.current] = dialect
        self._trial = 0

    def closed_unheard(self, pinned: Dialect | None) -> bool:
        """Take note that the endpoint closed before its first byte.

        Returns:
            Whether another dialect is worth an immediate try.
        """
        if pinned is not None or len(self._dialects) == 1:
            return False
        if self._proven.pop(self.current, None) is not None:
            self._trial = 0
            return True
        self._trial += 1
        return self._trial < len(self._dialects)

    def give_up(self) -> bool:
        """Move on to the next endpoint; return whether that completes a round."""
        self._trial = 0
        if self._leader is not None or self._referral is not None:
            was_named = self._leader is not None
            self._leader, self._referral = self._referral, None
            if not was_named:  # where the named one fails, this one would only name it again
                self._cursor = (self._cursor + 1) % len(self._endpoints)
            return was_named  # a pause, so that hosts which name each other cause no chase
        self._given_up += 1
        self._cursor = (self._cursor + 1) % len(self._endpoints)
        return self._given_up % len(self._endpoints) == 0

    def redirect(self, leader: str) -> None:
        """Try this ``host:port`` after the current one, where it is one (LWP section 12.4)."""
        self._referral = Endpoint.parse(leader) or self._referral
