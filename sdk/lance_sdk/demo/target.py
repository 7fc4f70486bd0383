"""The demo's server: one inside this process, or one that runs already."""

import secrets
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from lance_sdk.cli._settings import Settings
from lance_sdk.cli._target import client_options
from lance_sdk.cli.console.exit_codes import ExitCode, Failure
from lance_sdk.errors import LanceError
from lance_sdk.url import URL, Endpoint, parse_url

if TYPE_CHECKING:
    from lance_sdk import Client

_GROUP: Final = "lance_sdk.embedded_server"


@dataclass(frozen=True, slots=True)
class DemoTopic:
    """A topic of the demo's own.

    Attributes:
        topic: its URL.
        described: the server, in words.
        afterwards: what remains when the demo is over, in words; "" when nothing does.
    """

    topic: URL
    described: str
    afterwards: str = ""

    @property
    def server(self) -> Endpoint:
        """The server's address, as the conformance kit takes it."""
        return self.topic.endpoints[0]


@contextmanager
def embedded_target(settings: Settings, data_dir: Path | None) -> Iterator[DemoTopic]:
    """Run a server for the length of a ``with`` block.

    The server is found through an entry point, so that the SDK imports none.

    Args:
        settings: the shared options.
        data_dir: where its data goes and stays; None for a temporary directory.

    Raises:
        Failure: when no server is installed, or it does not start.
    """
    factory = _embedded_factory()
    with ExitStack() as stack:
        try:
            server = stack.enter_context(factory(data_dir, dialect=settings.dialect or "auto"))
        except Exception as error:
            raise Failure(f"the embedded server does not start: {error}") from error
        topic = replace(parse_url(server.url), topic=_unused_name())
        where = "a temporary directory" if data_dir is None else str(data_dir)
        described = f"{topic.server_url()}, embedded; data in {where}"
        yield DemoTopic(topic, described, _how_to_look(data_dir, topic))


@contextmanager
def running_target(settings: Settings, url: str, *, keep: bool) -> Iterator[DemoTopic]:
    """Use a topic of a running server for the length of a ``with`` block.

    Args:
        settings: the shared options.
        url: the server.
        keep: leave the topic there.

    Raises:
        ConfigError: when the URL is not valid.
        Failure: when the kit could not be pointed at that server.
    """
    server = parse_url(url)
    if server.tls:
        raise Failure("the demo's conformance kit does not speak TLS yet; use a lance:// URL")
    topic = replace(server, topic=_unused_name(), topic_id=None)
    with _client(topic, settings) as client:
        client.ping()  # so that a server that is not there is known before the work begins
    kept = f"the records stay at {topic}" if keep else ""
    try:
        yield DemoTopic(topic, f"{server.server_url()}, which is running already", kept)
    except BaseException:
        with suppress(LanceError):  # the first error is the one to tell
            _delete(topic, settings)
        raise
    if not keep:
        _delete(topic, settings)


def _unused_name() -> str:
    """Return a name that every dialect allows and no topic has yet."""
    return f"flights-{secrets.token_hex(4)}"


def _how_to_look(data_dir: Path | None, topic: URL) -> str:
    if data_dir is None:
        return ""
    return (
        f"the records stay in {data_dir}; to look at them:\n"
        f"  lance-server --data-dir {data_dir} --listen {topic.endpoints[0]}\n"
        f"  lwp consume {topic} --max-records 3"
    )


def _client(topic: URL, settings: Settings) -> "Client":
    from lance_sdk import Client  # noqa: PLC0415 - the network is loaded when it is needed

    return Client(topic, **client_options(settings, topic))


def _delete(topic: URL, settings: Settings) -> None:
    with _client(topic, settings) as client:
        client.delete_topic(topic.label)


def _embedded_factory() -> Any:
    points = sorted(entry_points(group=_GROUP), key=lambda point: point.name)
    if not points:
        raise Failure(
            f"no embedded server is installed (entry point group {_GROUP}); install one with: "
            f"pip install 'lance-sdk[demo]', or use a running one with --url",
            ExitCode.USAGE,
        )
    return points[0].load()
