"""The golden rules of access: tokens, certificates, and how one visitor affects the others."""

import ssl

from lance_conformance.server.golden.codec import Reply
from lance_conformance.server.golden.rules.cluster import Cluster
from lance_conformance.server.golden.state import Connection, Refused

AUTHENTICATION_REQUIRED = 0x40
READS = frozenset({0x03, 0x04, 0x07, 0x10, 0x20, 0x21, 0x30, 0x70})
INGEST, KEEPALIVE = -1, -2
"""Stand for frames that are not a command where one is asked for."""


class AccessRules(Cluster):
    """Rules about getting in. Every public method is a hook."""

    # -- tokens ------------------------------------------------------------------------------------

    def token_ok(self, token: bytes, /) -> bool:
        """A token is right when it is one of those configured, byte by byte."""
        return token in self.memory.tokens

    def let_in(self, connection: Connection, token: bytes, /) -> bool:
        """The answer to a token holds for its connection from now on; all are right for none."""
        connection.trusted = not self.memory.tokens or self.token_ok(token)
        return connection.trusted

    def auth_words(self, token: bytes, ok: bool, /) -> str:
        """What is said about a token."""
        if ok:
            return "Authenticated"
        return "Invalid token" if token else "No token provided"

    def auth_answer(self, ok: bool, words: str, /) -> Reply:
        """AuthenticateResponse: one byte that says yes or no, and words."""
        return Reply(0x40, 0x09, bytes([ok]) + words.encode())

    def needs_token(self, command: int, /) -> bool:
        """All but a Keepalive needs a token; where only writing does, all but reading."""
        return command != KEEPALIVE and not (self.memory.write_only and command in READS)

    def trusted(self, connection: Connection, /) -> bool:
        """A connection is trusted once it has shown a right token itself."""
        return connection.trusted

    def without_token(self, _command: int, _payload: bytes, /) -> None:
        """What a request brings that lacks its token; of a batch the topic id stands in front."""
        raise Refused(AUTHENTICATION_REQUIRED, "Authentication required")

    # -- TLS ---------------------------------------------------------------------------------------

    def client_certificates(self, demanded: bool, /) -> ssl.VerifyMode:
        """Where certificates are demanded, nobody gets in without one of the known authority."""
        return ssl.CERT_REQUIRED if demanded else ssl.CERT_NONE

    def plain_text_ok(self) -> bool:
        """A TLS port serves nobody without TLS."""
        return False

    def opened_records(self, records: list[bytes], /) -> bytes:
        """TLS records have nothing to do with frames."""
        return b"".join(records)

    def sealed(self, data: bytes, /) -> bytes:
        """What is written is sent, whatever its size."""
        return data

    def waits_for_handshakes(self, _unfinished: int, /) -> bool:
        """Nobody waits for the handshakes of others."""
        return False

    def waits_for_silence(self, _silent: int, /) -> bool:
        """Nobody waits for clients that say nothing."""
        return False

    def hangs_up_on_noise(self) -> bool:
        """What is not a handshake ends the connection."""
        return True

    def hangs_up_inside(self) -> bool:
        """Where a plain connection would be ended, one over TLS is, too."""
        return True

    # -- the others --------------------------------------------------------------------------------

    def waits_for_others(self, _crowd: int, _unfinished: int, _unread: int, /) -> bool:
        """A request is served whoever else is there.

        Arguments: connections, those of them in the middle of a frame, and those of them that
        leave answers unread.
        """
        return False

    def has_room(self, _silent: int, /) -> bool:
        """Connections that are gone take no room, those that said nothing neither."""
        return True

    def delivered(self, data: bytes, _unread: int, /) -> bytes:
        """Answers wait for a reader who is slow, however many bytes there are."""
        return data


def admitted(rules: AccessRules, connection: Connection, command: int) -> bool:
    """Whether the rules let a request be served, judged frame by frame."""
    if not rules.memory.tokens or not rules.needs_token(command):
        return True
    return rules.trusted(connection)
