"""Certificates for cases about TLS, made when they are needed and never stored."""

import ssl
from dataclasses import dataclass
from functools import cache
from typing import Any

from lance_conformance.engine.failures import NotApplicable


@dataclass(frozen=True, slots=True)
class Certificates:
    """What one server shows, and whom its client is told to trust.

    Attributes:
        server: The server's context.
        trusted: The certificates that the client is to trust, as PEM.
    """

    server: ssl.SSLContext
    trusted: str

    def options(self) -> dict[str, Any]:
        """What a client is told when it connects."""
        return {"tls": True, "ca": self.trusted}

    @staticmethod
    def of(kind: str) -> "Certificates | None":
        """The certificates of a kind: ``right``, ``stranger``, ``other-name``; None without.

        Raises:
            NotApplicable: What makes certificates is not installed.
        """
        return _made(kind) if kind else None


@cache
def _made(kind: str) -> Certificates:
    try:
        import trustme  # noqa: PLC0415 - only cases about TLS need it
    except ModuleNotFoundError:
        raise NotApplicable(
            "cases about TLS need trustme: pip install 'lance-sdk[conformance]'"
        ) from None
    authority = trustme.CA()
    trusted = trustme.CA() if kind == "stranger" else authority
    name = "elsewhere.invalid" if kind == "other-name" else "127.0.0.1"
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(name).configure_cert(context)
    return Certificates(context, trusted.cert_pem.bytes().decode())
