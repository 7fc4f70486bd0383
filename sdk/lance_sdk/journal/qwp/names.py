"""Names of tables and columns, as QuestDB takes them."""

from typing import Final

_FORBIDDEN: Final = frozenset("?,'\"\\/:()+*%~\ufeff\x7f") | {chr(code) for code in range(32)}
_IN_COLUMNS: Final = _FORBIDDEN | {".", "-"}


def check_name(name: object, longest: int, *, of_column: bool) -> str:
    """Return what is wrong with a name, or "".

    Args:
        name: the name.
        longest: most bytes of it in UTF-8.
        of_column: whether it is a column's; otherwise it is a table's.
    """
    if not isinstance(name, str):
        return f"a name is a str, not {type(name).__name__}"
    try:
        size = len(name.encode())
    except UnicodeEncodeError as error:
        return f"the name {name!r} has a lone surrogate at character {error.start}"
    if not 1 <= size <= longest:
        return f"the name {name[:40]!r} has {size} bytes; expected 1 to {longest} (max_name_len)"
    wrong = set(name) & (_IN_COLUMNS if of_column else _FORBIDDEN)
    if wrong:
        return f"the name {name!r} holds {min(wrong)!r}, which no {_kind(of_column)} name may"
    if not of_column and (name[0] == "." or name[-1] == "." or ".." in name):
        return f"the name {name!r}: a dot may stand only between other characters"
    return ""


def _kind(of_column: bool) -> str:
    return "column" if of_column else "table"
