"""TLS contexts from ``tls_verify``, ``tls_roots`` and ``tls_roots_password``."""

import ssl
from pathlib import Path
from typing import TYPE_CHECKING, Final

from lance_sdk.errors import ConfigError

if TYPE_CHECKING:
    from lance_sdk.journal.connect_string import ConnectString

_LARGEST: Final = 16 << 20


def context_of(parsed: "ConnectString") -> ssl.SSLContext | None:
    """Return the TLS context that a connect string asks for; None without TLS.

    Raises:
        ConfigError: the file of trusted certificates cannot be used.
    """
    if not parsed.tls:
        return None
    if parsed.get("tls_verify", True) is False:
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        return context
    roots = parsed.get("tls_roots")
    if roots is None:
        return ssl.create_default_context()
    return _trusting(Path(roots), parsed.get("tls_roots_password"))


def _trusting(file: Path, password: str | None) -> ssl.SSLContext:
    try:
        with file.open("rb") as opened:
            data = opened.read(_LARGEST)
        pem = data.decode("ascii") if password is None else _unlock(data, password)
        return ssl.create_default_context(cadata=pem)
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        raise ConfigError(
            f"tls_roots={str(file)!r} cannot be used: {error}; expected certificates in PEM, or "
            "with tls_roots_password a PKCS #12 file"
        ) from None


def _unlock(data: bytes, password: str) -> str:
    """Return the certificates of a PKCS #12 file as PEM."""
    try:
        from cryptography.hazmat.primitives.serialization import (  # noqa: PLC0415 - an extra
            Encoding,
            pkcs12,
        )
    except ModuleNotFoundError:
        raise ConfigError(
            "tls_roots_password needs the package 'cryptography'; install it with: "
            "pip install 'lance-sdk[pkcs12]'"
        ) from None
    found = pkcs12.load_pkcs12(data, password.encode())
    certificates = [each.certificate for each in (found.cert, *found.additional_certs) if each]
    if not certificates:
        raise ValueError("it holds no certificate")
    return "".join(each.public_bytes(Encoding.PEM).decode() for each in certificates)
