"""What the server at hand promises: whether a repeated frame is stored once (AMB-25, SF-34)."""

from lance_sdk._core.connection import Connection, Request
from lance_sdk._core.events import Notice
from lance_sdk.errors import ServerError
from lance_sdk.journal.outbox import Outbox
from lance_spec.bodies import ClusterStatus
from lance_spec.enums import Command


def ask_window(connection: Connection, outbox: Outbox, now: float) -> None:
    """Ask for the duplicate window, and keep in the outbox whether there is one.

    Sending does not wait for the answer: it changes nothing of what is sent. The first server
    that states none is told to the log.
    """

    def found(stated: bool) -> None:
        if not stated and outbox.exactly_once is not False:
            text = "the server states no duplicate window: delivery is at least once (SF-34)"
            outbox.events.append(Notice(text))
        outbox.exactly_once = stated

    def answered(_code: int, payload: memoryview, _now: float) -> None:
        window = ClusterStatus.decode(payload).dedup_window
        found(window is not None and window.entries > 0)

    def refused(_error: ServerError, _now: float) -> None:
        found(False)

    expected = frozenset({Command.CLUSTER_STATUS_RESPONSE})
    request = Request(Command.GET_CLUSTER_STATUS, b"", expected, answered, refused)
    connection.ask(request, now)
