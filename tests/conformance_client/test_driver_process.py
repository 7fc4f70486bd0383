"""Drivers as processes: whatever one says, the kit ends it."""

import asyncio
import contextlib
import shlex
import sys

import pytest

from lance_conformance.client.driver import DriverDiedError
from lance_conformance.client.process import processes


@pytest.mark.parametrize("said", ["y", '{"id":1}', "no line ends here"])
def test_a_driver_that_never_stops_talking_is_ended(said: str) -> None:
    """Its output is read and dropped, so that its end is seen, whatever it says."""
    end = "" if " " in said else "\n"
    talks = f"import sys\nwhile True: sys.stdout.write({said + end!r} * 1000)"

    async def run() -> None:
        with contextlib.suppress(DriverDiedError):
            driver = await processes(shlex.join([sys.executable, "-c", talks]))()
            await driver.end()

    async def bounded() -> None:
        async with asyncio.timeout(60):
            await run()

    asyncio.run(bounded())
