"""What goes wrong in the data pipeline."""
# ruff: noqa: N818 - these names say what happened; "Error" would repeat the module's name

from lance_sdk.errors import LanceError


class DataDamaged(LanceError):
    """A file holds other bytes than its checksums or its structure say."""


class DataLost(LanceError):
    """What a query was to read next is not there any more, or is not the same (AMB-31)."""


class CheckpointError(LanceError):
    """A checkpoint, commit log or state file cannot be used."""


class SinkError(LanceError):
    """A batch could not be written as it was asked for."""


class SparkFailed(LanceError):
    """Spark itself could not do the work."""


class FolderUnsettled(LanceError):
    """A folder was changed by its server during every look at it."""
