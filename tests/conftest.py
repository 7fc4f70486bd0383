"""For all tests: examples are judged by what is true of them, not by how busy the machine is."""

import asyncio
import gc
import logging
import signal
from collections.abc import Iterator

import pytest
from hypothesis import settings

# A shell that starts the tests in the background lets them ignore Ctrl-C, and with them the
# programs they start. What is tested is how those end in the foreground.
signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("lance", settings(), deadline=None)
settings.load_profile("lance")


def pytest_collection_finish() -> None:
    """Spare the collected tests the garbage collector.

    There are some hundred thousand objects to them, and each full collection would look at all
    of them while servers and clients in this process wait.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _no_loop_is_left_running() -> Iterator[None]:
    """No test leaves an event loop behind as the one that runs: no later test could run its own."""
    yield
    left = asyncio._get_running_loop()
    asyncio._set_running_loop(None)
    assert left is None


@pytest.fixture(autouse=True)
def _logging_as_before() -> Iterator[None]:
    """Undo what a command that ran in this process did to logging: where it goes, and how much."""
    loggers = [logging.getLogger(name) for name in ("", "lance_sdk", "lance_server")]
    before = [(logger.level, logger.propagate, logger.handlers[:]) for logger in loggers]
    yield
    for logger, (level, propagate, handlers) in zip(loggers, before, strict=True):
        logger.setLevel(level)
        logger.propagate = propagate
        logger.handlers[:] = handlers
