"""Certificates and tokens; rules for clients and topics stand in the file only."""

from typing import Final

import click

from lance_server.config.option_types import FILE, group

SECURITY: Final = group(
    click.option("--tls-cert-path", type=FILE, help="The server's certificate chain, PEM."),
    click.option("--tls-key-path", type=FILE, help="Its private key, PEM, without passphrase."),
    click.option(
        "--tls-client-ca-path",
        type=FILE,
        help="Authorities whose client certificates are accepted, PEM.",
    ),
    click.option(
        "--tls-require-client-cert/--tls-optional-client-cert",
        default=False,
        help="Refuse clients without a certificate.",
    ),
    click.option(
        "--auth-token-file",
        type=FILE,
        help="File with valid tokens, one per line; clients must send one with Authenticate.",
    ),
    click.option(
        "--auth-write-only/--auth-everything",
        default=False,
        help="Ask for a token only for requests that change something.",
    ),
)
