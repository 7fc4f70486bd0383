"""For all tests: examples are judged by what is true of them, not by how busy the machine is."""

import gc
import signal

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
