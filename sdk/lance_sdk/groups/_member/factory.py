"""A member's core put together: the same for both APIs."""

import random
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, cast

from lance_sdk._api.factory import ClientCore, build_client
from lance_sdk._io.platform import seconds_asleep
from lance_sdk._protocol.backoff import Backoff
from lance_sdk.errors import ConfigError
from lance_sdk.groups._member.settings import GroupSettings
from lance_sdk.groups._member.store_adapter import OffsetStoreAdapter
from lance_sdk.groups._protocol.member import MemberHandler
from lance_sdk.groups._protocol.text_session import TextSession
from lance_sdk.url import URL

_DICE: Final = random.SystemRandom()
_RETRY_BASE: Final = 0.2
_RETRY_CAP: Final = 5.0
_SHARED: Final = ("connect_timeout", "open_timeout", "request_timeout", "close_timeout")
"""Settings that a program means for both connections, unless it says otherwise."""


def build_member(
    coordinator: str | URL, settings: GroupSettings, options: Mapping[str, Any]
) -> tuple[ClientCore, MemberHandler]:
    """Put together the session of a member with its coordinator.

    Args:
        coordinator: where that is.
        settings: of the member.
        options: keywords of the connection, as `lance_sdk.Client` takes them.

    Raises:
        ConfigError: for a URL or an option that cannot be used.
    """
    retry = Backoff(_RETRY_BASE, _RETRY_CAP, _DICE)
    shared = {name: settings.options[name] for name in _SHARED if name in settings.options}
    options = {**shared, **options}
    secret = _DICE.getrandbits(64) | 1
    make = partial(
        MemberHandler, settings.subscription(()), retry, secret=secret, asleep=seconds_asleep
    )
    if settings.store is None:
        core = build_client(coordinator, options, make)
    else:
        core = _build_in_text(coordinator, settings, settings.store, options, make)
    return core, cast("MemberHandler", core.caller)


def _build_in_text(
    coordinator: str | URL,
    settings: GroupSettings,
    store: OffsetStoreAdapter,
    options: Mapping[str, Any],
    make: Callable[..., MemberHandler],
) -> ClientCore:
    kind = partial(TextSession, subscription=settings.subscription(()), store=store)
    one = {**options, "dialect": "specified"}  # nothing is spoken in it, and no other is tried
    core = build_client(coordinator, one, make, kind)
    if core.config.token is not None:
        raise ConfigError("token= of a coordinator: protocol='text' cannot carry it")
    return core
