"""Names of segment files (Design section 24.2, AMB-16)."""

import re
from dataclasses import dataclass
from typing import Final, Self

from lance_spec.errors import DecodeError

DATA_SUFFIX: Final = ".lnc"
"""What the data files of a topic's segments end with."""
SIDECAR_SUFFIX: Final = ".batches"
"""What their sidecars end with (AMB-14)."""
QWP_SLOT_SUFFIX: Final = ".sfa"
"""What segment files of store-and-forward slots end with that hold complete QWP messages."""
LWP_SLOT_SUFFIX: Final = ".sfl"
"""What those end with that hold batches for LWP (SF-31)."""
_FORM: Final = re.compile(r"(\d{1,20})_(\d{1,20})(?:-(\d{1,20}))?\.lnc", re.ASCII)
_NUMBERS: Final = ("start_index", "start_ns", "end_ns")
_MESSAGE: Final = "SegmentName"


@dataclass(frozen=True, slots=True)
class SegmentName:
    """What the file name of a segment says.

    Attributes:
        start_index: number of records in the topic before the segment.
        start_ns: when it was begun, by the server's clock, in nanoseconds since the Unix epoch.
        end_ns: when its last batch arrived, by the same clock; None while it is written.
    """

    start_index: int
    start_ns: int
    end_ns: int | None = None

    def __str__(self) -> str:
        end = "" if self.end_ns is None else f"-{self.end_ns}"
        return f"{self.start_index}_{self.start_ns}{end}.lnc"

    @property
    def is_closed(self) -> bool:
        """Whether nothing is appended to the segment any more."""
        return self.end_ns is not None

    @classmethod
    def parse(cls, name: str) -> Self:
        """Return what a file name says.

        Times are taken as they stand: published servers have also written seconds and
        microseconds, which only whoever knows the server can tell apart.

        Raises:
            DecodeError: it is not a segment's name, or a number in it has more than 64 bits.
        """
        match = _FORM.fullmatch(name)
        if match is None:
            expected = "INDEX_START.lnc or INDEX_START-END.lnc in decimal digits"
            raise DecodeError(_MESSAGE, "", 0, expected, repr(name[:80]))
        numbers = [None if each is None else int(each) for each in match.groups()]
        for place, (field, number) in enumerate(zip(_NUMBERS, numbers, strict=True), start=1):
            if number is not None and number >= 2**64:
                raise DecodeError(_MESSAGE, field, match.start(place), "64 bits", str(number))
        start_index, start_ns, end_ns = numbers
        assert start_index is not None
        assert start_ns is not None
        if end_ns is not None and end_ns < start_ns:
            raise DecodeError(_MESSAGE, "end_ns", match.start(3), f">= {start_ns}", str(end_ns))
        return cls(start_index, start_ns, end_ns)
