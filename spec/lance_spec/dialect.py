"""Dialects: the ways in which peers read the specification.

A dialect is a tuple of axes. Two presets are named: `SPECIFIED` is the LWP document with
the choices of the ambiguity register, `DEPLOYED` is what the published server and its
clients really do.
"""

from dataclasses import dataclass
from typing import Final, Literal

from lance_spec.checksum import CRC32_IEEE, CRC32C, Checksum
from lance_spec.limits import HEADER_SIZE, MAX_PAYLOAD

_PUBLISHED_FRAME_LIMIT: Final = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """One way of speaking LWP.

    Attributes:
        name: the preset's name, or a name of your own.
        checksum: the polynomial of header and payload CRC (AMB-01).
        json_errors: ErrorResponse carries JSON rather than text (AMB-10).
        fetch_header: bytes before the data of a FetchResponse, 16 or 24 (AMB-05).
        strict: reserved bits, payload forms and record chains are judged (AMB-26, 27, 33).
        strict_topic_names: names are ``[A-Za-z0-9-]+`` only (AMB-24).
        all_record_types: types 0x00 and 0xFF are safe to store (AMB-13).
        lz4: a compressed payload is understood (AMB-20).
        push: Subscribe makes the server push (AMB-21).
        zero_retention_is_unlimited: retention 0 means no limit (AMB-08).
        max_payload: largest frame payload in bytes (AMB-32).
        max_fetch_data: largest data part of a FetchResponse in bytes (AMB-32).
    """

    name: str
    checksum: Checksum
    json_errors: bool
    fetch_header: Literal[16, 24] = 16
    strict: bool
    strict_topic_names: bool
    all_record_types: bool
    lz4: bool
    push: bool
    zero_retention_is_unlimited: bool
    max_payload: int
    max_fetch_data: int

    def __str__(self) -> str:
        return self.name


SPECIFIED: Final = Dialect(
    name="specified",
    checksum=CRC32C,
    json_errors=True,
    strict=True,
    strict_topic_names=False,
    all_record_types=True,
    lz4=True,
    push=True,
    zero_retention_is_unlimited=True,
    max_payload=MAX_PAYLOAD,
    max_fetch_data=MAX_PAYLOAD,
)
"""The LWP document, with the choices of the ambiguity register."""

DEPLOYED: Final = Dialect(
    name="deployed",
    checksum=CRC32_IEEE,
    json_errors=False,
    strict=False,
    strict_topic_names=True,
    all_record_types=False,
    lz4=False,
    push=False,
    zero_retention_is_unlimited=False,
    max_payload=_PUBLISHED_FRAME_LIMIT,
    max_fetch_data=_PUBLISHED_FRAME_LIMIT - HEADER_SIZE - 16,
)
"""The published LANCE server and ``lnc-client`` packages."""

DIALECTS: Final = {dialect.name: dialect for dialect in (SPECIFIED, DEPLOYED)}
"""The presets by name."""
