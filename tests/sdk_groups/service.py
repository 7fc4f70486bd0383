"""The worker service of the documentation, with payments that suspend it.

``python service.py SERVER COORDINATOR NAME LEDGER TOPIC``
"""

import os
import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "docs" / "examples"))

from payments_worker import work  # type: ignore[import-not-found]

from lance_sdk import Record


def stop_at(record: Record) -> None:
    """Suspend this process at the payment of somebody who says so, once."""
    if record.value == b"suspend" and not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGSTOP)


server, coordinator, name, ledger, topic = sys.argv[1:]
marker = Path(f"{ledger}.suspended")
work(server, coordinator, name, ledger, topic=topic, session_timeout=3.0, handle=stop_at)
