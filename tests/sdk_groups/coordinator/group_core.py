"""A group at its coordinator, and what members ask of it."""

import pytest

from lance_sdk.groups._protocol.group import Group
from lance_sdk.groups._protocol.group_metadata import Assignment, Joining, Member
from lance_sdk.groups._protocol.limits import Limits, Refusal
from lance_sdk.groups.strategies import STICKY, Strategy
from lance_sdk.offsets import Commit, TopicIdentity
from lance_spec.messages.groups import GroupErrorCode

TOPICS = tuple(TopicIdentity(id=number, name=f"t{number}") for number in range(6))
SESSION, REBALANCE = 10.0, 4.0


def new_group(strategy: Strategy = STICKY, **changes: object) -> Group:
    """Return a group without members; a link that is a string ending in '!' is broken."""
    return Group(
        name="g",
        strategy=strategy,
        limits=Limits(members=5, topics=8),
        is_alive=lambda link: not str(link).endswith("!"),
        **changes,  # type: ignore[arg-type]
    )


def join(group: Group, name: str, now: float = 0.0, **changes: object) -> Member:
    """Have a member join that reads every topic."""
    brings = {
        "link": name,
        "topics": TOPICS,
        "session_timeout": SESSION,
        "rebalance_timeout": REBALANCE,
        **changes,
    }
    joining = Joining(name=name, **brings)  # type: ignore[arg-type]
    for identity in group.admit(joining, now):
        group.learn(identity, None)
    return group.join(joining, now)


def ids(assignment: Assignment) -> list[int]:
    """Return the numbers of the topics that are assigned."""
    return [each.identity.id for each in assignment.assigned]


def commit(topic_id: int, offset: int, generation: int) -> Commit:
    """Return a commit of the group."""
    return Commit(consumer="g", topic=TOPICS[topic_id], offset=offset, generation=generation)


def code_of(error: pytest.ExceptionInfo[Refusal]) -> GroupErrorCode:
    """Return why a request was refused."""
    return error.value.code


def two_members(group: Group) -> tuple[Assignment, Assignment]:
    """Let ``a`` have everything, then let ``b`` join; return what both are told then."""
    join(group, "a")
    group.sync("a", "a", (), 0.0)
    join(group, "b", 1.0)
    return group.sync("a", "a", range(6), 1.0), group.sync("b", "b", (), 1.0)
