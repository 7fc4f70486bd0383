"""The golden client as a driver process, for whoever wants to see what a right one does.

lance-conformance client --exec "python -m lance_conformance.client.golden"
"""

import asyncio
import json
import sys

from lance_conformance.client.golden.driver import GoldenDriver


async def main() -> None:
    """Serve until the input ends."""
    driver = GoldenDriver()
    while line := await asyncio.to_thread(sys.stdin.readline):
        request = json.loads(line)
        answer = {"id": request["id"], **await driver.call(request)}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main())
