"""Which forms a target speaks (RL-01)."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Forms:
    """What is spoken on one port.

    Attributes:
        name: How it is called.
        binary: The form that RustLog's programs speak.
        json: The form that its specification describes.
    """

    name: str
    binary: bool
    json: bool


PRESETS: Mapping[str, Forms] = {
    "both": Forms("both", binary=True, json=True),
    "binary": Forms("binary", binary=True, json=False),
    "json": Forms("json", binary=False, json=True),
}
ANY = ("both", "binary", "json")
BINARY = ("both", "binary")
"""Where binary requests have a meaning."""
JSON = ("both", "json")
"""Where JSON has one, as far as no topic is needed: no JSON request makes one."""
BOTH = ("both",)
