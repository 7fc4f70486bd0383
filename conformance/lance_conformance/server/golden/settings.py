"""Golden servers as their operators set them up: with tokens, with TLS, and what gets in there."""

import ssl
from functools import cache
from typing import TYPE_CHECKING, Final

from lance_conformance.engine.access import Access, Tls
from lance_conformance.server.golden.restartable import Restartable
from lance_conformance.server.golden.server import Connections, sessions
from lance_conformance.server.golden.specified import Specified
from lance_conformance.server.golden.tls import TlsAcceptor

if TYPE_CHECKING:
    import trustme

TOKEN: Final = b"Golden-Token-7f3a"
HOST: Final = "127.0.0.1"


def furnished(rules: Specified, setting: str) -> Connections:
    """The connections of a server with these rules, in some setting."""
    if setting == "restart":
        return lambda: Restartable(rules)
    if setting.startswith("token"):
        rules.memory.tokens = frozenset({TOKEN, b"another-token-of-the-same-server"})
        rules.memory.write_only = setting == "token-write-only"
    if not setting.endswith("tls"):
        return sessions(rules)
    context = _server_context(rules, demanded=setting == "mtls")
    return lambda: TlsAcceptor(rules, context)


def access_in(setting: str) -> Access:
    """What gets in there."""
    if setting.startswith("token"):
        return Access(token=TOKEN, token_mode="write-only" if "write" in setting else "all")
    return Access(tls=_tls(setting)) if setting.endswith("tls") else Access()


@cache
def _authority() -> "trustme.CA":
    import trustme  # noqa: PLC0415 - comes with the extra, and only TLS needs it

    return trustme.CA()


@cache
def _own_certificate() -> "trustme.LeafCert":
    return _authority().issue_cert(HOST)


def _server_context(rules: Specified, *, demanded: bool) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _own_certificate().configure_cert(context)
    _authority().configure_trust(context)
    context.verify_mode = rules.client_certificates(demanded)
    return context


@cache
def _tls(setting: str) -> Tls:
    import trustme  # noqa: PLC0415 - likewise

    usual, anonymous, stranger = _context(), _context(), _context()
    trustme.CA().issue_cert("stranger.invalid").configure_cert(stranger)
    if setting == "mtls":
        _authority().issue_cert("kit.invalid").configure_cert(usual)
    return Tls(usual, anonymous, stranger, HOST, has_certificate=setting == "mtls")


def _context() -> ssl.SSLContext:
    context = ssl.create_default_context()
    _authority().configure_trust(context)
    return context
