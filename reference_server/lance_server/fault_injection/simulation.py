"""Simulated roles and faults of a server with ``--admin`` (AMB-43, design section 21)."""

from typing import Any

from lance_server.fault_injection.connection import SimulatedConnection
from lance_server.fault_injection.faults import FaultPlan
from lance_server.fault_injection.role import Role
from lance_server.http.http_messages import Response, as_json
from lance_server.lwp.connection import ConnectionOwner


class Simulation:
    """A role and faults, which wrap the connections of a server from outside.

    Attributes:
        actions: what changes them, by its path on the HTTP port.
    """

    def __init__(self) -> None:
        self._role = Role()
        self._faults = FaultPlan()
        self.actions = {
            "/admin/role": self._set_role,
            "/admin/faults": self._set_faults,
        }

    def __repr__(self) -> str:
        return f"<Simulation {self._role}>"

    def connection(self, server: ConnectionOwner) -> SimulatedConnection:
        """Return a connection that plays the role and the faults."""
        return SimulatedConnection(server, self._role, self._faults)

    def unready_reasons(self) -> list[str]:
        """Return why the role stores no batches."""
        lag = self._role.behind
        return [f"this node is {lag} bytes behind the leader"] if lag else []

    def _set_role(self, body: Any) -> Response:
        self._role.change_to(Role.from_body(body))
        return as_json(200, self._role.to_body())

    def _set_faults(self, body: Any) -> Response:
        self._faults.replace(body)
        return as_json(200, self._faults.to_body())
