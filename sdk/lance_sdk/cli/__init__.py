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
_USAGE: Final = 2
_TERMINATED: Final = 128 + signal.SIGTERM


def main() -> NoReturn:
    """Run ``lwp`` with the arguments of the process, and end it with the exit code."""
    try:
        from lance_sdk.cli._app import run  # noqa: PLC0415 - click is an optional dependency
    except ModuleNotFoundError as error:
        if error.name != "click":
            raise
        sys.stderr.write(_MISSING)
        sys.exit(_USAGE)
    signal.signal(signal.SIGTERM, _terminate)
    sys.exit(run())


def _terminate(_signal: int, _frame: object) -> NoReturn:
    """Unwind like Ctrl-C does, so that what is open gets closed."""
    sys.exit(_TERMINATED)
