"""What columns of the source bring along in their metadata: a table's options, and whose times.

Spark keeps the options of ``CREATE TABLE … USING lwp OPTIONS (…)``, and gives a source in Python
none of them when the table is read or written to. It does give the columns as they were when the
table was created, with their metadata. So the options stand in the metadata of the column
``offset``, or of the first one.

Rows that were read from one table and go to another as they are bring the options of the first one
along, and Spark does not tell which table they are for. Such rows have offsets, and rows that were
made have none: so offsets are refused where the options of a table say where to write.

The time of a record without one of its own is the server's. Written again it would become the
record's own, and contradict its type. Metadata of the columns of times says that they are as they
were read, so that the type tells whose time it is.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Final

from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from lance_sdk.errors import ConfigError
from lance_sdk.spark.rows.column_names import TYPES

_KEY: Final = "lwp.options"
_AS_READ: Final = "lwp.times"
_TIMES: Final = ("timestamp", "ts_ns")
_OFFSET: Final = "offset"
_SPARK: Final[Mapping[str, DataType]] = {
    "string": StringType(),
    "bigint": LongType(),
    "int": IntegerType(),
    "binary": BinaryType(),
    "boolean": BooleanType(),
    "timestamp": TimestampType(),
}


def table_schema(columns: Sequence[str], options: Mapping[str, str] | None) -> StructType:
    """Return columns as Spark's.

    Args:
        columns: their names.
        options: of the table that is created with them; None where there is none.
    """
    fields = [StructField(name, _SPARK[TYPES[name]]) for name in columns]
    for field in fields:
        if field.name in _TIMES:
            field.metadata = {_AS_READ: True}
    if options:
        holder = fields[list(columns).index(_OFFSET) if _OFFSET in columns else 0]
        said = {_KEY: json.dumps(dict(options), sort_keys=True)}
        holder.metadata = {**(holder.metadata or {}), **said}
    return StructType(fields)


def times_by_type(schema: StructType) -> bool:
    """Whether the type of a row tells whose its time is: the times are as they were read."""
    times = [field for field in schema.fields if field.name in _TIMES]
    as_read = bool(times) and all((field.metadata or {}).get(_AS_READ) for field in times)
    return as_read and "type" in schema.names and "time_source" not in schema.names


def table_options(schema: StructType) -> dict[str, str]:
    """Return the options that the columns of a table bring along; none from other columns."""
    found = (field.metadata.get(_KEY) for field in schema.fields if field.metadata)
    said = next((text for text in found if text), None)
    return {} if said is None else dict(json.loads(said))


def check_target(schema: StructType) -> None:
    """Refuse to write where only the options of a table say where, and it has no offsets.

    Raises:
        ConfigError: nothing would tell rows of another table.
    """
    if _OFFSET not in schema.names:
        raise ConfigError(
            "a table without the column offset can only be read: name offset among its columns, or "
            "write with df.write.format('lwp') and the option topic=NAME"
        )
