"""What the operators share: numbers, and the cases that their mutants are put to."""

from collections.abc import Callable, Mapping
from typing import Any

from lance_conformance.server.golden.specified import Specified
from lance_conformance.server.mutants import predicates
from lance_conformance.server.mutants.registry import golden

AFTER = (1, 3, 8, 31, 50, 99, 999)
"""Frames of a connection after which a rule is no longer looked at."""
ABOVE = (200, 255, 256, 500, 1000, 2000, 4000, 16_000, 65_000, 1_000_000)
"""Bytes of a payload above which a rule is no longer looked at."""
BELOW = 10
"""Bytes of a payload below which a rule is not looked at."""
BITS = (8, 16, 24, 31, 32, 40, 48, 53, 56, 63)
"""Bits to which a number is cut."""
MOST = (8, 16, 32, 64, 128, 256)
"""Of anything there is at most so many."""
PACE = 0.05
"""Seconds of the self-test for one of a run."""
KEEPALIVE, INGEST = 0x20, 0x04
"""Flags of frames."""

Hook = Callable[..., Any]

ASKED: Mapping[str, tuple[str, ...]] = {
    "magic_ok": ("pos/magic-*",),
    "version_ok": ("pos/version-*",),
    "header_crc_ok": ("pos/header-crc-*", "each/header-crc-*", "crc/header-of-*"),
    "reserved_ok": ("pos/reserved-*", "each/reserved-*"),
    "bit_7_ok": ("pos/flag-bit-7-*", "each/bit-7-*"),
    "command_of": ("width/command-*",),
    "spelling": ("size/name-*",),
    "payload_crc_ok": (
        "pos/payload-crc-*",
        "size/payload-crc-*",
        "each/payload-crc-*",
        "crc/payload-of-*",
    ),
    "announced_ok": ("pos/oversize-*",),
    "chain_ok": ("pos/chain-*", "size/chain-*", "size/trailing-*", "width/record-length-*"),
    "count_ok": (
        "pos/record-count-*",
        "size/record-count-*",
        "num/record-count-*",
        "width/announced-bit-*",
    ),
    "batch_id_ok": ("pos/batch-id-zero-*",),
    "complete": ("size/unfinished-*",),
    "ingest_topic": (
        "pos/unknown-topic-*",
        "num/topics-*",
        "width/topic-id-*",
        "each/another-id-*",
        "each/deleted-*",
    ),
    "find": (
        "pos/command-*",
        "width/topic-id-*",
        "num/refusals-*",
        "rep/missing",
        "each/another-id-*",
        "each/deleted-*",
    ),
    "keepalives": ("num/keepalives-*", "num/keepalives-1025"),
    "served": ("pos/keepalive-*", "num/in-flight-*", "num/keepalives-*", "mix/behind-*"),
    "acks": ("pos/ack-*", "num/in-topic-*", "mix/*", "width/acked-ids"),
    "stays_after": (
        "num/refusals-*",
        "num/refusals-1025",
        "num/unknown-commands-*",
        "num/lost-*",
        "num/miscounted-*",
        "num/bad-names-*",
        "num/short-payloads-*",
    ),
    "committed": ("width/consumer-id-*", "rep/resume", "rep/committed-now"),
    "start_of": ("width/fetch-offset-*", "vol/*"),
    "seen": (
        "width/batch-id-*",
        "width/own-batch-id-*",
        "width/timestamp-*",
        "width/own-timestamp-*",
        "mix/*",
        "num/retried-*",
        "width/own-batch-*",
        "ing/no-time-*",
    ),
    "seen_elsewhere": (
        "num/remembered-*",
        "rep/retried",
        "width/own-batch-*",
        "width/known-batch-*",
        "ing/no-time-is-no-retry",
    ),
    "set_body": ("width/limits-*", "each/types-of-*", "num/limited-in-turn-*"),
    "limited_body": ("width/limits-*", "each/types-of-*", "size/limited-name-*"),
    "offset_at": ("width/time-*", "rep/time"),
    "details": ("width/error-names-*",),
    "fetch_topic": ("width/topic-id-*", "num/topics-*", "each/another-id-*", "each/deleted-*"),
    "push_limit": ("size/push-max-*", "width/push-max-*"),
    "cursor_after": ("num/pushes-*",),
    "limit": ("width/max-bytes-*", "size/max-bytes-*", "size/whole-record-*"),
    "counted": ("width/record-count-*",),
    "next_id": ("num/topics-*", "num/listed-*", "num/created-in-turn-*", "num/partitions-*"),
    "listed": ("num/topics-*", "num/listed-*", "rep/list*", "size/list-of-*"),
    "commit_kept": ("num/consumers-*", "num/committed-in-turn-*", "num/committed-topics-*"),
    "waits_for_others": ("num/connections-*", "mix/each-its-own-*"),
    "types_ok": ("num/records-*",),
    "stored": ("num/records-*", "num/in-topic-*", "num/in-flight-*", "mix/*-connections-*"),
    "arranged": ("num/in-flight-*", "num/commands-*"),
    "cut": ("num/fetches-*", "rep/fetch*", "vol/whole-records-*"),
    "log_body": ("mix/each-its-own-*",),
    "found_body": (
        "num/commands-*",
        "rep/get",
        "mix/each-its-own-*",
        "each/types-of-*",
        "each/odd-names",
        "size/list-of-*",
    ),
    "pushed": ("num/pushed-topics-*", "num/subscribers-*"),
    "consumer_topic": (
        "num/subscribed-*",
        "each/another-id-*",
        "each/deleted-*",
        "num/*-in-turn-*",
    ),
    "missing_code": ("rep/missing",),
    "status_body": ("rep/status", "each/types-of-status"),
    "readable": ("rep/grows", "vol/*", "mix/reader-beside-writer"),
    "end_answer": ("rep/end",),
    "taken_by": ("rep/taken",),
    "beyond_end": ("rep/fetch-beyond",),
    "idle_limit": ("wait/*",),
    "whole_body": ("num/partitions-*",),
    "subscribed_at": ("width/subscribe-offset-*",),
    "encode": ("each/header-of-answer-*",),
    "deleted_body": ("each/types-of-delete",),
    "created_body": ("each/types-of-create",),
    "restarted": ("log/restart-*",),
    "limits_kept": (
        "num/limited-in-turn-*",
        "width/limits-*",
    ),
    "has_room": (
        "num/connected-in-turn-*",
        "num/hung-up-in-turn-*",
    ),
    "asked": ("each/header-of-*", "fet/topic-of-header"),
    "ends_late": (
        "wait/stays-after-*",
        "wait/kept",
    ),
    "unsubscribed": (
        "each/another-id-unsubscribe",
        "num/subscribed-in-turn-*",
    ),
    "timed_topic": (
        "each/another-id-*",
        "each/deleted-*",
    ),
    "topic_to_commit": (
        "each/another-id-*",
        "each/deleted-*",
    ),
    "find_to_limit": (
        "each/another-id-*",
        "each/deleted-*",
    ),
    "find_to_delete": (
        "each/another-id-*",
        "each/deleted-*",
    ),
    "kind": ("each/encrypted-*",),
}
"""The cases about each place; the others have nothing to do with a wrongness there."""


def register(hook: Hook, name: str, title: str, replacement: Hook, only: str | None = None) -> None:
    """Register a mutant that is put to the cases about its place."""
    predicates.register(hook, name, title, replacement, only, ASKED[hook.__name__])


def golden_rule(server: Specified, hook: Hook) -> Hook:
    """The rule that a hook replaces."""
    found: Hook = getattr(golden(server), hook.__name__)
    return found


def cut(value: int, bits: int) -> int:
    """The lowest bits of a number."""
    return value & ((1 << bits) - 1)
