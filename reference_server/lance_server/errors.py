"""Why the server cannot start or stop as asked; each class has its own exit code."""

from typing import ClassVar


class LanceServerError(Exception):
    """A condition of the surroundings, told in one sentence that says what to do next.

    Attributes:
        exit_code: what the command exits with.
    """

    exit_code: ClassVar[int] = 70


class ConfigError(LanceServerError, ValueError):
    """An option has a value that makes no sense."""

    exit_code = 2


class DataDirBusyError(LanceServerError):
    """Another process serves the data directory."""

    exit_code = 2


class DataDirError(LanceServerError):
    """The data directory cannot be used: not writable, not a folder, or damaged beyond repair."""

    exit_code = 3


class ListenError(LanceServerError):
    """The address cannot be listened on."""

    exit_code = 4


class ClusterLogError(LanceServerError):
    """The log of the cluster cannot be used: not reached, missing, or with unsafe settings."""

    exit_code = 5


class PeerError(LanceServerError):
    """A server that a data directory is compared with does not answer as it should."""

    exit_code = 4


class UncleanStopError(LanceServerError):
    """The drain deadline passed before everything that was received had been made durable."""

    exit_code = 1
