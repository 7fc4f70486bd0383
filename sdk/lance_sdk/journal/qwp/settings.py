"""How a QWP sender reaches its hosts."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from lance_sdk._core.hosts import Endpoint
from lance_sdk.errors import ConfigError
from lance_sdk.journal.qwp.upgrade import Credentials


@dataclass(frozen=True, slots=True, kw_only=True)
class QwpSettings:
    """How a carrier connects.

    Attributes:
        endpoints: the hosts, in order of preference.
        tls: whether to speak TLS.
        credentials: who the sender is.
        durable: ask for durable acknowledgements, and let only them settle frames.
        keepalive: seconds without traffic after which a ping asks for durable acknowledgements
            that are due; 0 or less sends none.
        connect_timeout: seconds for each of name resolution, TCP and TLS.
        upgrade_timeout: seconds for the answer to the upgrade.
        answer_timeout: seconds without any bytes, while frames are unanswered, after which a
            ping is sent, and again as many until the connection counts as dead.
        ack_timeout: seconds without any frame being taken, while one is on the way, after which
            another connection is tried, although the host answers pings (``request_timeout``).
        retry_initially: whether hosts are tried again while none could ever be used.

    Raises:
        ConfigError: a value is out of range.
    """

    endpoints: Sequence[Endpoint]
    tls: bool = False
    credentials: Credentials = field(default_factory=Credentials)
    durable: bool = False
    keepalive: float = 0.2
    connect_timeout: float = 15.0
    upgrade_timeout: float = 15.0
    answer_timeout: float = 30.0
    ack_timeout: float = 120.0
    retry_initially: bool = True

    def __post_init__(self) -> None:
        if not self.endpoints:
            raise ConfigError("addr: at least one host is needed, for example addr=localhost:9000")
        if len(set(self.endpoints)) != len(self.endpoints):
            raise ConfigError("addr: a host is named twice")
        for name in ("connect_timeout", "upgrade_timeout", "answer_timeout", "ack_timeout"):
            if not 0 < getattr(self, name) < math.inf:
                raise ConfigError(f"{name}={getattr(self, name)}: expected more than 0 seconds")
