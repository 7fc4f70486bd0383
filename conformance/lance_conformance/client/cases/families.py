"""Cases that ask the same of another answer or another value, on purpose, by the first of them.

Clients have one piece of code for some of them and several for others; no mutant of the golden
client, which has one, tells them apart. A family counts as one case.
"""

from collections.abc import Mapping
from fnmatch import fnmatchcase

FAMILIES: Mapping[str, tuple[str, ...]] = {
    "late/header-crc-1": ("kind/crc-*",),
    **{
        f"head/{fault}-ack": (
            f"head/{fault}-topics", f"head/{fault}-fetched", f"kind/{fault}-*"
        )
        for fault in ("magic", "version-0", "version-2", "crc", "crc-high", "crc-zero", "crc-other",
                      "bit-7", "reserved", "reserved-high", "length-4g", "length-over")
    },
    **{
        f"head/{fault}-topics": (f"head/{fault}-fetched",)
        for fault in ("payload-crc", "payload-crc-zero", "payload-crc-other")
    },
    "head/closes-after-magic": ("head/closes-after-ack-magic",),
    "wide/told-id-10000": ("wide/told-id-1000000",),
    "piece/cut-at-1": ("piece/cut-at-*",),
    "piece/dribble-ack": ("piece/dribble-*",),
    "piece/glued-behind-keepalive-ack": ("piece/glued-behind-keepalive-*",),
    "beat/no-ping-pong": ("beat/burst",),
    "beat/silence-ack": ("beat/silence-*", "stall/in-*", "stall/at-once-*", "kind/cut-*"),
    "ack/keepalive-is-none": ("ack/topics-are-none", "slow/is-no-ack"),
    "rec/sends-01": ("rec/sends-??",),
    "rec/reads-01": ("rec/reads-??",),
    "rec/sends-empty": ("rec/sends-all-bytes", "rec/sends-large"),
    "rec/sends-looks-like-a-frame": ("rec/sends-looks-*",),
    "rec/reads-looks-like-a-frame": ("rec/reads-looks-*",),
    "rec/refuses-type-zero": ("rec/refuses-*",),
    "admin/odd-unknown-fields": ("admin/odd-null-field",),
    "admin/odd-white-space": ("admin/odd-other-order",),
    "admin/wrong-no-id": ("admin/wrong-id-*",),
    "admin/wrong-no-name": ("admin/wrong-name-number",),
    "admin/wrong-empty": (
        "admin/wrong-no-json", "admin/wrong-half-json", "admin/wrong-array", "admin/wrong-number",
        "admin/wrong-not-utf-8", "admin/wrong-deep",
        *(
            f"admin/{name}-{fault}" for name in ("delete", "retention")
            for fault in ("empty", "no-json", "half-json", "array", "number")
        ),
    ),
    "follow/commit-refused": ("admin/*-refused", "kind/refused-*"),
    "late/payload-crc-1": ("kind/payload-crc-*",),
    **{
        f"kind/{fault}-create": (f"kind/{fault}-*",)
        for fault in ("answered-by-data", "answered-by-ack", "unanswered", "pieces")
    },
    "read/record-beyond": ("read/record-4g",),
    "follow/over-a-gap-0": ("follow/over-a-gap-1",),
    "wide/listed-id-80000000": ("wide/listed-id-ffffffff",),
    "wide/fetch-size-16": ("wide/fetch-size-20",),
    **{f"again/{what}-9": (f"again/{what}-17",) for what in ("flushes", "commits", "polls")},
    "again/same-content-2": ("again/same-content-9",),
    "again/get-after-delete": ("again/delete-refused",),
    "large/names-129": ("large/names-255",),
    "admin/wrong-list-object": ("admin/wrong-list-*",),
    "admin/answered-by-fetch-response": (
        "admin/answered-by-*", "read/answered-by-*", "follow/commit-by-another",
    ),
    "read/cut-in-value": ("read/cut-in-*",),
    "read/nothing-lost-value": ("read/nothing-lost-*",),
    "read/wrong-size-more": ("read/wrong-size-*",),
    "read/wrong-next-behind": ("read/wrong-next-*",),
    "read/wrong-payload-0": ("read/wrong-payload-*",),
    "read/catching-up-of-0": ("read/catching-up-of-*",),
    "follow/own-connection-fin": ("follow/own-connection-*",),
    "follow/subscribe-ack-another-consumer": ("follow/subscribe-ack-*",),
    "follow/goes-on-after-fin": ("follow/goes-on-after-*",),
    "follow/commit-ack-another-offset": ("follow/commit-ack-*",),
    "code/03": ("code/04", "code/1?", "code/5?", "code/fetch-10", "code/fetch-5?"),
    "code/21": ("code/22", "code/23", "code/3?", "code/62"),
    "code/40": ("code/4?", "code/fetch-42"),
    "code/02": ("code/05", "code/06"),
    "code/ingest-21": ("code/ingest-2?", "code/ingest-3?", "code/ingest-62"),
    "code/ingest-03": ("code/ingest-0?", "code/ingest-1?"),
    "code/leader-nowhere": ("code/leader-*",),
    "code/form-empty": ("code/form-*",),
    "code/text-not-found": ("code/text-unknown-topic",),
    "code/text-authentication": ("code/text-invalid-token", "code/text-access-denied"),
    "loss/fin-before-ack": ("loss/???-before-*", "loss/???-in-*"),
    "loss/fin-then-ack": ("loss/???-then-*", "loss/???-at-once", "again/losses-*"),
    "loss/fin-always": ("loss/rst-always", "kind/lost-*"),
    "loss/fin-backoff": ("loss/rst-backoff",),
    "loss/nobody-listens-ack": ("loss/nobody-listens-*",),
    "slow/before-ack": ("slow/many", "slow/every-ack"),
    "slow/before-topics": ("slow/before-fetched",),
    "between/keepalive-1-ack": ("between/keepalive-*",),
    "between/backpressure-1-ack": ("between/backpressure-*",),
    "between/old-ack-1-topics": ("between/old-ack-*-topics", "between/old-ack-*-fetched"),
    "between/in-flight-beside-list-2": ("between/in-flight-*",),
    "pace/late-within-ack": ("pace/late-within-*",),
    "pace/several-late-ack": ("pace/several-late-*",),
    "pace/in-pieces-ack": ("pace/in-pieces-*",),
    "pace/keepalives-only-ack": ("pace/keepalives-only-*",),
    "pace/idle-ack": ("pace/idle-*",),
    "pace/too-late-topics": ("pace/too-late-fetched",),
}  # fmt: skip
"""Globs of the others, by the first."""


def first_of_its_family(case_id: str) -> str | None:
    """The case that another one repeats; None when it repeats none."""
    for first, globs in FAMILIES.items():
        if case_id != first and any(fnmatchcase(case_id, glob) for glob in globs):
            return first
    return None
