"""``python -m bench.soak.serving OPTIONS``: ``lance-server`` as it is, which can be had to rest.

It ends as upon SIGTERM when its standard input does, so that it never outlives a soak.
"""

import os
import signal
from threading import Thread

from bench.soak.orders import Orders
from lance_server.cli import main


def _end_with(orders: Orders) -> None:
    orders.stop.wait()
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    Thread(target=_end_with, args=(Orders(working=False),), daemon=True).start()
    main()
