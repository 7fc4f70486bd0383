"""What people and machines see of the server: log lines and representations."""

import logging

from lance_server.http import number_format
from lance_server.log.segments.sidecar import OPAQUE
from lance_server.telemetry.logs import JsonFormatter
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
    assert "topics=1" in shown
    assert "end=8 records=1 segments=1 dirty=6" in shown


def test_numbers_are_shown_as_people_read_them() -> None:
    """Sizes in binary units, counts in decimal ones, times in two units."""
    assert [number_format.size(n) for n in (0, 1023, 1024, 1536, 1 << 40)] == [
        "0 B",
        "1023 B",
        "1.0 KiB",
        "1.5 KiB",
        "1.0 TiB",
    ]
    assert [number_format.count(n) for n in (7, 999, 1500, 2_000_000)] == [
        "7",
        "999",
        "1.5 k",
        "2.0 M",
    ]
    assert [number_format.duration(n) for n in (5, 65, 3600, 90_000)] == [
        "5 s",
        "1 min 5 s",
        "1 h 0 min",
        "1 d 1 h",
    ]
    assert (number_format.exact(1234567), number_format.milliseconds(0.5)) == (
        "1\u202f234\u202f567",
        "0.50 ms",
    )
