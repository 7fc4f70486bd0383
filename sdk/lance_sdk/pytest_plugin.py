"""Fixtures for the tests of programs that use the SDK; pytest finds them by itself.

Importing this costs next to nothing: what a fixture needs is loaded when a test asks for it.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from lance_sdk.testing import FakeServer, ManualClock, ProducerRehearsal

__all__ = ["lance_clock", "lance_fake_server", "lance_rehearsal"]


@pytest.fixture
def lance_fake_server() -> Iterator["FakeServer"]:
    """A scripted server on a free port, with the topic ``orders``."""
    from lance_sdk.testing import FakeServer  # noqa: PLC0415 - see above

    with FakeServer() as server:
        yield server


@pytest.fixture
def lance_clock() -> "ManualClock":
    """A clock that moves when the test says so."""
    from lance_sdk.testing import ManualClock  # noqa: PLC0415 - see above

    return ManualClock()


@pytest.fixture
def lance_rehearsal(lance_clock: "ManualClock") -> "Callable[..., ProducerRehearsal]":
    """Makes producers without a network, on the clock of ``lance_clock``."""
    from lance_sdk.testing import ProducerRehearsal  # noqa: PLC0415 - see above

    def rehearse(**options: Any) -> "ProducerRehearsal":
        return ProducerRehearsal(clock=lance_clock, **options)

    return rehearse
