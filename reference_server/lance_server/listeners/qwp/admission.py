"""Admission of senders: the server's tokens, as HTTP carries them."""

import base64
import binascii

from lance_server.security.authorizer import Authorizer


def is_known(authorizer: Authorizer, authorization: str) -> bool:
    """Show the ``Authorization`` header to an authorizer; return whether the sender is let in.

    ``Bearer`` carries a token; ``Basic`` carries one as the password, beside any name.
    """
    return authorizer.authenticate(_token(authorization))[0]


def _token(authorization: str) -> bytes:
    scheme, _, value = authorization.strip().partition(" ")
    if scheme.lower() == "bearer":
        return value.strip().encode()
    if scheme.lower() != "basic":
        return b""
    try:
        return base64.b64decode(value.strip(), validate=True).partition(b":")[2]
    except binascii.Error:
        return b""
