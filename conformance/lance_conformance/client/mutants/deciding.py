"""Clients that decide wrongly: what is acknowledged, what is sent again, when to give up."""

import contextlib
import ssl
from collections.abc import Sequence
from typing import TypeVar

from lance_conformance.client.golden.specified import Specified
from lance_conformance.client.golden.values import Batch, ProblemError
from lance_conformance.client.mutants.registry import golden, mutant
from lance_conformance.server.golden.codec import Wire

T = TypeVar("T")
ACK, BACKPRESSURE, KEEPALIVE, CONTROL = 0x08, 0x10, 0x20, 0x40
FOR_EVER = 3600.0


@mutant(Specified.answers_keepalive)
def answers_no_keepalive(_client: Specified, _received: int, _sent: int, _since: float, /) -> bool:
    """Keepalives of the server are not answered."""
    return False


@mutant(Specified.answers_keepalive)
def answers_every_keepalive(
    _client: Specified, _received: int, _sent: int, _since: float, /
) -> bool:
    """Every Keepalive is answered, answers, too, as in the published Python client."""
    return True


@mutant(Specified.answers_keepalive)
def answers_a_burst_one_by_one(
    _client: Specified, received: int, sent: int, _since: float, /
) -> bool:
    """Keepalives are answered as fast as they come."""
    return received > sent


@mutant(Specified.keepalive_due)
def never_sends_a_keepalive(_client: Specified, _quiet: float, _interval: float, /) -> bool:
    """A quiet connection stays quiet."""
    return False


@mutant(Specified.kept_alive, only="specified")
def keeps_one_connection_alive(_client: Specified, connections: Sequence[T], /) -> Sequence[T]:
    """Keepalives are sent on the first connection only."""
    return connections[:1]


@mutant(Specified.resumed, only="specified")
def begins_again_after_a_loss(_client: Specified, begun: int, _position: int, /) -> int:
    """A subscription whose connection is lost begins where it began."""
    return begun


@mutant(Specified.acknowledged)
def takes_any_ack(_client: Specified, waiting: Sequence[Batch], frame: Wire, /) -> Sequence[Batch]:
    """An Ack acknowledges whatever waits."""
    return waiting if frame.flags & ACK else []


@mutant(Specified.acknowledged)
def counts_acks(_client: Specified, waiting: Sequence[Batch], frame: Wire, /) -> Sequence[Batch]:
    """An Ack acknowledges the oldest batch, whatever id it carries."""
    return waiting[:1] if frame.flags & ACK else []


@mutant(Specified.acknowledged)
def takes_acks_for_all_before(
    client: Specified, waiting: Sequence[Batch], frame: Wire, /
) -> Sequence[Batch]:
    """An Ack acknowledges all batches up to its id."""
    golden_answer = golden(client).acknowledged(waiting, frame)
    below = [batch for batch in waiting if batch.batch_id <= frame.batch_id]
    return below if golden_answer else []


@mutant(Specified.acknowledged)
def wants_acks_in_order(
    client: Specified, waiting: Sequence[Batch], frame: Wire, /
) -> Sequence[Batch]:
    """An Ack counts only for the oldest batch."""
    return golden(client).acknowledged(waiting[:1], frame)


@mutant(Specified.acknowledged)
def compares_half_an_id(
    _client: Specified, waiting: Sequence[Batch], frame: Wire, /
) -> Sequence[Batch]:
    """Only the lower half of an id is compared."""
    mask = 0xFFFF_FFFF
    same = [batch for batch in waiting if (batch.batch_id ^ frame.batch_id) & mask == 0]
    return same if frame.flags & ACK else []


@mutant(Specified.acknowledged)
def takes_any_frame_for_an_ack(
    _client: Specified, waiting: Sequence[Batch], _frame: Wire, /
) -> Sequence[Batch]:
    """Whatever comes acknowledges whatever waits."""
    return waiting


@mutant(Specified.acknowledged)
def dies_of_unknown_acks(
    client: Specified, waiting: Sequence[Batch], frame: Wire, /
) -> Sequence[Batch]:
    """An Ack of a batch that does not wait ends the program."""
    found = golden(client).acknowledged(waiting, frame)
    if frame.flags & ACK and not found:
        raise LookupError(frame.batch_id)
    return found


@mutant(Specified.acknowledged)
def acknowledges_nothing(
    _client: Specified, _waiting: Sequence[Batch], _frame: Wire, /
) -> Sequence[Batch]:
    """Acks are not looked at."""
    return []


@mutant(Specified.pace)
def stops_at_backpressure(_client: Specified, _window: int, /) -> int:
    """After Backpressure nothing is sent until an Ack comes, and none will."""
    return 0


@mutant(Specified.pace)
def dies_of_backpressure(_client: Specified, window: int, /) -> int:
    """Backpressure ends the program."""
    return window // 0


