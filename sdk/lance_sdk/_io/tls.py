"""TLS contexts for ``lances://`` URLs."""

import ssl


def client_context(context: ssl.SSLContext | None) -> ssl.SSLContext:
    """Return the given context, or one that trusts what the system trusts."""
    return ssl.create_default_context() if context is None else context
