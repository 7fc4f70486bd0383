"""The Fluvio protocol as its programs speak it, in versions 0 to 25 (FLV-01)."""

from typing import Final

from lance_spec.grammar import (
    fluvio_admin,
    fluvio_errors,
    fluvio_fetch,
    fluvio_frames,
    fluvio_objects,
    fluvio_produce,
    fluvio_records,
)
from lance_spec.grammar._vocab import Grammar

_PARTS: Final = (
    fluvio_frames,
    fluvio_errors,
    fluvio_records,
    fluvio_produce,
    fluvio_fetch,
    fluvio_objects,
    fluvio_admin,
)

GRAMMAR: Final = Grammar(
    name="fluvio",
    doc="Fluvio messages: frames, headers, the requests of both servers, and records.",
    sources=tuple(f"{each.__name__.replace('.', '/')}.py" for each in _PARTS),
    messages=tuple(message for each in _PARTS for message in each.MESSAGES),
    composed=True,
    versions=(0, 25),
)
