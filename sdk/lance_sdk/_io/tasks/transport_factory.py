"""Which transport the running event loop gets."""

from lance_sdk._io.tasks import asyncio_transport, task_spawner, trio_transport
from lance_sdk._io.tasks.transport import TaskTransport, dial_with
from lance_sdk._io.tls import Tls
from lance_sdk._protocol.events import Connect


async def dial(action: Connect, tls: Tls) -> TaskTransport:
    """Dial each address of an endpoint in turn, until one answers.

    Raises:
        DialFailed: with every address and what was wrong with it.
    """
    if task_spawner.on_trio():
        return await dial_with(action, tls, trio_transport.reach, trio_transport.carry)
    return await dial_with(action, tls, asyncio_transport.reach, asyncio_transport.carry)
