"""What people and machines see of the server: log lines and representations."""

import logging

from lance_server.log.sidecar import OPAQUE
from lance_server.logs import JsonFormatter
from lance_server.testing import LogDriver, MemoryStorage


def test_log_lines_can_be_objects() -> None:
    """With the exception, when there is one."""
    error = ValueError("boom")
    record = logging.makeLogRecord(
        {"msg": "hello %s", "args": ("you",), "exc_info": (ValueError, error, None)}
    )
    line = JsonFormatter().format(record)
    assert '"message": "hello you"' in line
    assert "boom" in line


def test_objects_show_their_state() -> None:
    """What one sees in a debugger says what is going on."""
    log = LogDriver(MemoryStorage())
    log.store([b"one"])
    log.append_raw(b"opaque", record_count=0, batch_id=2, flags=OPAQUE)
    shown = repr(log.engine) + repr(log.engine.topic(0).partition)
    assert "1 topics" in shown
    assert "end=8 records=1 segments=1 dirty=6" in shown
