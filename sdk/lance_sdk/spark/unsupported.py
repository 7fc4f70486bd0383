"""The format ``lwp`` in a Spark that is too old for it: says so wherever it is used."""

from pyspark.sql.datasource import DataSource

from lance_sdk.errors import ConfigError
from lance_sdk.spark import too_old


class UnsupportedSource(DataSource):
    """Refuses every query with the reason."""

    def __init__(self, options: dict[str, str]) -> None:
        super().__init__(options)
        raise ConfigError(too_old() or "this Spark is new enough; use LwpDataSource")

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "lwp"
