"""Advice about an error, in one sentence, for the texts of errors."""

import errno
from typing import Final

from lance_sdk._errors import server
from lance_sdk._errors.server import ServerError

_SERVER: Final[dict[type[ServerError], str]] = {
    server.ServerBackpressure: "Make room on the server's disk, or send slower; the server's log "
    "and /health say which it is.",
    server.RateLimited: "Send slower, or raise the limit at the server.",
    server.ConnectionLimitReached: "Try again later (open_timeout= does), or raise `lance-server "
    "--max-connections`.",
    server.QuorumNotReached: "Check the other nodes with `lwp status`.",
    server.LeaderUnknown: "Check the other nodes with `lwp status`.",
    server.ClusterNotReady: "Wait until the cluster has started; `lwp status` tells.",
    server.NotLeader: "Name all nodes in the URL: lance://HOST1,HOST2/TOPIC.",
    server.StorageError: "Look at the server's log and at its disk.",
    server.InternalServerError: "Look at the server's log.",
    server.ServerTimeout: "Look at the server's log and at its disk.",
    server.AuthenticationRequired: "Pass token=, or put it into the URL: lance://TOKEN@HOST.",
    server.AuthenticationFailed: "Check token=, and that it is a token of this server.",
    server.AccessDenied: "Use a token that may do this, or have the server's rules changed.",
    server.TopicNotFound: "Create the topic, or pass create_topic=True.",
    server.TopicDeleted: "Create the topic again and open a new client, or use another one.",
    server.PayloadTooLarge: "Lower batch_bytes, or raise the limit at the server.",
}
_SYSTEM: Final = {
    errno.ECONNREFUSED: "Check that a server listens there (`lance-server --listen HOST:PORT`); "
    "open_timeout= waits for one that starts.",
    errno.ENETUNREACH: "Check the network and the address.",
    errno.EHOSTUNREACH: "Check the network and the address.",
    errno.ETIMEDOUT: "Check the network, and firewalls on the way.",
    errno.EMFILE: "Close files or connections, or raise the limit of open files (`ulimit -n`).",
}


def _is_tls(cause: BaseException) -> bool:
    """Whether it is an error of `ssl`, which what knows nothing of sockets does not import."""
    return any(kind.__name__ == "SSLError" for kind in type(cause).__mro__)


def words(cause: BaseException) -> str:
    """Return what an error says, without numbers that only its library knows."""
    if refusal := getattr(cause, "verify_message", ""):
        return f"the server's certificate is not accepted: {refusal}"
    if _is_tls(cause) and (reason := getattr(cause, "reason", None)):
        return f"TLS failed: {reason.lower().replace('_', ' ')}"
    if isinstance(cause, OSError) and cause.strerror:
        said = cause.strerror.partition(" (_ssl.c:")[0]
        return f"TLS failed: {said}" if _is_tls(cause) else said
    if isinstance(cause, ConnectionError) and not str(cause):
        return "the connection was reset"
    return str(cause) or type(cause).__name__


_DEFAULT: Final = "Check that the server runs and can be reached (`lwp ping URL`)."


def advice(cause: BaseException | None) -> str:
    """Return what to do about what went wrong; about anything else, to look at the server."""
    if isinstance(cause, ServerError):
        return _SERVER.get(type(cause), "Look at the server's log.")
    if isinstance(cause, OSError) and cause.errno in _SYSTEM:
        return _SYSTEM[cause.errno]
    if cause is not None and _is_tls(cause):
        return tls_advice(cause)
    return _DEFAULT


def tls_advice(cause: BaseException) -> str:
    """Return what to do about a TLS handshake that failed."""
    reason = getattr(cause, "reason", None) or ""
    text = f"{reason} {cause}".upper().replace("_", " ")
    if refusal := getattr(cause, "verify_message", ""):
        return _certificate_advice(refusal.lower())
    if any(words in text for words in ("WRONG VERSION NUMBER", "HTTP REQUEST", "RECORD LAYER")):
        return "The server does not speak TLS there: use lance://, or its port for TLS."
    if "EOF" in text or "ENDED THE CONNECTION" in text or isinstance(cause, ConnectionError):
        return "The server does not speak TLS there (use lance://), or broke the handshake off."
    if "CERTIFICATE REQUIRED" in text or "HANDSHAKE FAILURE" in text:
        return "The server asks for a certificate of this client: pass tls_cert= and tls_key=."
    if "UNKNOWN CA" in text or "BAD CERTIFICATE" in text:
        return "The server does not trust the certificate in tls_cert=: use one that it trusts."
    return "Check the certificates, or use lance:// where the server does not speak TLS."


def _certificate_advice(message: str) -> str:
    if "hostname mismatch" in message or "ip address mismatch" in message:
        return (
            "The server's certificate is for another name: use a name that stands in it, or pass "
            "tls_server_name=."
        )
    if "expired" in message or "not yet valid" in message:
        return "Renew the server's certificate, and check the clocks of both machines."
    return (
        "The server's certificate is not trusted here: pass tls_ca=, the file of the authority "
        "that signed it, or the certificate itself where it is self-signed."
    )


def peer_advice(got: str) -> str:
    """Return what to do about a peer whose first bytes are not LWP's.

    Args:
        got: those four bytes in hexadecimal, as the error has them.
    """
    if got == b"HTTP".hex(" "):
        return HTTP_ADVICE
    if got.startswith("15 03"):  # an alert of TLS
        return "The server speaks TLS there: use lances://."
    return "Use the port on which the LANCE server speaks LWP, 1992 by default."


HTTP_ADVICE: Final = (
    "That is the port of an HTTP server: use the one on which the LANCE server speaks LWP, 1992 by "
    "default."
)
