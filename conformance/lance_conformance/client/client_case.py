"""A case as data: what is done, what the server does, and what must come of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lance_conformance.client.checks import Check
from lance_conformance.client.operations import Op
from lance_conformance.client.scripted.model import TOPIC_ID
from lance_conformance.client.scripted.script import On

RECORDS: tuple[tuple[int, bytes], ...] = tuple((1, b"record %d" % n) for n in range(5))
"""What the topic holds at the beginning, where a case does not say otherwise."""


@dataclass(frozen=True, slots=True)
class ClientCase:
    """One case.

    Attributes:
        ops: What the client is told to do.
        script: What the server does in the place of right answers.
        checks: What must have come over the wire.
        records: What the topic holds at the beginning.
        topic_id: The topic's id.
        base: The offset of its first record: what was before is gone.
        torn: Each FetchResponse has one record, and so many bytes of the next one.
        cuts: Each FetchResponse has as many bytes as were asked for, wherever that is.
        paired: The same without the script must succeed first; otherwise the case is blocked.
        options: More for the client's connect: token, TLS, timers.
        rule: The one of the rules for every frame that this case is about.
        listens: The server accepts connections.
        tls: The certificate that the server shows; empty for plain TCP.
        exact: Each operation is compared in full with what a right client does.
    """

    ops: tuple[Op, ...]
    script: tuple[On, ...] = ()
    checks: tuple[Check, ...] = ()
    records: tuple[tuple[int, bytes], ...] = RECORDS
    topic_id: int = TOPIC_ID
    base: int = 0
    torn: int = 0
    cuts: bool = False
    paired: bool = True
    options: Mapping[str, Any] = field(default_factory=dict)
    rule: str = ""
    listens: bool = True
    tls: str = ""
    exact: bool = False
