"""A program at the edge: takes readings from stdin, and loses none while its server is away.

Each reading is on disk when its line is confirmed on stdout; it is delivered whenever a server can
be reached, also by the next run::

    ./sensor | python edge_sensor.py lance://hub:1992/readings /var/lib/readings
"""

import sys

from lance_sdk.journal import StoreAndForwardSender


def forward(url: str, slot: str) -> None:
    """Store every line of stdin, and say so."""
    with StoreAndForwardSender(url, slot, on_missing_topic="create") as sender:
        for line in sys.stdin.buffer:
            sender.send(line.rstrip(b"\n"))
            print("stored", line.decode().strip(), flush=True)


if __name__ == "__main__":
    forward(sys.argv[1], sys.argv[2])
