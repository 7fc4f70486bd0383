"""A connection whose answers go through the faults that were set over HTTP (design section 21)."""

from lance_server.fault_injection.faults import FaultInjector, FaultPlan
from lance_server.lwp.connection import Connection, ConnectionOwner
from lance_server.lwp.responses import Answer


class FaultyConnection(Connection):
    """One client of a server that was started with ``--admin``.

    Args:
        server: what it belongs to.
        plan: what is to go wrong.
    """

    def __init__(self, server: ConnectionOwner, plan: FaultPlan) -> None:
        super().__init__(server)
        self._faults = FaultInjector(plan)

    def _flush(self) -> None:
        if self._faults.is_active and not self._is_gone():
            self._send([])
        super()._flush()

    def _send(self, answers: list[Answer]) -> None:
        if not self._faults.is_active:
            super()._send(answers)
            return
        self._write_buffer.add(self._through_faults(answers))
        self._hand_over()

    def _hand_over(self) -> None:
        super()._hand_over()
        if self._faults.ends and not self._write_buffer:
            self._through_faults([])

    def _through_faults(self, answers: list[Answer]) -> list[Answer]:
        """Let the faults happen to answers; return what is to be written now."""
        faults, dialect, transport = self._faults, self.session.dialect, self._transport
        if dialect is None or transport is None:
            return answers
        passed = faults.send(answers, dialect, self._server.now())
        if faults.breaks:
            self.abort()
        elif faults.ends and not passed and not self._write_buffer and transport.can_write_eof():
            transport.write_eof()
        elif (due := faults.next_at) is not None:
            self._server.call_at(due, self.wake)
        return passed
