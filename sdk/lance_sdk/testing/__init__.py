"""Helpers for testing programs that use this package, and the package itself.

`ManualClock` and `LoadedDice` make a core deterministic; `Wire` plays the network and the
server for a core, in memory; `FakeServer` is a real socket with a script.
"""

from lance_sdk.testing.clock import LoadedDice, ManualClock
from lance_sdk.testing.server import FakePeer, FakeServer
from lance_sdk.testing.wire import Wire

__all__ = ["FakePeer", "FakeServer", "LoadedDice", "ManualClock", "Wire"]
