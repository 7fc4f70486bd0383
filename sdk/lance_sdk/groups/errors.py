"""Errors of consumer groups, under `lance_sdk.errors.LanceError`.

::

    GroupError
    ├─ GroupRefused        the coordinator refused a request; `code` says why
    │   └─ NotAMember      this member is taken for dead, or the coordinator forgot it
    ├─ CoordinatorLost     the coordinator was not heard of for a session timeout
    └─ CommitRefused       topics of a commit have other owners now, or could not be stored
"""
# ruff: noqa: N818 - these names say what happened; "Error" would repeat the module's name

from collections.abc import Mapping
from typing import Any, Final

from lance_sdk._errors.base import LanceError
from lance_spec.messages.groups import GroupErrorCode

__all__ = [
    "CommitRefused",
    "CoordinatorLost",
    "GroupError",
    "GroupErrorCode",
    "GroupRefused",
    "NotAMember",
]

_RETRYABLE: Final = {
    GroupErrorCode.NAME_TAKEN,
    GroupErrorCode.LIMIT_EXCEEDED,
    GroupErrorCode.STORE_FAILED,
    GroupErrorCode.NOT_COORDINATOR,
    GroupErrorCode.STALE_GENERATION,
}
_GONE: Final = {GroupErrorCode.UNKNOWN_GROUP, GroupErrorCode.UNKNOWN_MEMBER}


class GroupError(LanceError):
    """Base of what consumer groups raise."""


class GroupRefused(GroupError):
    """The coordinator refused a request.

    Attributes:
        code: why, see `GroupErrorCode`; a plain number when it is unknown here.
    """

    def __init__(self, code: GroupErrorCode | int, message: str) -> None:
        self.code = code
        self.retryable = code in _RETRYABLE
        super().__init__(message)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.code, str(self))


class NotAMember(GroupRefused):
    """The member never joined, left, or was taken for dead."""


class CoordinatorLost(GroupError):
    """The coordinator was not heard of for a session timeout; the member goes on looking for it.

    What the member held is lost to it. The next look raises this again until it is inside again.
    """

    retryable = True


class CommitRefused(GroupError):
    """Some topics of a commit were not recorded; the others were.

    Attributes:
        codes: why, by the topic's name.
    """

    def __init__(self, codes: Mapping[str, GroupErrorCode | int]) -> None:
        self.codes = dict(codes)
        self.retryable = all(code == GroupErrorCode.STORE_FAILED for code in self.codes.values())
        whys = ", ".join(f"{topic!r} ({_name(code)})" for topic, code in self.codes.items())
        super().__init__(
            f"not committed: {whys}; what this member lost is processed again by its new owner"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.codes,)


def code_of(number: int) -> GroupErrorCode | int:
    """Return the code that a message carries; a plain number when it is unknown here."""
    try:
        return GroupErrorCode(number)
    except ValueError:
        return number


def refused(number: int, message: str) -> GroupRefused:
    """Return the error for a GroupError message."""
    code = code_of(number)
    kind = NotAMember if code in _GONE else GroupRefused
    return kind(code, f"{_name(code)}: {message}")


def forgotten(joins: int, error: LanceError) -> GroupRefused:
    """Return the error for a coordinator with which joining leads to nothing."""
    code = error.code if isinstance(error, GroupRefused) else GroupErrorCode.UNKNOWN_MEMBER
    kind = NotAMember if code in _GONE else GroupRefused
    return kind(
        code,
        f"the coordinator let this member in {joins} times in a row and did not know it when it "
        f"asked for its topics ({error}); a coordinator must keep a member for its session "
        f"timeout, also while it has no connection",
    )


def no_coordinator(error: LanceError) -> GroupError:
    """Return the error for a server that does not know what a group is."""
    return GroupError(
        f"the server there is not a coordinator of groups ({error}); start one with "
        f"`lwp group serve`, and give its URL as coordinator="
    )


def _name(code: GroupErrorCode | int) -> str:
    return code.name if isinstance(code, GroupErrorCode) else f"code {code}"
