"""TLS contexts for ``lances://`` URLs."""

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from lance_sdk.errors import ConfigError

if TYPE_CHECKING:
    import ssl


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsSettings:
    """How to speak TLS, as in `lance_sdk.config.ClientConfig`.

    Attributes:
        context: a ready context, or None to make one of the files for every connection, so that
            renewed certificates are taken up without a restart.
        ca: file of the certificates to trust.
        cert: file of this side's certificate chain.
        key: file of its private key.
        password: opens the key.
        server_name: what the server's certificate must say, where it is not the host.
    """

    context: "ssl.SSLContext | None" = None
    ca: str | os.PathLike[str] | None = None
    cert: str | os.PathLike[str] | None = None
    key: str | os.PathLike[str] | None = None
    password: str | None = field(default=None, repr=False)
    server_name: str | None = None

    def load(self) -> "ssl.SSLContext":
        """Return the context for the next connection.

        Raises:
            ConfigError: naming the file that cannot be used.
        """
        if self.context is not None:
            return self.context
        context = _trusting(self.ca)
        if self.cert is not None:
            self._present(context, self.cert)
        return context

    def _present(self, context: "ssl.SSLContext", cert: str | os.PathLike[str]) -> None:
        # A callable, because without one OpenSSL asks the terminal for a missing password.
        password = self.password or ""
        try:
            context.load_cert_chain(cert, self.key, lambda: password)
        except (OSError, ValueError) as error:
            key = "" if self.key is None else f", tls_key={os.fspath(self.key)}"
            raise ConfigError(
                f"tls_cert={os.fspath(cert)}{key}: {_reason(error)}; expected a PEM certificate "
                f"chain and the private key that belongs to it"
            ) from error


Tls: TypeAlias = "ssl.SSLContext | TlsSettings | None"
"""What a driver takes: settings, a ready context, or None for the system's trust store."""


def tls_settings(tls: Tls) -> TlsSettings:
    """Return whatever a driver was given as settings."""
    return tls if isinstance(tls, TlsSettings) else TlsSettings(context=tls)


def _trusting(ca: str | os.PathLike[str] | None) -> "ssl.SSLContext":
    import ssl  # noqa: PLC0415 - only where TLS is spoken

    try:
        return ssl.create_default_context(cafile=ca)
    except (OSError, ValueError) as error:
        shown = "" if ca is None else os.fspath(ca)
        raise ConfigError(
            f"tls_ca={shown}: {_reason(error)}; expected a file of PEM certificates"
        ) from error


def _reason(error: Exception) -> str:
    import ssl  # noqa: PLC0415 - only where TLS is spoken

    if isinstance(error, ssl.SSLError):
        return error.reason or str(error)
    return (isinstance(error, OSError) and error.strerror) or str(error)
