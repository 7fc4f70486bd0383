"""Runs one case: the control first, then the same with a server that misbehaves."""

import asyncio
import itertools
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import replace
from typing import Any

from lance_conformance.client.client_case import ClientCase
from lance_conformance.client.driver import Driver, DriverDiedError
from lance_conformance.client.evaluation import batch_of, decoded, judge, read, records_of
from lance_conformance.client.exact import Exact
from lance_conformance.client.inprocess import client_of
from lance_conformance.client.operations import RENEW, WAIT, Op, Want
from lance_conformance.client.scripted.model import Model
from lance_conformance.client.scripted.script import On
from lance_conformance.client.scripted.server import HOST, ScriptedServer
from lance_conformance.client.target import Timeouts
from lance_conformance.client.tls import Certificates
from lance_conformance.engine.base_context import BaseContext
from lance_conformance.engine.conditions import Conditions
from lance_conformance.engine.failures import Blocked, Failure, NotApplicable

CLOSE = Op("close", want=Want(error=True))
"""The last operation of every case; a client that complains has still ended."""

DRY = 3
"""Polls in a row without a record after which no further ones are made for what is missing."""


class ClientCaseContext(BaseContext):
    """One case's conversation with the client under test.

    Args:
        conditions: What the run has in common; its target is a `Client`.
        case_id: The case.
        budget: Seconds that the case gets.

    Attributes:
        client: The client under test.
    """

    def __init__(self, conditions: Conditions, case_id: str, budget: float) -> None:
        super().__init__(conditions, case_id, budget)
        self.client = client_of(conditions.target)
        self._timeouts = Timeouts(budget)
        self._numbers = itertools.count(1)
        self._driver: Driver | None = None
        self._died = "the driver was not started"
        self._opening = CLOSE
        self._exact: Exact | None = None

    async def prepare(self) -> None:
        """Have a driver that runs."""
        try:
            self._driver = await self.client.drivers.take()
        except DriverDiedError as problem:
            self._died = str(problem)

    async def end(self, *, clean: bool) -> None:
        """Give the driver back, unless something may still go on in it."""
        driver, self._driver = self._driver, None
        if driver is not None and clean:
            self.client.drivers.give(driver)
        elif driver is not None:
            await driver.end()

    async def begin(self) -> None:
        """Nothing: the control of a case is a part of it."""

    async def probe(self) -> None:
        """Nothing, for the same reason."""

    async def perform(self, case: ClientCase) -> None:
        """Ask one case.

        Raises:
            Failure: The client did not do what it must.
            Blocked: It does not do it when nothing is wrong, either.
            NotApplicable: Its driver knows no such operation.
        """
        if case.paired:
            await self._control(case)
        server = self._server(case, case.script)
        await self._phase(server, case, case.ops)
        self._judge_rules(server, case.rule)

    async def rehearse(self, ops: Sequence[Op]) -> tuple[dict[str, bool], ScriptedServer]:
        """Let the client do everything that it can, with a server that does all right.

        Returns:
            Whether the driver has each operation, and what came over the wire.

        Raises:
            Failure: The client ends, or hangs.
        """
        has: dict[str, bool] = {}
        server = self._server(ClientCase(()), ())
        async with server.open():
            await self._ask(server, self._connect(server.port, {}))
            for op in ops:
                try:
                    await self._ask(server, op)
                except NotApplicable:
                    has.setdefault(op.name, False)
                else:
                    has[op.name] = True
            await self._ask(server, CLOSE)
        return has, server

    async def _control(self, case: ClientCase) -> None:
        ops = [_right(op) for op in case.ops]
        server = self._server(case, ())
        tls = "right" if case.tls else ""
        right = replace(case, checks=(), listens=True, tls=tls)
        try:
            await self._phase(server, right, ops)
        except Failure as failure:
            words = "the same does not work with a server that does all right"
            raise failure.told_as(Blocked, words) from failure

    def _server(self, case: ClientCase, script: Sequence[On]) -> ScriptedServer:
        model = Model(
            self.conditions.dialect, case.records, case.topic_id, case.base, case.torn, case.cuts
        )
        return ScriptedServer(
            model, script, self.transcript, self._numbers,
            pause=self.client.pause, operation=self._timeouts.operation,
        )  # fmt: skip

    async def _phase(self, server: ScriptedServer, case: ClientCase, ops: Sequence[Op]) -> None:
        certificates = Certificates.of(case.tls)
        context = certificates.server if certificates else None
        self._exact = Exact(server) if case.exact else None
        options = {**case.options, **(certificates.options() if certificates else {})}
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(server.open(context))
            nobody = stack.enter_context(closed_port())
            port = server.port if case.listens else nobody
            self._opening = self._connect(port, options)
            await self._open(server)
            for op in ops:
                await self._carry_out(server, op)
            if self._exact is not None and not any(
                op.name == "poll" and op.want.error for op in ops
            ):
                self._exact.end()
            for check in case.checks:
                await check.judge(server, self._deadline())
            await self._ask(server, CLOSE)
            if server.unreadable:
                raise Failure(
                    "unreadable",
                    f"the client sent bytes that are not a frame: {server.unreadable}",
                    received=server.unreadable,
                )

    def _connect(self, port: int, options: Mapping[str, Any]) -> Op:
        """The first operation of every case."""
        arguments = {
            "host": HOST,
            "port": port,
            "dialect": self.conditions.dialect.name,
            "timeout": self._timeouts.operation,
        }
        return Op("connect", {**arguments, **options}, Want(error=True))

    async def _open(self, server: ScriptedServer) -> None:
        """Begin a client; one that connects at once may tell here why it cannot."""
        result = await self._ask(server, self._opening)
        server.unconnected = str(result.get("error", {}).get("kind", ""))

    def _deadline(self) -> float:
        return asyncio.get_running_loop().time() + self._timeouts.hang

    async def _carry_out(self, server: ScriptedServer, op: Op) -> None:
        if op.name == WAIT:
            await asyncio.sleep(op.arguments["part"] * self._timeouts.operation)
            return
        if op.name == RENEW:
            await self._renew(server)
        elif not self._is_left_out(server, op):
            await self._perform(server, op)

    async def _renew(self, server: ScriptedServer) -> None:
        await self._ask(server, CLOSE)
        await self._open(server)
        server.tickets.clear()
        if self._exact is not None:
            self._exact.renewed()

    async def _perform(self, server: ScriptedServer, op: Op) -> None:
        answered = len(server.answered)
        server.begin(op.meanwhile)
        if self._exact is not None:
            op = self._exact.begin(op)
        try:
            result = await self._ask(server, op)
        except NotApplicable:
            if op.optional:
                return
            raise
        values = [decoded(each.get("value")) for each in records_of(result)]
        server.read += values
        server.dry = 0 if values or op.name != "poll" else server.dry + 1
        if op.name == "send_async" and "ok" in result:
            server.tickets.append((str(result["ok"].get("ticket")), batch_of(op)))
        judge(op, result, server, answered)
        if self._exact is not None:
            self._exact.judge(op, result.get("ok"))
        if op.name == "flush":
            server.tickets.clear()

    def _is_left_out(self, server: ScriptedServer, op: Op) -> bool:
        """Whether there is nothing to read for a poll that is made for what is missing."""
        missing = not op.enough or len(server.read) < op.enough
        news = not op.if_news or bool(self._exact and self._exact.has_news)
        waits = bool(op.enough or op.if_news) and server.dry >= DRY
        return waits or not (missing and news)

    async def _ask(self, server: ScriptedServer, op: Op) -> Mapping[str, Any]:
        if self._driver is None:
            raise Failure("client-died", self._died)
        limit = self._timeouts.hang
        try:
            async with asyncio.timeout(limit):
                response = await self._driver.call({"op": op.name, **op.arguments})
        except DriverDiedError as problem:
            raise Failure("client-died", str(problem)) from problem
        except TimeoutError:
            raise Failure(
                "timeout",
                f"{op} did not end within {limit:.1f} s, although the client was given "
                f"{self._timeouts.operation:.1f} s for it",
                expected=(str(op.want),),
                received=f"nothing in {limit:.1f} s",
                connection=server.transcript.last_connection(),
            ) from None
        if response.get("unsupported"):
            raise NotApplicable(f"the driver does not support {op}")
        result = read(op, response)
        server.told.append(str(result.get("error", "")))
        return result

    def _judge_rules(self, server: ScriptedServer, own: str) -> None:
        for name, (received, wrong) in server.broken.items():
            if name == own or (not own and name not in self.client.known):
                raise Failure(
                    f"rule:{name}",
                    f"{received} breaks a rule for every frame: {wrong}",
                    expected=(name.replace("-", " "),),
                    received=wrong,
                    connection=received.connection,
                )


def _right(op: Op) -> Op:
    """An operation as it must go with a server that does everything right."""
    return op if op.refused_here else replace(op, want=Want(), meanwhile=())


@contextmanager
def closed_port() -> Iterator[int]:
    """A port of the loopback interface on which nobody listens, and nobody can begin to."""
    with socket.socket() as held:
        held.bind((HOST, 0))
        port: int = held.getsockname()[1]
        yield port
