"""The format ``lwp`` as Spark finds it: its name, its columns, and who reads and writes.

Spark starts several Pythons that do no more than look this up. So what reads and what writes is
imported by those who need it.
"""

from collections.abc import MutableMapping

from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
)
from pyspark.sql.types import StructType

from lance_sdk.errors import ConfigError
from lance_sdk.spark.failures import plainly
from lance_sdk.spark.options import PLACES, TARGETS, Options, options_of_table
from lance_sdk.spark.tables import table_options, table_schema


class LwpDataSource(DataSource):
    """Topics, segment files and slots as DataFrames; see the guide for its options.

    ::

        spark.read.format("lwp").option("servers", "localhost:1992").option("topic", "orders")
    """

    @plainly()
    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self._said = {name: options[name] for name in options}
        self._options = Options.parse(self._said)

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "lwp"

    def schema(self) -> StructType:
        """Return the columns of a query that does not say."""
        return table_schema(self._options.chosen_columns, options_of_table(self._said))

    @plainly()
    def reader(self, schema: StructType) -> DataSourceReader:
        """Return what reads a batch query."""
        from lance_sdk.spark import readers  # noqa: PLC0415 - as above

        return readers.batch_reader(self._options_with(schema), schema)

    @plainly()
    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's
        """Return what reads a streaming query."""
        from lance_sdk.spark import readers  # noqa: PLC0415 - as above

        return readers.stream_reader(self._options_with(schema).of_stream(), schema)

    @plainly()
    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        """Return what writes a DataFrame; a log is only ever appended to."""
        from lance_sdk.spark import writers  # noqa: PLC0415 - as above

        options = self._options_with(schema)
        return writers.batch_writer(options, schema, is_aimed=self._is_aimed, overwrite=overwrite)

    @plainly()
    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:  # noqa: N802 - Spark's
        """Return what writes a streaming query."""
        from lance_sdk.spark import writers  # noqa: PLC0415 - as above

        options = self._options_with(schema)
        return writers.stream_writer(options, schema, is_aimed=self._is_aimed, overwrite=overwrite)

    @property
    def _is_aimed(self) -> bool:
        """Whether the query itself says where to write, and not a table's options."""
        return any(name.lower() in TARGETS for name in self._said)

    def _options_with(self, schema: StructType) -> Options:
        """Return the options, with those that the columns of a table bring along.

        Columns keep them in whatever is made of the table, so they count only where a query does
        not itself say where to read or to write.

        Raises:
            ConfigError: nothing says where.
        """
        if any(name.lower() in PLACES for name in self._said):
            return self._options
        of_table = table_options(schema)
        if not of_table and not self._said:
            raise ConfigError(
                "say where to read or write: option servers=host:port with topic=NAME, or a path "
                "of files. A table of Spark's catalog that was created with columns of its own, or "
                "AS SELECT, has no options: create it without; the option columns=A,B chooses "
                "columns"
            )
        return Options.parse(of_table | self._said)
