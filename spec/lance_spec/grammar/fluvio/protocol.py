"""The Fluvio protocol as its programs speak it, in versions 0 to 25 (FLV-01)."""

from typing import Final

from lance_spec.grammar._vocab import Grammar
from lance_spec.grammar.fluvio import admin, errors, fetch, frames, objects, produce, records

_PARTS: Final = (
    frames,
    errors,
    records,
    produce,
    fetch,
    objects,
    admin,
)

GRAMMAR: Final = Grammar(
    name="fluvio",
    doc="Fluvio messages: frames, headers, the requests of both servers, and records.",
    sources=tuple(f"{each.__name__.replace('.', '/')}.py" for each in _PARTS),
    messages=tuple(message for each in _PARTS for message in each.MESSAGES),
    composed=True,
    versions=(0, 25),
)
