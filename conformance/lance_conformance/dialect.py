"""Which rules are in force: the document's, or those of the published programs.

A dialect is a point on several axes. The kit holds a target to one dialect
(what is *demanded*) and talks to it in the one it was *found* to speak, so that one deviation is
one failing case and the other cases stay informative.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from lance_conformance.wire.crc import Checksum, crc32_ieee, crc32c

ErrorForm = Literal["json", "text"]
DialectName = Literal["specified", "deployed"]

CHECKSUMS: Mapping[str, Checksum] = {"crc32c": crc32c, "ieee": crc32_ieee}


@dataclass(frozen=True, slots=True)
class Dialect:
    """One set of rules.

    Attributes:
        name: The preset whose expectations apply.
        checksum: ``crc32c`` or ``ieee`` (AMB-01).
        errors: How an ErrorResponse is written (AMB-10).
        fetch_header: Bytes before the data of a FetchResponse (AMB-05).
    """

    name: DialectName
    checksum: str
    errors: ErrorForm
    fetch_header: int

    @property
    def compute(self) -> Checksum:
        """The checksum function of this dialect."""
        return CHECKSUMS[self.checksum]

    @property
    def other_checksum(self) -> Checksum:
        """The polynomial that this dialect does not speak."""
        return crc32_ieee if self.checksum == "crc32c" else crc32c


SPECIFIED = Dialect("specified", "crc32c", "json", 16)
DEPLOYED = Dialect("deployed", "ieee", "text", 16)
PRESETS: Mapping[str, Dialect] = {"specified": SPECIFIED, "deployed": DEPLOYED}
