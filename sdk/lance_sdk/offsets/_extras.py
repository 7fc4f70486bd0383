"""Drivers that are installed with an extra, and loaded when somebody wants them."""

from importlib import import_module
from typing import Any

from lance_sdk.errors import ConfigError


def require(module: str, extra: str) -> Any:
    """Import a driver.

    Raises:
        ConfigError: it is not installed; the message has the command that installs it.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module:
            raise
        raise ConfigError(
            f"{module} is not installed; install it with: pip install 'lance-sdk[{extra}]'"
        ) from None
