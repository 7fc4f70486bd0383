"""Checks that every record is a JSON document."""

import json
from collections.abc import Iterable, Iterator
from typing import NoReturn

from lance_sdk.cli.console.exit_codes import Failure


def checked(batches: Iterable[list[bytes]]) -> Iterator[list[bytes]]:
    """Pass lists of records on as long as each record is JSON in UTF-8 (RFC 8259).

    Args:
        batches: lists of records.

    Raises:
        Failure: naming the line and the place in it; the records before it were yielded.
    """
    number = 0
    for batch in batches:
        for index, record in enumerate(batch):
            number += 1
            if (fault := _fault(record)) is not None:
                yield batch[:index]
                raise Failure(
                    f"line {number} is not JSON: {fault}; use --type raw to store it as it is"
                )
        yield batch


def _fault(record: bytes) -> str | None:
    try:
        json.loads(record.decode(), parse_constant=_refuse)
    except RecursionError:
        return "nested too deeply"
    except ValueError as error:
        return str(error)
    return None


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a JSON value")
