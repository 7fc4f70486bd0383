"""Which transport the running event loop gets."""

from lance_sdk._core.events import Connect
from lance_sdk._io import background, protocol, socket_stream
from lance_sdk._io.tls import Tls
from lance_sdk._io.transport import Transport, dial_with


async def dial(action: Connect, tls: Tls) -> Transport:
    """Dial each address of an endpoint in turn, until one answers.

    Raises:
        DialFailed: with every address and what was wrong with it.
    """
    if background.on_trio():
        return await dial_with(action, tls, socket_stream.reach, socket_stream.carry)
    return await dial_with(action, tls, protocol.reach, protocol.carry)
