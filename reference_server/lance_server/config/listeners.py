"""Other protocols that are served from the same log."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import click

from lance_server.config.option_types import ADDRESS, FILE, group
from lance_server.config.settings import ServerConfig
from lance_server.errors import ConfigError
from lance_server.listeners.listener_api import Listener
from lance_server.security.authorizer import Security

LISTENERS: Final[Callable[[Any], Any]] = group(
    click.option(
        "--qwp",
        type=ADDRESS,
        help="Address for QWP senders, for example 127.0.0.1:9000; rows of a table become "
        "records of the topic with its name.",
    ),
    click.option(
        "--qwp-script",
        type=FILE,
        help="TOML file with rules by which the server misbehaves towards QWP senders; for "
        "tests of senders.",
    ),
    click.option(
        "--fluvio-sc",
        type=ADDRESS,
        help="Address at which Fluvio clients ask for topics, for example 127.0.0.1:9003; "
        "needs --fluvio-spu.",
    ),
    click.option(
        "--fluvio-spu",
        type=ADDRESS,
        help="Address at which Fluvio clients produce and consume, for example 127.0.0.1:9005.",
    ),
    click.option(
        "--fluvio-spu-public",
        type=ADDRESS,
        help="Address that Fluvio clients get instead of --fluvio-spu, if they reach the "
        "server through a container's port, a proxy or an address translation, for "
        "example logs.example:9005.",
    ),
    click.option(
        "--rustlog",
        type=ADDRESS,
        help="Address for RustLog clients; published clients know only 127.0.0.1:9092.",
    ),
    click.option(
        "--rustlog-dialect",
        type=click.Choice(["auto", "binary", "json"]),
        default="auto",
        help="Dialect of RustLog clients: binary, which its programs speak, or json, which its "
        "specification describes; auto distinguishes them by the first byte of each "
        "request.",
    ),
)


def build_listeners(options: Mapping[str, Any], config: ServerConfig) -> list[Listener]:
    """Return the listeners that options ask for.

    Args:
        options: the options of the command.
        config: what the server is told; its certificates, tokens and rules hold here too.

    Raises:
        ConfigError: an option makes no sense, or a package is missing.
    """
    found: list[Listener] = []
    if options["qwp"] is not None:
        found.append(_qwp(options, config))
    elif options["qwp_script"] is not None:
        raise ConfigError("--qwp-script needs --qwp HOST:PORT")
    if (options["fluvio_sc"] is None) != (options["fluvio_spu"] is None):
        raise ConfigError("--fluvio-sc and --fluvio-spu need each other: clients use both")
    if options["fluvio_spu_public"] is not None and options["fluvio_spu"] is None:
        raise ConfigError("--fluvio-spu-public needs --fluvio-sc and --fluvio-spu")
    if options["fluvio_sc"] is not None:
        found.extend(_fluvio(options, config))
    if options["rustlog"] is not None:
        found.append(_rustlog(options, config))
    return found


def _qwp(options: Mapping[str, Any], config: ServerConfig) -> Listener:
    try:
        from lance_server.listeners import qwp  # noqa: PLC0415 - websockets is optional
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("websockets"):
            raise
        raise ConfigError("--qwp needs websockets: pip install 'lance-sdk[qwp]'") from error
    security = Security(config.tls, config.auth, config.access)
    script = None if options["qwp_script"] is None else qwp.Script.load(options["qwp_script"])
    return qwp.QwpListener(options["qwp"], qwp.QwpOptions(security=security), script)


def _fluvio(options: Mapping[str, Any], config: ServerConfig) -> Sequence[Listener]:
    try:
        import cramjam  # noqa: F401, PLC0415 - optional, and needed only when a batch comes
    except ModuleNotFoundError as error:
        raise ConfigError("--fluvio-sc needs cramjam: pip install 'lance-sdk[fluvio]'") from error
    from lance_server.listeners import fluvio  # noqa: PLC0415 - see above

    if not config.validate_records:
        raise ConfigError("--fluvio-sc does not go with --trust-records: its clients count records")
    if config.auth is not None:
        raise ConfigError(
            "--fluvio-sc does not go with tokens: Fluvio's protocol has none; use TLS and "
            "access rules"
        )
    security = Security(config.tls, None, config.access)
    settings = fluvio.FluvioOptions(security=security, spu_public=options["fluvio_spu_public"])
    sc, spu = options["fluvio_sc"], options["fluvio_spu"]
    return fluvio.fluvio_listeners(sc, spu, fluvio.Cluster(settings))


def _rustlog(options: Mapping[str, Any], config: ServerConfig) -> Listener:
    if not config.validate_records:
        raise ConfigError("--rustlog does not go with --trust-records: its clients count records")
    if config.auth is not None:
        raise ConfigError(
            "--rustlog does not go with tokens: its protocol has none; use TLS and access rules"
        )
    from lance_server.listeners import rustlog  # noqa: PLC0415 - loaded only where it is wanted

    security = Security(config.tls, None, config.access)
    settings = rustlog.RustlogOptions(dialect=options["rustlog_dialect"], security=security)
    return rustlog.RustlogListener(options["rustlog"], settings)
