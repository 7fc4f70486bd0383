"""A connection that plays the role and the faults that were set over HTTP (design section 21)."""

from lance_server.fault_injection.faults import FaultInjector, FaultPlan
from lance_server.fault_injection.role import Role
from lance_server.fault_injection.session import SimulatedSession
from lance_server.lwp.connection import Connection, ConnectionOwner
from lance_server.lwp.responses import Answer


class SimulatedConnection(Connection):
    """One client of a server that was started with ``--admin``.

    Args:
        server: what it belongs to.
        role: the part that the node plays.
        plan: what is to go wrong with its answers.
    """

    def __init__(self, server: ConnectionOwner, role: Role, plan: FaultPlan) -> None:
        self._role = role
        super().__init__(server)
        self._faults = FaultInjector(plan)

    def _new_session(self) -> SimulatedSession:
        server = self._server
        return SimulatedSession(
            server.service, server.dialects, wake=self.wake, now=server.now(), role=self._role
        )

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
