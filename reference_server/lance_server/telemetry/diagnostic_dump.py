"""Diagnostic dump: the server's figures and stacks, for SIGQUIT (design section 9.1)."""

import faulthandler
import json
import logging
from typing import TYPE_CHECKING

from lance_server.runtime.platform import memory_file

if TYPE_CHECKING:
    from lance_server.server import Server

_log = logging.getLogger(__name__)


def write_dump(server: "Server") -> None:
    """Log the server's figures and connections, and the stack of each thread.

    The server goes on; batches that were received are flushed as ever.
    """
    _log.warning("dump: %r", server)
    _log.warning("dump: figures %s", json.dumps(server.stats()))
    for connection in server.connection_manager:
        _log.warning("dump: %r", connection)
    _log.warning("dump: stacks\n%s", _stacks())


def _stacks() -> str:
    """Return the stack of each thread, by way of a file in memory: nobody may read the log."""
    with memory_file() as file:
        faulthandler.dump_traceback(file=file, all_threads=True)
        file.seek(0)
        return file.read()
