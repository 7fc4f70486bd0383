"""Bearer tokens (design section 28)."""

import hashlib
import hmac
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from lance_server.errors import ConfigError

_MAX_FILE: Final = 1024 * 1024
_SHORTEST: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthConfig:
    """Which tokens open the server, and for what.

    Attributes:
        tokens: the tokens; never shown.
        token_file: a file with more of them, one a line; ``#`` begins a comment.
        write_only: only what changes something needs a token, reading is free.
    """

    tokens: tuple[str, ...] = field(default=(), repr=False)
    token_file: Path | None = None
    write_only: bool = False


class TokenSet:
    """The tokens that are valid, kept as digests.

    Args:
        tokens: the tokens.

    Raises:
        ConfigError: there is none, or one is too short to be a secret.
    """

    def __init__(self, tokens: Iterable[str]) -> None:
        listed = list(tokens)
        if not listed:
            raise ConfigError(
                "authentication is on and there is no token: set auth.tokens or auth.token_file"
            )
        for place, token in enumerate(listed, 1):
            if len(token.encode()) < _SHORTEST:
                raise ConfigError(
                    f"token {place} is shorter than {_SHORTEST} bytes; choose another"
                )
        self._digests = frozenset(_digest(token.encode()) for token in listed)

    def __repr__(self) -> str:
        return f"<TokenSet of {len(self._digests)}>"

    @classmethod
    def load(cls, config: AuthConfig) -> "TokenSet":
        """Return all tokens of a configuration.

        Raises:
            ConfigError: the file cannot be read, or there is no token anywhere.
        """
        return cls([*config.tokens, *_read(config.token_file)])

    def find(self, token: bytes) -> bytes | None:
        """Return the digest of a token if it is valid, else None.

        Digests are compared, all of them and in constant time: how long it takes says nothing
        about how much of a guess is right.
        """
        digest = _digest(token)
        matches = [hmac.compare_digest(digest, known) for known in self._digests]
        return digest if any(matches) else None

    def __contains__(self, digest: bytes) -> bool:
        return digest in self._digests


def _digest(token: bytes) -> bytes:
    return hashlib.sha256(token).digest()


def _read(path: Path | None) -> list[str]:
    if path is None:
        return []
    try:
        with path.open("rb") as file:
            raw = file.read(_MAX_FILE + 1)
        lines = raw.decode().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        raise ConfigError(f"cannot read auth.token_file '{path}': {reason}") from error
    if len(raw) > _MAX_FILE:
        raise ConfigError(f"auth.token_file '{path}' is larger than {_MAX_FILE} bytes")
    words = (line.strip() for line in lines)
    return [word for word in words if word and not word.startswith("#")]
