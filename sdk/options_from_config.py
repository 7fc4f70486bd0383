"""Writes `lance_sdk.options`, the keywords of the clients, from the fields of `lance_sdk.config`.

    python sdk/options_from_config.py [--check]

An option is declared once, as a field of a settings class. The written module is committed, so
that type checkers and editors find it; a test holds the two together.
"""

import ast
import sys
from pathlib import Path
from typing import Final

from sync_from_async import formatted, keep_current

_SDK: Final = Path(__file__).parent / "lance_sdk"
SOURCE: Final = _SDK / "config.py"
WRITTEN: Final = _SDK / "options.py"
_APART: Final = "values"
"""The option of a producer that its overloads name themselves."""
_HEAD: Final = '''# Written by sdk/options_from_config.py from lance_sdk/config.py: change that one.
"""The keyword arguments of the clients, for type checkers and editors.

They are the fields of the classes in `lance_sdk.config`.
"""

'''
_EXPORTED: Final = (
    '\n\n__all__ = ["ClientOptions", "ConsumerOptions", "ProducerOptions", "SendOptions"]\n'
)


def options() -> str:
    """Return the text of the module of options that belongs to the settings."""
    source = SOURCE.read_text()
    tree = ast.parse(source)
    settings = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    client, producer, consumer = (
        _fields(source, settings[f"{kind}Config"]) for kind in ("Client", "Producer", "Consumer")
    )
    values = {_APART: producer.pop(_APART)}
    classes = (
        _keywords("Client", "Client", "TypedDict", client),
        _keywords("Send", "Producer", "ClientOptions", producer, apart=" without ``values=``"),
        _keywords("Producer", "Producer", "SendOptions", values),
        _keywords("Consumer", "Consumer", "ClientOptions", consumer),
    )
    imports = ast.get_source_segment(source, next(n for n in tree.body if isinstance(n, ast.If)))
    head = (
        "from collections.abc import Callable, Sequence\nfrom datetime import datetime\n"
        "from typing import TYPE_CHECKING, Literal, TypedDict\n\n"
        "from lance_sdk._api.arguments.unit_parsing import Duration\n"
        "from lance_sdk.config import Path, RetryPolicy, Token\nfrom lance_sdk.hooks import Hooks\n"
        "from lance_spec.dialect import Dialect\n\n"
    )
    return formatted(_HEAD + head + f"{imports}{_EXPORTED}" + "".join(classes), "format")


def _fields(source: str, settings: ast.ClassDef) -> dict[str, str]:
    """Return the annotation of each field, by its name, in the order of the class."""
    return {
        node.target.id: ast.get_source_segment(source, node.annotation) or ""
        for node in settings.body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }


def _keywords(name: str, kind: str, base: str, fields: dict[str, str], apart: str = "") -> str:
    """Return the source of one class of keywords."""
    client = "Producer" if name == "Send" else name
    told = f'    """Keywords of `{client}`{apart}; see `lance_sdk.config.{kind}Config`."""\n\n'
    lines = "".join(f"    {field}: {annotation}\n" for field, annotation in fields.items())
    return f"\n\nclass {name}Options({base}, total=False):\n{told}{lines}"


if __name__ == "__main__":
    sys.exit(keep_current({WRITTEN: options()}))
