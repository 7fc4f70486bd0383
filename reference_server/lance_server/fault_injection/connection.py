"""A connection whose answers go through the faults that were ordered (design section 21)."""

from lance_server.fault_injection.faults import FaultInjector, FaultPlan
from lance_server.lwp.connection import Connection, ConnectionOwner
from lance_server.lwp.responses import Answer


class FaultyConnection(Connection):
    """One client of a server that takes orders.

    Args:
        server: what it belongs to.
        plan: what is to go wrong.
    """

    def __init__(self, server: ConnectionOwner, plan: FaultPlan) -> None:
        super().__init__(server)
        self._line = FaultInjector(plan)

    def _flush(self) -> None:
        if self._line.is_active and not self._is_gone():
            self._send([])
        super()._flush()

    def _send(self, answers: list[Answer]) -> None:
        if not self._line.is_active:
            super()._send(answers)
            return
        self._write_buffer.add(self._through_faults(answers))
        self._hand_over()

    def _hand_over(self) -> None:
        super()._hand_over()
        if self._line.ends and not self._write_buffer:
            self._through_faults([])

    def _through_faults(self, answers: list[Answer]) -> list[Answer]:
        """Let what was ordered happen to answers; return what is to be written now."""
        line, dialect, transport = self._line, self.session.dialect, self._transport
        if dialect is None or transport is None:
            return answers
        passed = line.send(answers, dialect, self._server.now())
        if line.breaks:
            self.abort()
        elif line.ends and not passed and not self._write_buffer and transport.can_write_eof():
            transport.write_eof()
        elif (due := line.next_at) is not None:
            self._server.call_at(due, self.wake)
        return passed
