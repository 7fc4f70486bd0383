"""Calls to a coordinator: any of them may be answered by a GroupError."""

from dataclasses import replace

from lance_sdk._errors.base import LanceError
from lance_sdk._protocol.connection import Request
from lance_sdk._protocol.request_tracker import PendingRequest, RequestTracker
from lance_sdk.groups.errors import refused
from lance_spec.enums import Command
from lance_spec.messages.groups import GroupError


class GroupCaller(RequestTracker):
    """Sends calls to a coordinator."""

    def _request(self, call: PendingRequest, command: Command, expects: Command) -> Request:
        request = super()._request(call, command, expects)

        def answered(code: int, payload: memoryview, now: float) -> None:
            if code != Command.GROUP_ERROR:
                request.on_answer(code, payload, now)
                return
            error = GroupError.decode(payload)
            wrong = refused(error.code, error.message)
            if not self._kept(call, wrong, now):
                self._settle(call, None, wrong)

        codes = request.expects | {Command.GROUP_ERROR}
        return replace(request, expects=codes, on_answer=answered)

    def _kept(self, call: PendingRequest, error: LanceError, now: float) -> bool:
        """Take note that a call was refused; return whether it is sent again."""
        del call, error, now
        return False
