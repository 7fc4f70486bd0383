"""Routes of the HTTP port, and who may use them."""

import asyncio
import base64
import binascii
import ipaddress
import json
import re
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias
from urllib.parse import parse_qsl, urlsplit

from lance_server.errors import ConfigError
from lance_server.http import health
from lance_server.http.copies import answer_copy_request
from lance_server.http.http_messages import Request, Response, as_json, text
from lance_server.http.metrics import CONTENT_TYPE, render
from lance_server.http.observed_server import ObservedServer
from lance_server.http.page import HEADERS, render_page
from lance_server.http.snapshot import take_snapshot
from lance_server.log.metadata.topic_file import Retention
from lance_server.log.retention.preview import retention_plan
from lance_server.log.topic import Topic
from lance_server.lwp.refusals import Refusal
from lance_server.runtime.completion import settled

_View: TypeAlias = Callable[[Request], Awaitable[Response]]
_JSON: Final = "application/json"
_NUMBER: Final = re.compile(r"[0-9]{1,20}")
_MOST: Final = 2**64 - 1


class Routes:
    """Answers requests about one server.

    Reading needs a token where reading the log does. What changes something must be switched
    on, comes from this machine, and says so with the type of its body: a page in somebody's
    browser cannot send that.

    Args:
        server: the server.
    """

    def __init__(self, server: ObservedServer) -> None:
        self._server = server
        self._open: Mapping[str, Callable[[], Response]] = {
            "/health/live": health.live,
            "/health/startup": health.started,
            "/health/ready": lambda: health.ready(server.service),
            "/health": lambda: health.ready(server.service),
        }
        self._views: Mapping[str, _View] = {
            "/": self._page,
            "/metrics": self._metrics,
            "/status.json": self._status,
            "/offsets.json": self._offsets,
            "/retention.json": self._retention,
        }
        self._actions: Mapping[str, Callable[[Any], Response | Awaitable[Response]]] = {
            "/admin/circuit/trip": self._trip,
            "/admin/circuit/reset": self._reset,
            "/admin/offsets/delete": self._delete_offset,
            "/admin/offsets/set": self._set_offset,
            "/admin/clock/confirm": self._confirm_clock,
            "/admin/snapshot": self._copy_data,
            **server.actions,
        }

    def __repr__(self) -> str:
        return f"<Routes of {self._server!r}>"

    async def answer(self, request: Request) -> Response:
        """Return the answer to a request."""
        if request.path in self._actions:
            return await self._act(request)
        if request.path.startswith("/copies"):
            return await self._hand_out(request)
        return await self._show(request)

    async def _show(self, request: Request) -> Response:
        if request.method not in ("GET", "HEAD"):
            return text(405, "This port is for reading", allow="GET, HEAD")
        if request.path in self._open:
            return self._open[request.path]()
        view = self._views.get(request.path)
        if view is None:
            known = ", ".join([*self._views, *self._open])
            return text(404, f"There is nothing at {request.path[:200]}; there is {known}")
        if not self._may_read(request):
            return text(401, "A token is needed", www_authenticate='Basic realm="lance-server"')
        return await view(request)

    # Reading -----------------------------------------------------------------------------------

    async def _page(self, _: Request) -> Response:
        body = render_page(take_snapshot(self._server)).encode()
        return Response(200, body, "text/html; charset=utf-8", HEADERS)

    async def _status(self, _: Request) -> Response:
        return as_json(200, take_snapshot(self._server))

    async def _metrics(self, _: Request) -> Response:
        snapshot = take_snapshot(self._server)
        # On a thread: thousands of lines are written while clients are served.
        body = await asyncio.to_thread(render, self._server.service, snapshot)
        return Response(200, body, CONTENT_TYPE)

    async def _offsets(self, _: Request) -> Response:
        """Answer with what consumers have committed, and when."""
        found = [
            {
                "topic_id": topic.id,
                "topic": topic.file.identity.name,
                "consumer_id": consumer_id,
                "name": self._server.service.consumer_names.get(consumer_id),
                "offset": commit.offset,
                "committed_at_ns": commit.time_ns,
            }
            for topic in self._server.engine.topics_with_default()
            for consumer_id, commit in sorted(topic.consumers.commits().items())
        ]
        return as_json(200, {"offsets": found})

    async def _retention(self, request: Request) -> Response:
        """Answer with what retention would drop now, by the topics' limits or by others."""
        try:
            return as_json(200, retention_plan(self._server.engine, *_asked(request.query)))
        except ConfigError as error:
            return text(400, str(error))

    async def _hand_out(self, request: Request) -> Response:
        """Answer another node, or who makes one: it wants a copy of this node's files."""
        if not self._may_read(request):
            return text(401, "A token is needed", www_authenticate='Basic realm="lance-server"')
        return await answer_copy_request(self._server.engine.copies, request)

    def _may_read(self, request: Request) -> bool:
        security = self._server.service.security
        if security.tokens is None or security.write_only:
            return True
        token = _token_in(request.headers.get("authorization", ""))
        return token is not None and security.tokens.find(token) is not None

    # Changing ----------------------------------------------------------------------------------

    async def _act(self, request: Request) -> Response:
        refused = self._refused_change(request)
        if refused is not None:
            return refused
        try:
            done = self._actions[request.path](json.loads(request.body or b"{}"))
            return done if isinstance(done, Response) else await done
        except ConfigError as error:
            return text(400, str(error))
        except (ValueError, RecursionError):
            return text(400, "The body is not JSON")

    def _refused_change(self, request: Request) -> Response | None:
        if not self._server.config.admin:
            return text(403, "Changes are switched off; start the server with --admin")
        if not request.is_local:
            return text(403, "Changes are taken from this machine only")
        if not self._is_meant(request):
            return text(403, "The Host or Origin of this request is not this server's")
        if not self._may_change(request):
            return text(401, "A token is needed", www_authenticate='Basic realm="lance-server"')
        if request.method != "POST" or request.headers.get("content-type") != _JSON:
            return text(405, f"Send a POST with content-type {_JSON}", allow="POST")
        return None

    def _may_change(self, request: Request) -> bool:
        tokens = self._server.service.security.tokens
        if tokens is None:
            return True
        token = _token_in(request.headers.get("authorization", ""))
        return token is not None and tokens.find(token) is not None

    def _is_meant(self, request: Request) -> bool:
        """Whether it was sent to this server by intent, and not by a page in a browser.

        A page of another site has an Origin of its own. A page whose name was made to point at
        this machine (DNS rebinding) sends that name as Host; an address cannot be made to.
        """
        host = request.headers.get("host", "")
        name, configured = _host_name(host), self._server.config.http
        own = {"localhost"} if configured is None else {"localhost", configured.host}
        if name not in own and not _is_address(name):
            return False
        origin = request.headers.get("origin")
        return origin is None or origin in (f"http://{host}", f"https://{host}")

    def _trip(self, _: Any) -> Response:
        self._server.service.disk.breaker.trip()
        return self._circuit()

    def _reset(self, _: Any) -> Response:
        self._server.service.disk.breaker.reset()
        return self._circuit()

    async def _delete_offset(self, body: Any) -> Response:
        """Forget what a consumer committed to a topic; answered when that is durable."""
        body = body if isinstance(body, dict) else {}
        numbers = [body.get(name) for name in ("topic_id", "consumer_id")]
        if not all(type(number) is int for number in numbers):
            return text(400, "Send topic_id and consumer_id, both numbers")
        topic_id, consumer_id = numbers
        topic = self._server.engine.find(topic_id)
        if topic is None:
            return self._missing(topic_id)
        try:
            await settled(topic.consumers.delete(consumer_id))
        except KeyError:
            return text(404, f"Consumer {consumer_id} has committed nothing to topic {topic_id}")
        except Refusal as refusal:
            return text(503, refusal.message)
        return as_json(200, {"topic_id": topic_id, "consumer_id": consumer_id, "deleted": True})

    async def _set_offset(self, body: Any) -> Response:
        """Commit an offset for a consumer that is not there; answered when that is durable."""
        body = body if isinstance(body, dict) else {}
        numbers = [body.get(name) for name in ("topic_id", "consumer_id", "offset")]
        if not all(type(number) is int and 0 <= number <= _MOST for number in numbers):
            return text(400, "Send topic_id, consumer_id and offset, numbers of 64 bits")
        topic_id, consumer_id, offset = numbers
        topic = self._server.engine.find(topic_id)
        if topic is None:
            return self._missing(topic_id)
        if (conflict := _conflict(topic, body.get("topic"), consumer_id, offset)) is not None:
            return text(409, conflict)
        try:
            await settled(topic.consumers.commit(consumer_id, offset))
        except Refusal as refusal:
            return text(503, refusal.message)
        return as_json(200, {"topic_id": topic_id, "consumer_id": consumer_id, "offset": offset})

    def _missing(self, topic_id: int) -> Response:
        """Return the answer to a request for a topic that is not here."""
        name = self._server.engine.remote_name(topic_id)
        if name is None:
            return text(404, f"There is no topic {topic_id}")
        return text(
            404, f"This node does not host topic {topic_id} ('{name}'); ask a node that hosts it"
        )

    async def _confirm_clock(self, _: Any) -> Response:
        """Take the machine's clock for right; answered when that is durable."""
        try:
            await settled(self._server.engine.confirm_clock())
        except OSError as error:
            return text(503, f"The clock is believed, and a restart may ask again: {error}")
        return as_json(200, {"confirmed": True})

    async def _copy_data(self, body: Any) -> Response:
        """Copy the data directory to a folder of this machine; answered when that is whole."""
        target = body.get("target") if isinstance(body, dict) else None
        if not isinstance(target, str) or "\0" in target:
            return text(400, "Send target, the path of a folder that is not there yet")
        try:
            report = await settled(self._server.engine.snapshots.take(Path(target)))
        except OSError as error:
            return text(503, f"The snapshot could not be made: {error}")
        return as_json(200, report.to_body())

    def _circuit(self) -> Response:
        return as_json(200, {"circuit": self._server.service.disk.breaker.state.name.lower()})


