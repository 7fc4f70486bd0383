"""Tables of Spark's catalog: their options go along with their columns.

Spark keeps the options of ``CREATE TABLE … USING lwp OPTIONS (…)``, and gives a source in Python
none of them when the table is read or written to. It does give the columns as they were when the
table was created, with their metadata. So the options stand in the metadata of the first column.
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

from lance_sdk.spark.rows.column_names import TYPES

_KEY: Final = "lwp.options"
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
    if options:
        fields[0].metadata = {_KEY: json.dumps(dict(options), sort_keys=True)}
    return StructType(fields)


def table_options(schema: StructType) -> dict[str, str]:
    """Return the options that the columns of a table bring along; none from other columns."""
    found = (field.metadata.get(_KEY) for field in schema.fields if field.metadata)
    said = next((text for text in found if text), None)
    return {} if said is None else dict(json.loads(said))
