"""Family ``fluvio_message``: the messages of Fluvio, as its programs speak them (FLV-01)."""

from typing import Any

from generate.composed import NOTES, Family, used
from generate.document import document
from generate.fluvio.admin import ADMIN, OBJECTS
from generate.fluvio.consuming import CONSUMING
from generate.fluvio.inside import INNER
from generate.fluvio.producing import PRODUCING

SPEC = {"name": "Fluvio protocol reference", "version": "25", "revision": "as corrected by FLV-01"}
SEEN = {
    "WideVarint": NOTES["WideVarint"]
    | {
        "seenIn": [
            "Published programs read on without a bound, and write only numbers of 32 bits rightly."
        ]
    },
    "Trailing": NOTES["Trailing"]
    | {"seenIn": ["The published client ignores bytes after an answer."]},
    "Count": NOTES["Count"]
    | {"seenIn": ["Published programs read a negative count as an empty list."]},
    "Length": NOTES["Length"]
    | {"seenIn": ["Published programs read a text of negative length as empty, and go on there."]},
}
"""Notes on what published programs do."""


def build() -> dict[str, Any]:
    """Return the family's file."""
    header = [
        "One message of Fluvio in a version: a frame, a header, a request, an answer or a part.",
        "A valid one is read as `fields`, exactly to its end.",
        "An invalid one is refused; `reason`, `field` and `offset` say why: it is `short`,",
        "has `trailing` bytes, a `value` that must not be, or a `checksum` that does not fit.",
    ]
    family = Family("fluvio", "FluvioMessage", "FLV-01", versioned=True, lenient="FLV-01")
    everything = (*INNER, *PRODUCING, *CONSUMING, *OBJECTS, *ADMIN)
    groups = [family.group(struct, examples) for struct, examples in everything]
    return document("fluvio_message", header, used(NOTES | SEEN, groups), groups, SPEC)
