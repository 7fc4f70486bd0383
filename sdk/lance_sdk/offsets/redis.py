"""Offsets in Redis (extra ``redis``): one hash a consumer, one field a topic.

What Redis has confirmed survives its restart only as far as its ``appendonly`` and
``appendfsync`` settings go; with ``appendfsync always`` a commit is as durable as in a file.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from lance_sdk.errors import ConfigError
from lance_sdk.offsets._document import StoredOffset, decode, encode
from lance_sdk.offsets._extras import require
from lance_sdk.offsets.contract import Commit, TopicIdentity, check_consumer_name
from lance_sdk.offsets.errors import StaleGeneration, StaleTopic, StoreUnavailable

if TYPE_CHECKING:
    import redis

__all__ = ["RedisStore"]

PREFIX: Final = "lance:offsets:"
_OLDER: Final = -2
"""Answer of the script: the commit is one of an earlier topic."""
_GENERATION: Final = "generation:"
_COMMIT: Final = "commit:"
_PAGE: Final = 100

_SAVE: Final = """
local function older(new, old)
  for _, name in ipairs({'epoch', 'created_at', 'id'}) do
    local mine, theirs = new['topic'][name], old['topic'][name]
    if type(mine) == 'number' and type(theirs) == 'number' and mine ~= theirs then
      return mine < theirs
    end
  end
  return false
end
local last = redis.call('HGET', KEYS[1], ARGV[2])
if last and ARGV[4] ~= '' and older(cjson.decode(ARGV[4]), cjson.decode(last)) then return -2 end
local current = tonumber(redis.call('HGET', KEYS[1], ARGV[1]) or '0')
if tonumber(ARGV[3]) < current then return current end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
if ARGV[4] ~= '' then redis.call('HSET', KEYS[1], ARGV[2], ARGV[4]) end
return -1
"""
"""Runs alone in the server: nobody can raise the generation between the look and the write."""


class RedisStore:
    """Keeps offsets in Redis; satisfies `OffsetStore`.

    Args:
        url: ``redis://`` or ``rediss://`` with host, port, database, user and password.
        prefix: of the keys; a consumer's hash is called prefix and name.
        timeout: seconds for connecting, and for each command.

    Raises:
        ConfigError: when ``redis`` is missing or the URL cannot be read.
    """

    def __init__(self, url: str, *, prefix: str = PREFIX, timeout: float = 5.0) -> None:
        self._driver = require("redis", "redis")
        self._prefix = prefix
        try:
            self._redis: redis.Redis = self._driver.Redis.from_url(
                url, socket_timeout=timeout, socket_connect_timeout=timeout
            )
        except ValueError as error:
            raise ConfigError(f"the Redis URL cannot be read: {error}") from None

    def __repr__(self) -> str:
        return f"<RedisStore {self._place} prefix={self._prefix!r}>"

    @property
    def _place(self) -> str:
        """Where the database is, without a password."""
        options = self._redis.connection_pool.connection_kwargs
        host = options.get("path") or f"{options.get('host')}:{options.get('port', 6379)}"
        return f"{host}/{options.get('db', 0)}"

    def claim(self, consumer: str, topic: TopicIdentity, generation: int = 0) -> Commit | None:
        """Begin to use an offset; see `OffsetStore.claim`. No lock is held."""
        key = self._key(consumer)
        with self._told():
            self._write(key, topic, generation, b"")
            data = self._redis.hget(key, f"{_COMMIT}{topic.label}")
        return None if data is None else _read(data, f"{key} {topic.label}", generation)

    def save(self, commit: Commit) -> None:
        """Keep a commit; see `OffsetStore.save`."""
        key = self._key(commit.consumer)
        with self._told():
            self._write(key, commit.topic, commit.generation, encode(StoredOffset(commit)))

    def release(self, consumer: str, topic: TopicIdentity) -> None:
        """Do nothing: no lock is held."""

    def commits(self, consumer: str | None = None) -> Sequence[Commit]:
        """Return commits; see `OffsetStore.commits`."""
        with self._told():
            keys = self._keys() if consumer is None else [self._key(consumer)]
            found = [commit for key in keys for commit in self._of(key)]
        return sorted(found, key=lambda each: (each.consumer, each.topic.label))

    def forget(self, consumer: str, topic: TopicIdentity) -> bool:
        """Remove a commit; see `OffsetStore.forget`."""
        fields = [f"{name}{topic.label}" for name in (_COMMIT, _GENERATION)]
        with self._told():
            existed = self._redis.hexists(self._key(consumer), fields[0])
            self._redis.hdel(self._key(consumer), *fields)
        return bool(existed)

    def close(self) -> None:
        """Disconnect."""
        self._redis.close()

    def _key(self, consumer: str) -> str:
        return f"{self._prefix}{check_consumer_name(consumer)}"

    def _keys(self) -> list[str]:
        pattern = "".join(f"\\{c}" if c in r"*?[]\^" else c for c in self._prefix)
        return [key.decode() for key in self._redis.scan_iter(f"{pattern}*", count=_PAGE)]

    def _of(self, key: str) -> Iterator[Commit]:
        fields: dict[bytes, bytes] = self._all(key)
        for name, data in fields.items():
            kind, _, label = name.decode().partition(":")
            if f"{kind}:" == _COMMIT:
                generation = int(fields.get(f"{_GENERATION}{label}".encode(), b"0"))
                yield _read(data, f"{key} {label}", generation)

    def _all(self, key: str) -> Any:
        return self._redis.hgetall(key)

    def _write(self, key: str, topic: TopicIdentity, generation: int, data: bytes) -> None:
        fields = f"{_GENERATION}{topic.label}", f"{_COMMIT}{topic.label}"
        answer: Any = self._redis.eval(_SAVE, 1, key, *fields, generation, data)
        if answer == _OLDER:
            raise StaleTopic(topic.label)
        if answer >= 0:
            raise StaleGeneration(topic.label, generation, answer)

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except self._driver.RedisError as error:
            reason = str(error).strip() or type(error).__name__
            raise StoreUnavailable(
                f"cannot use the offsets in Redis at {self._place}: {reason}", maybe_applied=True
            ) from error


def _read(data: Any, place: str, generation: int) -> Commit:
    return decode(data, f"Redis key {place}").claimed(generation).commit
