"""Reports the server's state to the service manager (sd_notify)."""

import os
import socket
from collections.abc import Mapping


def notify(state: str, environment: Mapping[str, str] = os.environ) -> None:
    """Tell systemd a state, when it asked for that.

    Args:
        state: for example ``READY=1``.
        environment: ``NOTIFY_SOCKET`` in it says where to.
    """
    where = environment.get("NOTIFY_SOCKET", "")
    if not where:
        return
    # A name that begins with @ stands for one in the abstract namespace.
    address = f"\0{where[1:]}" if where.startswith("@") else where
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
        channel.settimeout(1.0)
        try:
            channel.sendto(state.encode(), address)
        except OSError:
            return  # a manager that does not listen must not stop the server
