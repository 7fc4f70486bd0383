"""Consumer groups: several members share topics, and take over the topics of a member that ends.

`GroupConsumer` (or `AsyncGroupConsumer`) is a member; a `Coordinator` is where the members of
groups agree on who reads what, and where their commits are kept (AMB-38, Design section 20).
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lance_sdk.groups._protocol.limits import Limits
    from lance_sdk.groups._protocol.membership import AssignedTopic
    from lance_sdk.groups.aio import AsyncGroupConsumer
    from lance_sdk.groups.consumer import GroupConsumer
    from lance_sdk.groups.coordinator import Coordinator
    from lance_sdk.groups.errors import (
        CommitRefused,
        CoordinatorLost,
        GroupError,
        GroupErrorCode,
        GroupRefused,
        NotAMember,
    )
    from lance_sdk.groups.stats import GroupStats
    from lance_sdk.groups.strategies import RANGE, ROUND_ROBIN, STICKY, MemberView, Strategy

__all__ = [
    "RANGE",
    "ROUND_ROBIN",
    "STICKY",
    "AssignedTopic",
    "AsyncGroupConsumer",
    "CommitRefused",
    "Coordinator",
    "CoordinatorLost",
    "GroupConsumer",
    "GroupError",
    "GroupErrorCode",
    "GroupRefused",
    "GroupStats",
    "Limits",
    "MemberView",
    "NotAMember",
    "Strategy",
]

_HOMES = {
    "_protocol.limits": ("Limits",),
    "_protocol.membership": ("AssignedTopic",),
    "aio": ("AsyncGroupConsumer",),
    "consumer": ("GroupConsumer",),
    "coordinator": ("Coordinator",),
    "errors": (
        "CommitRefused",
        "CoordinatorLost",
        "GroupError",
        "GroupErrorCode",
        "GroupRefused",
        "NotAMember",
    ),
    "stats": ("GroupStats",),
    "strategies": ("RANGE", "ROUND_ROBIN", "STICKY", "MemberView", "Strategy"),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Load a public name from its home module at first use (PEP 562)."""
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
