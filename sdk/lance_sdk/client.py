"""Topics and the server itself, for threads."""

from time import monotonic
from typing import TypeVar, Unpack

from lance_sdk import _admin
from lance_sdk._admin import Procedure
from lance_sdk._assembly import build_client, called
from lance_sdk._core.calls import Call, ping_call
from lance_sdk._core.handshake import Pause
from lance_sdk._core.outcome import Outcome
from lance_sdk._face import Face
from lance_sdk.errors import LanceError
from lance_sdk.options import ClientOptions
from lance_sdk.stats import ClientStats
from lance_sdk.url import URL
from lance_spec.bodies import ClusterStatus, TopicInfo

__all__ = ["Client"]

T = TypeVar("T")


class Client(Face):
    """Asks a server about its topics and itself.

    ::

        with Client("lance://localhost:1992") as client:
            client.create_topic("orders")
            print(client.list_topics(), client.ping())

    The constructor does no I/O. Any number of threads may ask. A question that does no harm
    when it is asked twice survives a lost connection.

    Args:
        url: where the server is, see `lance_sdk.url`; a topic in it is left aside.
        **options: the fields of `lance_sdk.config.ClientConfig`; they override the URL's.

    Raises:
        ConfigError: for a URL or an option that cannot be used.
    """

    def __init__(self, url: str | URL, **options: Unpack[ClientOptions]) -> None:
        self._core = build_client(url, options)
        super().__init__(self._core)
        self._caller = self._core.caller

    def __repr__(self) -> str:
        return self._core.show("Client", self._state)

    def create_topic(
        self, name: str, *, exist_ok: bool = False, max_age_secs: int = 0, max_bytes: int = 0
    ) -> TopicInfo:
        """Create a topic (LWP sections 5.3 and 5.11).

        Args:
            name: 1 to 255 bytes of UTF-8 (AMB-24).
            exist_ok: return the existing topic instead of raising.
            max_age_secs: keep records this many seconds; 0 is no limit.
            max_bytes: keep about this many bytes; 0 is no limit.

        Raises:
            TopicAlreadyExists: without ``exist_ok``.
            ServerError: the server refused.
            TransportError: the outcome is unknown, see ``maybe_applied``.
            LocalProtocolError: no topic may have this name.
        """
        procedure = _admin.create_topic(
            name,
            self._session.dialect,
            exist_ok=exist_ok,
            max_age_secs=max_age_secs,
            max_bytes=max_bytes,
        )
        return self._run(procedure)

    def list_topics(self) -> list[TopicInfo]:
        """Return the topics, sorted by name (LWP section 5.4)."""
        return self._run(_admin.list_topics())

    def get_topic(self, topic: str | int) -> TopicInfo:
        """Look a topic up (LWP section 5.5).

        Args:
            topic: its name or its number.

        Raises:
            TopicNotFound: there is none.
        """
        return self._run(_admin.get_topic(topic, self._url.server_url()))

    def delete_topic(self, topic: str | int) -> None:
        """Delete a topic with all its records (LWP section 5.6).

        Args:
            topic: its name or its number.

        Raises:
            TopicNotFound: there is none.
            TransportError: the outcome is unknown, see ``maybe_applied``.
        """
        self._run(_admin.delete_topic(topic, self._url.server_url()))

    def set_retention(self, topic: str | int, *, max_age_secs: int = 0, max_bytes: int = 0) -> None:
        """Set how long a topic keeps its records (LWP section 5.10).

        Args:
            topic: its name or its number.
            max_age_secs: keep records this many seconds; 0 is no limit.
            max_bytes: keep about this many bytes; 0 is no limit.

        Raises:
            TopicNotFound: there is none.
        """
        procedure = _admin.set_retention(
            topic,
            self._session.dialect,
            self._url.server_url(),
            max_age_secs=max_age_secs,
            max_bytes=max_bytes,
        )
        self._run(procedure)

    def cluster_status(self) -> ClusterStatus:
        """Return the cluster's state as the server tells it (AMB-11)."""
        return self._run(_admin.cluster_status())

    def ping(self) -> float:
        """Send a Keepalive and return the seconds until its answer (LWP section 4.3)."""
        rtt = self._ask(ping_call())
        assert isinstance(rtt, float)
        return rtt

    def stats(self) -> ClientStats:
        """Return the counters as they stand now."""
        with self._pump.lock:
            return self._core.stats()

    def _run(self, procedure: Procedure[T]) -> T:
        try:
            call = next(procedure)
            while True:
                try:
                    result = self._ask(call)
                except LanceError as error:
                    call = procedure.throw(error)
                else:
                    call = procedure.send(result)
        except StopIteration as stop:
            value: T = stop.value
            return value

    def _ask(self, call: Call | Pause) -> object:
        if isinstance(call, Pause):
            return self._pump.wait(Outcome(), call.seconds)
        began = monotonic()
        with self._pump.lock:
            self._pump.check()
            self._caller.submit(call, began)
        self._pump.wake()
        try:
            self._pump.wait(call, None)  # the core settles it within request_timeout
        except BaseException:
            call.abandoned = True
            raise
        if hooks := self._pump.announcer.hooks:
            hooks.call("on_call", called(self._name, call, began))
        if call.error is not None:
            raise call.error.with_traceback(None)
        return call.value
