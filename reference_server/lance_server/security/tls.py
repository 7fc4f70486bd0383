"""TLS on the server's ports, and who a client's certificate says it is (LWP section 7.1)."""

import hashlib
import ssl
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lance_server.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsConfig:
    """The server's certificate, and whether clients must have one (LWP section 7.1).

    Attributes:
        cert_path: the server's certificate chain, PEM.
        key_path: its private key, PEM, without a passphrase.
        client_ca_path: certificate authorities whose clients are let in, PEM.
        require_client_cert: refuse clients without a certificate of theirs.
    """

    cert_path: Path
    key_path: Path
    client_ca_path: Path | None = None
    require_client_cert: bool = False

    def __post_init__(self) -> None:
        if self.require_client_cert and self.client_ca_path is None:
            raise ConfigError(
                "tls.require_client_cert needs tls.client_ca_path: without an authority no "
                "client certificate can be checked"
            )


@dataclass(frozen=True, slots=True)
class PeerIdentity:
    """Who a connection belongs to, as far as TLS can tell.

    Attributes:
        common_name: of the client's certificate, or None without one.
        authorities: fingerprints of the certificates that vouch for it.
    """

    common_name: str | None = None
    authorities: frozenset[bytes] = frozenset()

    def __str__(self) -> str:
        return "without certificate" if self.common_name is None else f"'{self.common_name}'"


ANONYMOUS = PeerIdentity()


def build_context(config: TlsConfig, more_authorities: Iterable[Path] = ()) -> ssl.SSLContext:
    """Return a context for accepting connections.

    Args:
        config: certificate, key and the authorities for all of the server.
        more_authorities: those that only some topics trust; whom else they vouch for is
            decided by the topic.

    Raises:
        ConfigError: a file cannot be used; the message names it.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # A resumed session would skip the check of the client's certificate after a reload.
    context.options |= ssl.OP_NO_TICKET
    context.num_tickets = 0
    try:
        context.load_cert_chain(config.cert_path, config.key_path, password=_no_passphrase)
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"cannot use tls.cert_path '{config.cert_path}' with tls.key_path "
            f"'{config.key_path}': {_reason(error)}"
        ) from error
    authorities = [path for path in (config.client_ca_path, *more_authorities) if path is not None]
    for path in authorities:
        _trust(context, path)
    if authorities:
        required = config.require_client_cert
        context.verify_mode = ssl.CERT_REQUIRED if required else ssl.CERT_OPTIONAL
    return context


def _no_passphrase() -> str:
    raise ValueError("the key has a passphrase; the server needs one without")


def _trust(context: ssl.SSLContext, path: Path) -> None:
    try:
        context.load_verify_locations(path)
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"cannot use client_ca_path '{path}': {_reason(error)}; "
            "it must hold certificates in PEM form"
        ) from error


def _reason(error: Exception) -> str:
    if isinstance(error, ssl.SSLError):
        return error.reason or str(error)
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def fingerprints(path: Path) -> frozenset[bytes]:
    """Return the fingerprints of the certificates in a PEM file.

    Raises:
        ConfigError: there are none.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _trust(context, path)
    return frozenset(_fingerprint(der) for der in context.get_ca_certs(binary_form=True))


def identity_of(ssl_object: Any) -> PeerIdentity:
    """Return who is at the other end of a connection.

    Args:
        ssl_object: the connection's `ssl.SSLObject`, or None for a plain connection.
    """
    certificate = None if ssl_object is None else ssl_object.getpeercert()
    if not certificate:
        return ANONYMOUS
    names = [
        value
        for part in certificate.get("subject", ())
        for name, value in part
        if name == "commonName"
    ]
    # The most specific name stands last; a certificate without any is nobody's.
    return PeerIdentity(names[-1] if names else "", _vouching(ssl_object))


def _vouching(ssl_object: Any) -> frozenset[bytes]:
    """Return the fingerprints of the verified chain, the client's own certificate excepted."""
    chain = getattr(ssl_object, "get_verified_chain", None)  # public from Python 3.13 on
    if chain is not None:
        return frozenset(_fingerprint(der) for der in chain()[1:])
    inner = ssl_object._sslobj.get_verified_chain()  # noqa: SLF001 - the same, before 3.13
    return frozenset(
        _fingerprint(ssl.PEM_cert_to_DER_cert(each.public_bytes())) for each in inner[1:]
    )


def _fingerprint(der: bytes) -> bytes:
    return hashlib.sha256(der).digest()
