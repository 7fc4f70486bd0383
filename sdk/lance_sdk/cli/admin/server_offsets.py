"""Commits at a server, over its HTTP port: listed, set and removed."""

import json
from typing import Any, Final

from lance_sdk.cli.admin.consumer_names import known_name
from lance_sdk.cli.admin.http_port import ask, chosen_token
from lance_sdk.offsets import Commit, TopicIdentity, consumer_id

PREFIX: Final = "server:"


class ServerCommits:
    """A server's own commits, as far as `lwp offsets` looks at a store.

    Args:
        url: ``server:HOST:PORT``, the server's ``--http`` address.
    """

    def __init__(self, url: str) -> None:
        self._address = url.removeprefix(PREFIX).removeprefix("//")

    def commits(self, consumer: str | None = None) -> list[Commit]:
        """Return what a consumer has committed, or all have; it is named, or told by its number."""
        answer = self._ask("GET", "/offsets.json")
        wanted = None if consumer is None else _number_of(consumer)
        return [
            Commit(
                consumer=consumer or known_name(each) or str(each["consumer_id"]),
                topic=TopicIdentity(each["topic_id"], each["topic"]),
                offset=each["offset"],
                committed_at_ns=each["committed_at_ns"],
            )
            for each in answer["offsets"]
            if wanted in {None, each["consumer_id"]}
        ]

    def claim(self, consumer: str, topic: TopicIdentity, generation: int = 0) -> None:
        """Do nothing: the server itself refuses to set what a connected consumer has committed."""

    def release(self, consumer: str, topic: TopicIdentity) -> None:
        """Do nothing; see `claim`."""

    def save(self, commit: Commit) -> None:
        """Have a consumer go on elsewhere; the server was started with ``--admin``."""
        body: dict[str, Any] = {
            "topic_id": commit.topic.id,
            "consumer_id": _number_of(commit.consumer),
            "offset": commit.offset,
        }
        if commit.topic.name is not None:
            body["topic"] = commit.topic.name
        self._ask("POST", "/admin/offsets/set", json.dumps(body))

    def forget(self, consumer: str, topic: TopicIdentity) -> None:
        """Remove what a consumer committed; the server was started with ``--admin``."""
        body = {"topic_id": topic.id, "consumer_id": _number_of(consumer)}
        self._ask("POST", "/admin/offsets/delete", json.dumps(body))

    def close(self) -> None:
        """Do nothing: no connection is kept."""

    def _ask(self, method: str, path: str, body: str | None = None) -> Any:
        hint = "as in server:127.0.0.1:9090"
        token = chosen_token()
        return ask(self._address, path, token=token, method=method, body=body, hint=hint)


def _number_of(consumer: str) -> int:
    """Return the number by which a server knows a consumer."""
    return int(consumer) if consumer.isdecimal() else consumer_id(consumer)