def _asked(query: str) -> tuple[str | None, Retention | None]:
    """Return the topic and the limits that a query names.

    Raises:
        ConfigError: it names something else, or a limit that is not a number.
    """
    given = dict(parse_qsl(query, keep_blank_values=True))
    topic = given.pop("topic", None)
    if unknown := given.keys() - {"max_age_secs", "max_bytes"}:
        raise ConfigError(f"'{min(unknown)}' is not topic, max_age_secs or max_bytes")
    for name, value in given.items():
        if not _NUMBER.fullmatch(value):
            raise ConfigError(f"{name} is a number, not '{value}'")
    limits = {name: int(value) for name, value in given.items()}
    return topic, Retention(**limits) if limits else None


def _conflict(topic: Topic, name: str | None, consumer_id: int, offset: int) -> str | None:
    """Return why a consumer's offset cannot be set; None where it can."""
    known = topic.file.identity
    if name not in (None, known.name):
        return f"Topic {known.id} is called '{known.name}' here"
    if offset > topic.partition.end_offset:
        return f"Topic {known.id} ends at {topic.partition.end_offset}"
    if topic.consumers.is_connected(consumer_id):
        return f"Consumer {consumer_id} is connected; stop it first"
    return None


def _host_name(host: str) -> str:
    """Return the name or address of a Host header, without its port."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _token_in(header: str) -> bytes | None:
    """Return the token of an Authorization header: Bearer, or the password of Basic."""
    scheme, _, value = header.partition(" ")
    if scheme.lower() == "bearer":
        return value.strip().encode("latin-1")
    if scheme.lower() != "basic":
        return None
    try:
        return base64.b64decode(value, validate=True).partition(b":")[2]
    except (binascii.Error, ValueError):
        return None
