"""Credentials of the kit: certificates and a token."""

import ssl
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Literal

TokenMode = Literal["all", "write-only"]


class EntryMode(Enum):
    """How one connection gets in at a target that speaks TLS."""

    USUAL = "usual"
    """With all that the kit was given."""
    PLAIN = "plain"
    """Without TLS."""
    ANONYMOUS = "anonymous"
    """With TLS, and without a certificate of the kit's."""
    STRANGER = "stranger"
    """With TLS, and with a certificate of an authority that nobody knows."""


class AccessError(Exception):
    """What was given to get in cannot be used; the sentence says why."""


@dataclass(frozen=True, slots=True)
class Tls:
    """How the kit meets a target that speaks TLS.

    Attributes:
        context: Judges the target's certificate, and has the kit's own.
        anonymous: The same without a certificate of the kit's.
        stranger: The same with a certificate of an authority that nobody knows.
        server_name: The name the target's certificate must be for.
        has_certificate: The kit has a certificate of its own.
    """

    context: ssl.SSLContext = field(repr=False)
    anonymous: ssl.SSLContext = field(repr=False)
    stranger: ssl.SSLContext = field(repr=False)
    server_name: str
    has_certificate: bool


@dataclass(frozen=True, slots=True)
class Access:
    """How the kit gets in.

    Attributes:
        tls: How it meets TLS; `None` for plain connections.
        token: The token it shows on every connection; no report has it.
        token_mode: What the target asks a token for, as its operator says.
    """

    tls: Tls | None = None
    token: bytes | None = field(default=None, repr=False)
    token_mode: TokenMode = "all"  # noqa: S105 - a mode, not a token

    def context(self, way: EntryMode) -> ssl.SSLContext | None:
        """What makes a connection TLS, or `None` for a plain one."""
        if self.tls is None or way is EntryMode.PLAIN:
            return None
        if way is EntryMode.ANONYMOUS:
            return self.tls.anonymous
        return self.tls.stranger if way is EntryMode.STRANGER else self.tls.context

    @property
    def server_name(self) -> str | None:
        """The name that the target's certificate must be for."""
        return None if self.tls is None else self.tls.server_name

    @property
    def capabilities(self) -> frozenset[str]:
        """What can be asked of the target because of this."""
        found = set()
        if self.token is not None:
            found |= {"token", f"token-{self.token_mode}"}
        if self.tls is not None:
            found |= {"tls", "mtls"} if self.tls.has_certificate else {"tls"}
        return frozenset(found)


def tls_for(ca: Path | None, cert: Path | None, key: Path | None, server_name: str) -> Tls:
    """Prepare TLS from files.

    Args:
        ca: Authorities that may have signed the target's certificate; the system's without it.
        cert: The kit's own certificate.
        key: Its key, when that is not in the same file.
        server_name: The name the target's certificate must be for.

    Raises:
        AccessError: A file cannot be used.
    """
    if key is not None and cert is None:
        raise AccessError("--key needs --cert, the certificate that it belongs to")
    import trustme  # noqa: PLC0415 - comes with the extra, and only TLS needs it

    try:
        context, anonymous, stranger = _context(ca), _context(ca), _context(ca)
        if cert is not None:
            context.load_cert_chain(cert, key)
        trustme.CA().issue_cert("stranger.invalid").configure_cert(stranger)
    except (OSError, ssl.SSLError) as problem:
        given = ", ".join(str(path) for path in (ca, cert, key) if path is not None)
        raise AccessError(f"TLS cannot be prepared from {given}: {problem}") from problem
    return Tls(context, anonymous, stranger, server_name, has_certificate=cert is not None)


def _context(ca: Path | None) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=None if ca is None else str(ca))


def read_token(path: Path) -> bytes:
    """The token in a file: its first line, without the white space around it.

    Raises:
        AccessError: The file cannot be read, or has none.
    """
    try:
        lines = path.read_bytes().splitlines()
    except OSError as problem:
        raise AccessError(f"the token cannot be read: {problem}") from problem
    token = lines[0].strip() if lines else b""
    if not token:
        raise AccessError(f"{path} has no token in its first line")
    return token
