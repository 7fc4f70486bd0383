"""Stand-ins for tests: disks that fail and forget, a scheduler stepped by hand, a raw client."""

from lance_server.testing.client import RawClient
from lance_server.testing.log import LogDriver, LogReading
from lance_server.testing.peer import SessionPeer, the_error, told
from lance_server.testing.process import ServerProcess, eventually, free_port
from lance_server.testing.scheduling import ManualClock, ManualScheduler
from lance_server.testing.storage import CrashError, FaultyStorage, MemoryStorage
from lance_server.testing.web import HttpAnswer, ask_http

__all__ = [
    "CrashError",
    "FaultyStorage",
    "HttpAnswer",
    "LogDriver",
    "LogReading",
    "ManualClock",
    "ManualScheduler",
    "MemoryStorage",
    "RawClient",
    "ServerProcess",
    "SessionPeer",
    "ask_http",
    "eventually",
    "free_port",
    "the_error",
    "told",
]
