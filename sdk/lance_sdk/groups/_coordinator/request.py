"""One question to a coordinator, from somebody who is not a member."""

from collections.abc import Mapping
from time import monotonic
from typing import Any

from lance_sdk._api.factory import build_client
from lance_sdk._api.lifecycle import Lifecycle
from lance_sdk._protocol.request_tracker import PendingRequest
from lance_sdk.groups._protocol.calls import GroupCaller
from lance_sdk.url import URL
from lance_spec.enums import Command
from lance_spec.messages.groups import DescribedGroup, GroupDescribe, GroupDescription


class _OneRequest(Lifecycle):
    def __init__(self, url: str | URL, options: Mapping[str, Any]) -> None:
        self._core = build_client(url, options, GroupCaller)
        super().__init__(self._core)

    def __repr__(self) -> str:
        return self._core.show("Coordinator's client", self._state)

    def ask(self, call: PendingRequest) -> Any:
        """Send a call and return its result."""
        with self._driver.lock:
            self._driver.check()
            self._core.caller.submit(call, monotonic())
        self._driver.wake()
        self._driver.wait(call, None)  # the core settles it within request_timeout
        if call.error is not None:
            raise call.error.with_traceback(None)
        return call.value


def describe_groups(
    coordinator: str | URL, group: str = "", **options: Any
) -> list[DescribedGroup]:
    """Ask a coordinator about a group, or for the groups there are.

    Args:
        coordinator: where it is.
        group: name of the group; empty asks for all, without members and topics.
        **options: keywords of the connection, as `lance_sdk.Client` takes them.

    Raises:
        ConnectFailed: the coordinator cannot be reached.
        NotAMember: there is no such group.
    """
    call = PendingRequest(
        Command.GROUP_DESCRIBE,
        GroupDescribe(group=group).encode(),
        Command.GROUP_DESCRIPTION,
        GroupDescription.decode,
        repeatable=True,
    )
    with _OneRequest(coordinator, options) as asking:
        answer: GroupDescription = asking.ask(call)
    return answer.groups