@mutant(Specified.refused, asked=("ack/refused-*", "many/refused-in-flight-*"))
def takes_refusals_for_acks(
    client: Specified, waiting: Sequence[Batch], problem: ProblemError, /
) -> Sequence[Batch]:
    """A batch that was refused is told as acknowledged."""
    for batch in golden(client).refused(waiting, problem):
        batch.acked = True
    return []


@mutant(Specified.refused)
def blames_the_first(
    _client: Specified, waiting: Sequence[Batch], _problem: ProblemError, /
) -> Sequence[Batch]:
    """An error is about the oldest batch."""
    return waiting[:1]


@mutant(Specified.refused)
def blames_the_last(
    _client: Specified, waiting: Sequence[Batch], _problem: ProblemError, /
) -> Sequence[Batch]:
    """An error is about the newest batch."""
    return waiting[-1:]


@mutant(Specified.refused)
def blames_all(
    _client: Specified, waiting: Sequence[Batch], _problem: ProblemError, /
) -> Sequence[Batch]:
    """An error is about everything that waits."""
    return waiting


@mutant(Specified.to_send)
def sends_again_what_is_acknowledged(
    _client: Specified, batches: Sequence[Batch], /
) -> Sequence[Batch]:
    """After a loss everything is sent again, whether it was acknowledged or not."""
    return batches


@mutant(Specified.to_send)
def sends_again_in_reverse(client: Specified, batches: Sequence[Batch], /) -> Sequence[Batch]:
    """After a loss the newest batch is sent first."""
    return list(reversed(golden(client).to_send(batches)))


@mutant(Specified.to_send)
def lets_every_third_batch_wait(client: Specified, batches: Sequence[Batch], /) -> Sequence[Batch]:
    """Every third batch leaves when the others are settled."""
    waiting = golden(client).to_send(batches)
    return [batch for batch in waiting if batch.ticket % 3] or waiting


@mutant(Specified.again)
def stamps_retries(_client: Specified, batch: Batch, /) -> bytes:
    """A retry has another timestamp; so has every frame, by one nanosecond."""
    batch.data = (
        batch.data[:20]
        + (int.from_bytes(batch.data[20:28], "little") + 1).to_bytes(8, "little")
        + batch.data[28:]
    )
    return batch.data


@mutant(Specified.again)
def numbers_retries(_client: Specified, batch: Batch, /) -> bytes:
    """A retry has another id."""
    batch.batch_id += 1000
    batch.data = batch.data[:12] + batch.batch_id.to_bytes(8, "little") + batch.data[20:]
    return batch.data


@mutant(Specified.worth_another_try)
def tries_everything_again(_client: Specified, _problem: ProblemError, /) -> bool:
    """Whatever was refused is sent again."""
    return True


@mutant(Specified.reconnects)
def never_reconnects(_client: Specified) -> bool:
    """A lost connection is the end, as in the published Python client."""
    return False


@mutant(Specified.delay)
def hammers(_client: Specified, _attempt: int, _timeout: float, /) -> float:
    """A connection that cannot be made is tried again at once."""
    return 0.0


@mutant(Specified.leader)
def stays_with_the_follower(_client: Specified, _problem: ProblemError, /) -> None:
    """A redirect is not followed."""


@mutant(Specified.kind_of)
def calls_redirects_fatal(client: Specified, code: int, /) -> str:
    """NotLeader is an error like any other."""
    return "fatal" if code == 0x20 else golden(client).kind_of(code)


@mutant(Specified.operation_timeout)
def waits_for_ever(_client: Specified, _timeout: float, /) -> float:
    """Operations have no deadline."""
    return FOR_EVER


@mutant(Specified.operation_timeout)
def has_no_patience(_client: Specified, _timeout: float, /) -> float:
    """Operations end before they begin."""
    return 0.0


@mutant(Specified.tls)
def trusts_everybody(_client: Specified, _ca: str, /) -> ssl.SSLContext:
    """Certificates are not looked at."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


@mutant(Specified.tls)
def does_not_compare_names(client: Specified, ca: str, /) -> ssl.SSLContext:
    """A trusted certificate may be of any name."""
    context = golden(client).tls(ca)
    context.check_hostname = False
    return context


@mutant(Specified.tls)
def trusts_only_the_system(_client: Specified, _ca: str, /) -> ssl.SSLContext:
    """The authorities that were named are not trusted."""
    return ssl.create_default_context()


@mutant(Specified.answers)
def dies_of_other_answers(_client: Specified, wanted: int, command: int, /) -> bool:
    """An answer of another command ends the program."""
    with contextlib.suppress(KeyError):
        return {wanted: True, 0x12: False}[command]
    raise LookupError(command)
