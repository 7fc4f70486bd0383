"""Helpers for testing programs that use this package, and the package itself.

`ManualClock` and `LoadedDice` make a core deterministic; `Wire` plays the network and the
server for a core, in memory; `ProducerRehearsal` is a producer in such a world; `FakeServer` is
a real socket with a script. `lance_sdk.pytest_plugin` makes fixtures of them.
"""

from lance_sdk.testing.clock import LoadedDice, ManualClock
from lance_sdk.testing.rehearsal import ProducerRehearsal
from lance_sdk.testing.server import FakePeer, FakeServer
from lance_sdk.testing.wire import Wire

__all__ = ["FakePeer", "FakeServer", "LoadedDice", "ManualClock", "ProducerRehearsal", "Wire"]
