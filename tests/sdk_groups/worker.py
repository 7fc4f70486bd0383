"""A worker of a group: notes every record durably, commits after each batch, until it is killed.

After so many batches it reads no more, and stays in the group.

``python worker.py SERVER COORDINATOR NAME OUTPUT BATCHES TOPIC...``
"""

import os
import signal
import sys

from lance_sdk.groups import GroupConsumer


def main() -> None:
    """Read until killed; each record is a line of the output: topic, number, what was committed."""
    server, coordinator, name, output, batches, *topics = sys.argv[1:]
    left = int(batches)
    fd = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    with GroupConsumer(
        server,
        group="g",
        topics=topics,
        coordinator=coordinator,
        member=name,
        session_timeout=1.0,
        poll_interval=0.01,
        max_fetch_bytes=200,
        auto_commit="off",
        on_assigned=lambda found: os.write(1, b"assigned %d\n" % len(found)),
    ) as consumer:
        while left:
            batch = consumer.poll(0.1)
            for record in batch or ():
                os.write(fd, f"read {record.topic} {record.offset}\n".encode())
            consumer.commit()
            if batch is not None:
                os.write(fd, f"done {batch.topic} {batch.next_offset}\n".encode())
                left -= 1
        signal.pause()


if __name__ == "__main__":
    main()
