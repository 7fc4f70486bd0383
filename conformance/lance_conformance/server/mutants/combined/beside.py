"""Servers that end subscriptions when their connection does something else."""

from typing import Any

from lance_conformance.server.golden.codec import Reply, Wire
from lance_conformance.server.golden.specified import Specified
from lance_conformance.server.golden.state import Connection, Replies, Subscription, Topic
from lance_conformance.server.mutants.operators.common import Hook, cut, golden_rule
from lance_conformance.server.mutants.predicates import register
from lance_conformance.server.mutants.registry import golden

ASKED = ("mix/pushed-beside-*",)
SENTINEL = 2**64 - 1
FEW = 4
"""Times that a consumer subscribes from the beginning."""


def _forgets(hook: Hook, what: str, words: str) -> None:
    def replacement(server: Specified, *arguments: Any) -> Any:
        server.memory.speaker.subscriptions.clear()
        return golden_rule(server, hook)(*arguments)

    register(hook, f"ends-subscriptions-on-{what}",
             f"{words} ends the subscriptions of its connection.", replacement,
             "specified", ASKED)  # fmt: skip


for _hook, _what, _words in (
    (Specified.keepalives, "keepalives", "A Keepalive"),
    (Specified.find, "questions", "A GetTopic"),
    (Specified.fetch_beside_push, "fetches", "A Fetch"),
    (Specified.commit_kept, "commits", "A CommitOffset"),
    (Specified.limits_kept, "limits", "A SetRetention"),
    (Specified.forget, "deletions", "A DeleteTopic"),
    (Specified.acks, "batches", "A batch"),
):
    _forgets(_hook, _what, _words)


def _hangs_up(server: Specified, code: int, command: int, /) -> bool:
    subscribed = bool(server.memory.speaker.subscriptions)
    return not subscribed and golden(server).stays_after(code, command)


def _ends_all(server: Specified, connection: Connection, topic_id: int, /) -> None:
    golden(server).unsubscribed(connection, topic_id)
    connection.subscriptions.clear()


def _ends_with_one(server: Specified, connection: Connection, /) -> Replies:
    gone = [each for each in connection.subscriptions if each not in server.memory.topics]
    replies = golden(server).pushes(connection)
    if gone:
        connection.subscriptions.clear()
    return replies


def _ends_on_acks(server: Specified, connection: Connection, frame: Wire, /) -> Replies:
    connection.subscriptions.clear()
    return golden(server).ambient(connection, frame)


for _rule, _name, _title, _replacement in (
    (Specified.stays_after, "hangs-up-on-subscribers",
     "A refusal ends a connection that is subscribed.", _hangs_up),
    (Specified.unsubscribed, "ends-all-with-one-unsubscribe",
     "An Unsubscribe ends all subscriptions of its connection.", _ends_all),
    (Specified.pushes, "ends-subscriptions-with-one",
     "A subscription that ends with its topic ends the others of its connection.", _ends_with_one),
    (Specified.ambient, "ends-subscriptions-on-acks",
     "An Ack of a client ends the subscriptions of its connection.", _ends_on_acks),
):  # fmt: skip
    register(_rule, _name, _title, _replacement, "specified", ASKED)


def _goes_on_at_the_commit(server: Specified, topic: Topic, consumer: int, asked: int, /) -> int:
    found = golden(server).subscribed_at(topic, consumer, asked)
    return server.committed(topic.id, consumer) or found if asked == SENTINEL else found


register(Specified.subscribed_at, "resumes-at-the-end",
         "A Subscribe at the end goes on at the commit of its consumer.",
         _goes_on_at_the_commit, "specified",
         ("sub/sentinel-after-a-commit",))  # fmt: skip


def _cuts(bits: int) -> None:
    def subscribe_ack(server: Specified, consumer: int, offset: int, /) -> Reply:
        return golden(server).subscribe_ack(cut(consumer, bits), offset)

    def commit_ack(server: Specified, consumer: int, offset: int, /) -> Reply:
        return golden(server).commit_ack(cut(consumer, bits), offset)

    register(Specified.subscribe_ack, f"acknowledges-{bits}-bits-of-subscribers",
             f"A SubscribeAck has {bits} bits of its consumer.", subscribe_ack, None,
             ("width/subscribed-consumers",))  # fmt: skip
    register(Specified.commit_ack, f"acknowledges-{bits}-bits-of-committers",
             f"A CommitAck has {bits} bits of its consumer.", commit_ack, None,
             ("width/committing-consumers",))  # fmt: skip


def _keeps_none_of(consumer: int, words: str) -> None:
    def commit_kept(server: Specified, topic_id: int, found: int, offset: int, /) -> None:
        if found != consumer:
            golden(server).commit_kept(topic_id, found, offset)

    register(Specified.commit_kept, f"keeps-no-commit-of-{words}",
             f"A commit of the consumer with {words} does not count.".replace("-", " "),
             commit_kept, None, ("width/resuming-consumers",))  # fmt: skip


_keeps_none_of(0, "no-bits")
_keeps_none_of(SENTINEL, "all-bits")
for _bits in (16, 32, 53, 63):
    _cuts(_bits)


# -- pushes ----------------------------------------------------------------------------------------


def _loses_batches(most: int) -> None:
    def pushed(server: Specified, topic: Topic, subscription: Subscription, /) -> Replies:
        if len(topic.log) - subscription.cursor > most:
            subscription.cursor = len(topic.log)
        return golden(server).pushed(topic, subscription)

    register(Specified.pushed, f"pushes-at-most-{most}",
             f"Where more than {most} bytes are to be pushed, none of them is.", pushed,
             "specified", ("size/pushed-*",))  # fmt: skip


for _most in (65_536, 80_000, 1 << 20):
    _loses_batches(_most)


def _goes_on(server: Specified, topic: Topic, consumer: int, asked: int, /) -> int:
    found = golden(server).subscribed_at(topic, consumer, asked)
    counts = server.memory.counts
    counts["subscribed", topic.id, consumer] += 1
    again = not found and counts["subscribed", topic.id, consumer] > FEW
    return len(topic.log) if again else found


register(Specified.subscribed_at, "resumes-without-a-commit",
         "A consumer that subscribes again and again goes on at the end.", _goes_on,
         "specified", ("rep/subscribed-from-zero",))  # fmt: skip


def _skips_a_push(most: int) -> None:
    def cursor_after(server: Specified, start: int, data: bytes, /) -> int:
        counts = server.memory.speaker.counts
        counts["many-pushes"] += 1
        lost = counts["many-pushes"] == most
        return golden(server).cursor_after(start, data) + len(data) * lost

    register(Specified.cursor_after, f"skips-the-push-after-{most}",
             f"After {most} pushes of a connection one is left out.", cursor_after,
             "specified", ("num/pushes-257",))  # fmt: skip


for _most in (140, 200, 256):
    _skips_a_push(_most)
