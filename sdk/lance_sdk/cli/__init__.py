"""The ``lwp`` command line: topics, produce, consume, ping, explain, demo.

Only `main` is public. The commands are modules of this package, imported when they are asked
for; packages add further ones through the entry point group ``lance_sdk.commands``.
"""

import signal
import sys
from typing import Final, NoReturn

_MISSING: Final = (
    "error: lwp needs the package 'click'; install it with: pip install 'lance-sdk[cli]'\n"
)
_FAILED: Final = 1
_USAGE: Final = 2
_TERMINATED: Final = 128 + signal.SIGTERM


def main() -> NoReturn:
    """Run ``lwp`` with the arguments of the process, and end it with the exit code."""
    interrupt = signal.getsignal(signal.SIGINT)
    if interrupt is signal.default_int_handler:  # while modules load there is nothing to unwind
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        from lance_sdk.cli._app import run  # noqa: PLC0415 - click is an optional dependency
        from lance_sdk.cli.console.sigint import nudge_main_thread  # noqa: PLC0415 - likewise
        from lance_sdk.cli.console.streams import CLOSED, settle  # noqa: PLC0415 - likewise
    except ModuleNotFoundError as error:
        if error.name != "click":
            raise
        sys.stderr.write(_MISSING)
        sys.exit(_USAGE)
    if not settle():
        sys.stderr.write(CLOSED)
        sys.exit(_FAILED)
    signal.signal(signal.SIGINT, interrupt)
    signal.signal(signal.SIGTERM, _terminate)
    nudge_main_thread()
    sys.exit(run())


def _terminate(_signal: int, _frame: object) -> NoReturn:
    """Unwind like Ctrl-C does, so that what is open gets closed."""
    sys.exit(_TERMINATED)
