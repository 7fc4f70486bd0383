"""Features: families of commands that a server may lack as a whole.

A server that refuses a right CommitOffset would fail every case about commits for one reason. The
preflight tries each feature once; where it is missing, one case says so, and no other case sends
its commands.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from lance_conformance.wire.frame import Command, Flag, Frame, FrameKind


@dataclass(frozen=True, slots=True)
class Feature:
    """One feature.

    Attributes:
        words: What the target does not do without it.
        commands: The control commands that belong to it.
        asks: Ids of the cases that are asked even where it is missing, unless it was left out on
            purpose: they say that it is missing.
    """

    words: str
    commands: frozenset[int] = frozenset()
    asks: frozenset[str] = frozenset()


FEATURES: Mapping[str, Feature] = MappingProxyType(
    {
        "subscribe": Feature(
            "Subscribe and Unsubscribe",
            frozenset({Command.SUBSCRIBE, Command.UNSUBSCRIBE}),
            frozenset({"sub/ack"}),
        ),
        "commits": Feature(
            "CommitOffset", frozenset({Command.COMMIT_OFFSET}), frozenset({"com/ack"})
        ),
        "retention": Feature(
            "SetRetention and CreateTopicWithRetention",
            frozenset({Command.SET_RETENTION, Command.CREATE_TOPIC_WITH_RETENTION}),
            frozenset({"ret/set", "ret/create"}),
        ),
        "lz4": Feature("compressed batches", asks=frozenset({"lz4/stored-block"})),
    }
)


def feature_of(frame: Frame) -> str | None:
    """The feature that a frame belongs to, if it belongs to one."""
    if frame.kind is not FrameKind.CONTROL:
        return "lz4" if frame.flags & Flag.BATCH_MODE and frame.flags & Flag.COMPRESSED else None
    found = (name for name, each in FEATURES.items() if frame.batch_id in each.commands)
    return next(found, None)


def left_out(case_id: str, without: Collection[str], missing: Collection[str]) -> dict[str, str]:
    """The features of which a case must send nothing, each with the reason.

    Args:
        case_id: The case.
        without: What was left out on purpose.
        missing: What the target was found not to serve.
    """
    found = {
        name: f"the target does not serve {FEATURES[name].words}; "
        f"{' and '.join(sorted(FEATURES[name].asks))} says so"
        for name in missing
        if case_id not in FEATURES[name].asks
    }
    return found | {name: f"left out by --without {name}" for name in without}
