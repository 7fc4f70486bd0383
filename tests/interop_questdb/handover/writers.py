"""Writes rows through a Python client: it imports the clients once and forks for each turn.

A turn is one line of JSON on the standard input: client, conf, start, count. The process id of the
fork is printed first, then the number of each row once its flush returned, then an error if there
was one, and ``end`` when the fork is gone.
"""

import json
import os
import sys
import warnings
from contextlib import suppress
from typing import Any

from lance_sdk.journal.qwp import QwpSender, timestamp_nanos

with suppress(ImportError):
    from questdb.ingress import Sender, TimestampNanos

SYMBOLS = 5


def tell(text: object) -> None:
    """Print a line in one piece."""
    os.write(1, f"{text}\n".encode())


def write(client: str, conf: str, start: int, count: int) -> None:
    """Write rows, one frame each, and close."""
    kind: Any = QwpSender if client == "ours" else Sender
    nanos: Any = timestamp_nanos if client == "ours" else TimestampNanos
    with kind.from_conf(conf) as sender:
        for number in range(start, start + count):
            symbol = {"s": f"s{number % SYMBOLS}"}
            sender.row("t", symbols=symbol, columns={"v": number}, at=nanos(number + 1))
            sender.flush()
            tell(number)


def take(turn: list[Any]) -> None:
    """Write in this process, and end it."""
    warnings.simplefilter("ignore")
    try:
        write(*turn)
    except Exception as error:  # noqa: BLE001 - what became of the turn
        tell(f"error: {type(error).__name__}: {error}")
    os._exit(0)


for line in sys.stdin:
    pid = os.fork()
    if not pid:
        tell(os.getpid())
        take(json.loads(line))
    os.waitpid(pid, 0)
    tell("end")
